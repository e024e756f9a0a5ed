"""What the tables of EC2 objects share: tags, waiting for dependents, looking up instances and volumes.

No resource type is described here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence, code
from corral.box.provider.resource import State
from corral.box.provider.translate import tag_list

DEPENDENTS_S = 20  # interfaces of a deleted service go within seconds; what lasts longer is really in use
IN_USE = frozenset({"DependencyViolation", "InvalidPlacementGroup.InUse"})


def tagged(kind: str, inputs: State) -> dict[str, Any]:
    """The argument that tags an object at its creation."""
    tags = inputs.get("tagsAll")
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tag_list(tags)}]} if tags else {}


def retag(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Sets and removes tags of an EC2 object."""
    if drop:
        cloud.ec2.delete_tags(Resources=[id], Tags=[{"Key": key} for key in drop])
    if put:
        cloud.ec2.create_tags(Resources=[id], Tags=tag_list(put))


def only(found: Sequence[Any], what: str) -> Any:
    """The one object of a description. Raises Gone where there is none."""
    if not found:
        raise Gone(f"{what} does not exist")
    return found[0]


def ended(cloud: Cloud, end: Callable[[], object], what: str, *gone: str) -> None:
    """Calls `end` until nothing depends on the object any more. Raises Gone for the given codes."""
    deadline = time.monotonic() + DEPENDENTS_S

    def attempt() -> bool | None:
        try:
            with absence(*gone):
                end()
        except ClientError as error:
            if code(error) not in IN_USE or time.monotonic() > deadline:
                raise
            return None
        return True

    cloud.until(attempt, f"deletion of {what}")


def describe_instance(cloud: Cloud, id: str) -> Mapping[str, Any]:
    """The instance as EC2 tells it. Raises Gone where it is terminated."""
    with absence("InvalidInstanceID.NotFound"):
        found = cloud.ec2.describe_instances(InstanceIds=[id])["Reservations"]
    instance: Mapping[str, Any] = only(only(found, id)["Instances"], id)
    if instance["State"]["Name"] == "terminated":
        raise Gone(f"{id} is terminated")
    return instance


def instance_state(cloud: Cloud, id: str) -> str:
    """The name of the state of an instance. Raises Gone where it is terminated."""
    return str(describe_instance(cloud, id)["State"]["Name"])


def describe_volume(cloud: Cloud, id: str) -> Mapping[str, Any]:
    """The volume as EC2 tells it. Raises Gone where it is deleted."""
    with absence("InvalidVolume.NotFound"):
        volume: Mapping[str, Any] = only(cloud.ec2.describe_volumes(VolumeIds=[id])["Volumes"], id)
    if volume["State"] == "deleted":
        raise Gone(f"{id} is deleted")
    return volume
