"""Managed IAM policies."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import integer, json_document, text
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.identity.iam_requests import NO_ENTITY, creation_tags, document_text

KEPT_VERSIONS = 5  # of a policy; IAM, quotas


def _create_policy(cloud: RegionClients, inputs: State) -> str:
    names = ("name", "path", "description", "policy")
    return str(
        cloud.iam.create_policy(**to_request(POLICY.props, inputs, names), **creation_tags(inputs))["Policy"]["Arn"]
    )


def _read_policy(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on(NO_ENTITY):
        policy = cloud.iam.get_policy(PolicyArn=id)["Policy"]
        version = cloud.iam.get_policy_version(PolicyArn=id, VersionId=policy["DefaultVersionId"])
    return {
        **from_response(POLICY.state, policy),
        "policy": document_text(version["PolicyVersion"]["Document"]),
        "tagsAll": tag_map(cloud.iam.list_policy_tags(PolicyArn=id)["Tags"]),
    }


def _update_policy(cloud: RegionClients, change: ResourceUpdate) -> None:
    if not change.touches("policy"):
        return
    versions = cloud.iam.list_policy_versions(PolicyArn=change.id)["Versions"]
    spare = [one["VersionId"] for one in versions if not one["IsDefaultVersion"]]
    if len(versions) >= KEPT_VERSIONS:
        cloud.iam.delete_policy_version(PolicyArn=change.id, VersionId=min(spare, key=lambda name: int(name[1:])))
    cloud.iam.create_policy_version(PolicyArn=change.id, PolicyDocument=change.new["policy"], SetAsDefault=True)


def _delete_policy(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on(NO_ENTITY):
        for version in cloud.iam.list_policy_versions(PolicyArn=id)["Versions"]:
            if not version["IsDefaultVersion"]:
                cloud.iam.delete_policy_version(PolicyArn=id, VersionId=version["VersionId"])
        cloud.iam.delete_policy(PolicyArn=id)


def _retag_policy(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.iam.untag_policy(PolicyArn=id, TagKeys=drop)
    if put:
        cloud.iam.tag_policy(PolicyArn=id, Tags=tag_list(put))


POLICY = Resource(
    token="aws:iam/policy:Policy",
    props={
        "name": text(replaces=True, aws="PolicyName"),
        "path": text(replaces=True, default="/"),
        "description": text(replaces=True),
        "policy": json_document(required=True, aws="PolicyDocument"),
    },
    outputs={"arn": text(), "policyId": text(), "attachmentCount": integer()},
    create=_create_policy,
    read=_read_policy,
    update=_update_policy,
    delete=_delete_policy,
    retag=_retag_policy,
    autonamed="name",
    is_global=True,
)

RESOURCES = (POLICY,)
