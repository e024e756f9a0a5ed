"""Requests that the tables of EC2 objects share: tags, waiting for dependents, instances, volumes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import tag_list
from corral.box.provider.provider_errors import NotFound, aws_error_code, not_found_on
from corral.box.provider.resource import State

IN_USE = frozenset({"DependencyViolation", "InvalidPlacementGroup.InUse"})


def tag_specifications(kind: str, inputs: State) -> dict[str, Any]:
    """The argument that tags an object at its creation."""
    tags = inputs.get("tagsAll")
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(tags)}]} if tags else {}


def retag(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Set and remove tags of an EC2 object."""
    if drop:
        cloud.ec2.delete_tags(Resources=[id], Tags=[{"Key": key} for key in drop])
    if put:
        cloud.ec2.create_tags(Resources=[id], Tags=tag_list(put))


def only(found: Sequence[Any], what: str) -> Any:
    """The one object of a description. Raises NotFound if there is none."""
    if not found:
        raise NotFound(f"{what} does not exist")
    return found[0]


def delete_and_wait(cloud: RegionClients, end: Callable[[], object], what: str, *gone: str) -> None:
    """Call `end` until nothing depends on the object. Raises NotFound for the codes `gone`."""
    deadline = time.monotonic() + min(cloud.timeout_s, cloud.dependents_s)

    def attempt() -> bool | None:
        try:
            with not_found_on(*gone):
                end()
        except ClientError as error:
            if aws_error_code(error) not in IN_USE or time.monotonic() > deadline:
                raise
            return None
        return True

    cloud.until(attempt, f"deletion of {what}")


def describe_instance(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    """EC2's description of the instance. Raises NotFound if it is terminated."""
    with not_found_on("InvalidInstanceID.NotFound"):
        found = cloud.ec2.describe_instances(InstanceIds=[id])["Reservations"]
    instance: Mapping[str, Any] = only(only(found, id)["Instances"], id)
    if instance["State"]["Name"] == "terminated":
        raise NotFound(f"{id} is terminated")
    return instance


def instance_state(cloud: RegionClients, id: str) -> str:
    """The name of an instance's state. Raises NotFound if it is terminated."""
    return str(describe_instance(cloud, id)["State"]["Name"])


def describe_volume(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    """EC2's description of the volume. Raises NotFound if it is deleted."""
    with not_found_on("InvalidVolume.NotFound"):
        volume: Mapping[str, Any] = only(cloud.ec2.describe_volumes(VolumeIds=[id])["Volumes"], id)
    if volume["State"] == "deleted":
        raise NotFound(f"{id} is deleted")
    return volume
