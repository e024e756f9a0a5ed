"""Things of the user's own that an environment refers to by id: in the box they can be made with that very id.

An ordinary call asks for it by the tag `corral-box:id`. AWS would take that for a tag like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import moto.ec2.models.subnets
import moto.ec2.models.vpcs

import corral.box.ec2_reservations
from corral.box.refusals import Refused
from corral.model.urls import WISHED_ID

# The action -> where the id of what it makes comes from, and how such an id begins.
_MAKERS: Mapping[str, tuple[ModuleType, str, str]] = {
    "CreateVpc": (moto.ec2.models.vpcs, "random_vpc_id", "vpc"),
    "CreateSubnet": (moto.ec2.models.subnets, "random_subnet_id", "subnet"),
    "CreateCapacityReservation": (corral.box.ec2_reservations, "random_id", "cr"),
    "PurchaseCapacityBlock": (corral.box.ec2_reservations, "random_id", "cr"),
}


@contextmanager
def wished_id(action: str, request: Mapping[str, Any], known: Callable[[], set[str]]) -> Iterator[None]:
    """A block in which the thing that the action makes gets the id that its tags wish for.

    `known` gives the ids that are taken. Raises Refused for one of those, and for an id of another kind.
    """
    wanted = _wanted(request) if action in _MAKERS else None
    if wanted is None:
        yield
        return
    module, name, prefix = _MAKERS[action]
    if not wanted.startswith(f"{prefix}-") or wanted in known():
        raise Refused("InvalidParameterValue", f"The tag {WISHED_ID} cannot have the value {wanted}.")
    made_up = getattr(module, name)
    setattr(module, name, lambda *arguments: wanted)  # calls come one at a time: each holds the cloud's lock
    try:
        yield
    finally:
        setattr(module, name, made_up)


def _wanted(request: Mapping[str, Any]) -> str | None:
    specifications = request.get("TagSpecifications") or []
    tags = [tag for specification in specifications for tag in specification.get("Tags") or []]
    return next((str(tag["Value"]) for tag in tags if tag.get("Key") == WISHED_ID), None)
