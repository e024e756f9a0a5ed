"""What AWS itself answered, as moto bundles it: the measure for the catalog's own rows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

_RESOURCES = files("moto.ec2").joinpath("resources")


def described(instance_type: str) -> Mapping[str, Any]:
    """DescribeInstanceTypes' answer for this type."""
    answer: Mapping[str, Any] = _read("instance_types.json.gz")[instance_type]
    return answer


def all_described() -> tuple[str, ...]:
    """Every instance type that there is an answer for."""
    return tuple(_read("instance_types.json.gz"))


def offered_zones(region: str) -> Mapping[str, set[str]]:
    """The zone ids of a region in which each instance type is offered."""
    zones: dict[str, set[str]] = {}
    for offering in _read(f"instance_type_offerings/availability-zone-id/{region}.json.gz"):
        zones.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return zones


def offered_regions() -> tuple[str, ...]:
    """The regions of which the offerings are known, sorted."""
    listed = _RESOURCES.joinpath("instance_type_offerings/availability-zone-id").iterdir()
    return tuple(sorted(file.name.removesuffix(".json.gz") for file in listed))


@cache
def _read(name: str) -> Any:
    return json.loads(gzip.decompress(_RESOURCES.joinpath(name).read_bytes()))
