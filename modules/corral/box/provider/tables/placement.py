"""Placement groups."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Resource, State
from corral.box.provider.shapes import text, whole
from corral.box.provider.tables.ec2 import ended, only, retag, tagged
from corral.box.provider.translate import record, request, tag_map


def _create_placement(cloud: Cloud, inputs: State) -> str:
    cloud.ec2.create_placement_group(**request(PLACEMENT.props, inputs), **tagged("placement-group", inputs))
    return str(inputs["name"])


def _read_placement(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidPlacementGroup.Unknown"):
        group = only(cloud.ec2.describe_placement_groups(GroupNames=[id])["PlacementGroups"], id)
    return {
        **record(PLACEMENT.state, group),
        "placementGroupId": group["GroupId"],
        "arn": group.get("GroupArn") or cloud.arn("ec2", f"placement-group/{id}"),
        "tagsAll": tag_map(group.get("Tags")),
    }


def _delete_placement(cloud: Cloud, id: str, state: State) -> None:
    ended(cloud, lambda: cloud.ec2.delete_placement_group(GroupName=id), id, "InvalidPlacementGroup.Unknown")


def _retag_placement(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    retag(cloud, state["placementGroupId"], state, put, drop)


PLACEMENT = Resource(
    token="aws:ec2/placementGroup:PlacementGroup",
    props={
        "name": text(replaces=True, aws="GroupName"),
        "strategy": text(required=True, replaces=True),
        "partitionCount": whole(replaces=True, computed=True),
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
