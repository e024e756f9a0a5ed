"""Create resources with a given id, so that an environment's references to existing resources work in the box.

The tag `corral-box:id` of the creation sets the id. To AWS it is an ordinary tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import moto.ec2.models.subnets
import moto.ec2.models.vpcs

import corral.box.ec2_capacity.reservations
from corral.box.api_errors import ApiError
from corral.model.tags import FIXED_ID_TAG

# Action -> the function that generates the id, and the id's prefix.
_ID_FUNCTIONS: Mapping[str, tuple[ModuleType, str, str]] = {
    "CreateVpc": (moto.ec2.models.vpcs, "random_vpc_id", "vpc"),
    "CreateSubnet": (moto.ec2.models.subnets, "random_subnet_id", "subnet"),
    "CreateCapacityReservation": (corral.box.ec2_capacity.reservations, "random_id", "cr"),
    "PurchaseCapacityBlock": (corral.box.ec2_capacity.reservations, "random_id", "cr"),
}


@contextmanager
def fixed_id(action: str, request: Mapping[str, Any], known: Callable[[], set[str]]) -> Iterator[None]:
    """A block in which the created resource gets the id in its tags.

    `known` returns the ids in use. Raises ApiError for one of them, and for an id of another kind.
    """
    requested = _requested(request) if action in _ID_FUNCTIONS else None
    if requested is None:
        yield
        return
    module, name, prefix = _ID_FUNCTIONS[action]
    if not requested.startswith(f"{prefix}-") or requested in known():
        raise ApiError("InvalidParameterValue", f"The tag {FIXED_ID_TAG} cannot have the value {requested}.")
    original = getattr(module, name)
    setattr(module, name, lambda *arguments: requested)  # calls are serialized by the cloud's lock
    try:
        yield
    finally:
        setattr(module, name, original)


def _requested(request: Mapping[str, Any]) -> str | None:
    specifications = request.get("TagSpecifications") or []
    tags = [tag for specification in specifications for tag in specification.get("Tags") or []]
    return next((str(tag["Value"]) for tag in tags if tag.get("Key") == FIXED_ID_TAG), None)
