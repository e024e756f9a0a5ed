"""Placement groups."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import integer, text
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, State
from corral.box.provider.tables.ec2_requests import delete_and_wait, only, retag, tag_specifications


def _create_placement(cloud: RegionClients, inputs: State) -> str:
    cloud.ec2.create_placement_group(
        **to_request(PLACEMENT.props, inputs), **tag_specifications("placement-group", inputs)
    )
    return str(inputs["name"])


def _read_placement(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidPlacementGroup.Unknown"):
        group = only(cloud.ec2.describe_placement_groups(GroupNames=[id])["PlacementGroups"], id)
    return {
        **from_response(PLACEMENT.state, group),
        "placementGroupId": group["GroupId"],
        "arn": group.get("GroupArn") or cloud.arn("ec2", f"placement-group/{id}"),
        "tagsAll": tag_map(group.get("Tags")),
    }


def _delete_placement(cloud: RegionClients, id: str, state: State) -> None:
    delete_and_wait(cloud, lambda: cloud.ec2.delete_placement_group(GroupName=id), id, "InvalidPlacementGroup.Unknown")


def _retag_placement(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    retag(cloud, state["placementGroupId"], state, put, drop)


PLACEMENT = Resource(
    token="aws:ec2/placementGroup:PlacementGroup",
    props={
        "name": text(replaces=True, aws="GroupName"),
        "strategy": text(required=True, replaces=True),
        "partitionCount": integer(replaces=True, computed=True),
        "spreadLevel": text(replaces=True, computed=True),
    },
    outputs={"arn": text(), "placementGroupId": text()},
    create=_create_placement,
    read=_read_placement,
    delete=_delete_placement,
    retag=_retag_placement,
    autonamed="name",
)

RESOURCES = (PLACEMENT,)
