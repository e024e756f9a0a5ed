"""CloudWatch log groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, to_request
from corral.box.provider.property_schema import boolean, integer, text
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State


def _create_log(cloud: RegionClients, inputs: State) -> str:
    tags = {"tags": inputs["tagsAll"]} if inputs.get("tagsAll") else {}
    cloud.logs.create_log_group(**to_request(LOG.props, inputs, ("name", "kmsKeyId", "logGroupClass")), **tags)
    return str(inputs["name"])


def _apply_log(cloud: RegionClients, id: str, inputs: State) -> None:
    days = inputs.get("retentionInDays") or 0
    if days:
        cloud.logs.put_retention_policy(logGroupName=id, retentionInDays=days)
    elif _find_log(cloud, id).get("retentionInDays"):
        cloud.logs.delete_retention_policy(logGroupName=id)


def _find_log(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    pages = cloud.logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=id)
    for page in pages:
        for group in page["logGroups"]:
            if group["logGroupName"] == id:
                found: Mapping[str, Any] = group
                return found
    raise NotFound(f"log group {id} does not exist")


def _read_log(cloud: RegionClients, id: str, known: State) -> State:
    group = _find_log(cloud, id)
    arn = str(group["arn"]).removesuffix(":*")
    return {
        **from_response(LOG.state, group),
        "retentionInDays": group.get("retentionInDays", 0),
        "arn": arn,
        "tagsAll": _log_tags(cloud, arn),
    }


def _log_tags(cloud: RegionClients, arn: str) -> dict[str, str]:
    return dict(cloud.logs.list_tags_for_resource(resourceArn=arn).get("tags", {}))


def _update_log(cloud: RegionClients, change: ResourceUpdate) -> None:
    if not change.touches("kmsKeyId"):
        return
    if key := change.new.get("kmsKeyId"):
        cloud.logs.associate_kms_key(logGroupName=change.id, kmsKeyId=key)
    else:
        cloud.logs.disassociate_kms_key(logGroupName=change.id)


def _delete_log(cloud: RegionClients, id: str, state: State) -> None:
    if not state.get("skipDestroy"):
        with not_found_on("ResourceNotFoundException"):
            cloud.logs.delete_log_group(logGroupName=id)


def _retag_log(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.logs.untag_resource(resourceArn=state["arn"], tagKeys=drop)
    if put:
        cloud.logs.tag_resource(resourceArn=state["arn"], tags=dict(put))


LOG = Resource(
    token="aws:cloudwatch/logGroup:LogGroup",
    props={
        "name": text(replaces=True, aws="logGroupName"),
        "retentionInDays": integer(default=0, aws="retentionInDays"),
        "kmsKeyId": text(aws="kmsKeyId"),
        "logGroupClass": text(replaces=True, computed=True, aws="logGroupClass"),
        "skipDestroy": boolean(write_only=True, default=False),
    },
    outputs={"arn": text()},
    create=_create_log,
    apply=_apply_log,
    read=_read_log,
    update=_update_log,
    delete=_delete_log,
    retag=_retag_log,
    autonamed="name",
)

RESOURCES = (LOG,)
