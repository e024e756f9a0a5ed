"""DescribeInstanceTopology: the switches above the box's instances.

Source: EC2 API reference, DescribeInstanceTopology. The network is synthetic: a zone has one top switch, four middle
switches below it, and four leaves below each. The switches follow from the instance's id, so they never change.
Instances of one cluster placement group share the middle switch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from moto.core.responses import ActionResult

from corral.box.api_errors import ApiError

IDS_AT_ONCE = 100
PAGE = 20  # the default of MaxResults
_MIDDLES, _LEAVES = 4, 4
# Source: the same page of 2026, "Prerequisites for Amazon EC2 instance topology".
_SUPPORTED = ("hpc*", "p3dn.*", "p4d.*", "p4de.*", "p5*", "p6*", "trn*", "g6*.48xlarge", "g7*")


class TopologyActions:
    """The topology actions of EC2."""

    def describe_instance_topology(self: Any) -> ActionResult:
        """DescribeInstanceTopology: all instances, or the named ones, in pages."""
        request: Mapping[str, Any] = self.params
        ids = list(request.get("InstanceIds") or request.get("InstanceId") or ())
        if len(ids) > IDS_AT_ONCE:
            raise ApiError("InvalidParameterValue", f"You can specify at most {IDS_AT_ONCE} instance IDs.")
        if ids and request.get("MaxResults"):
            raise ApiError(
                "InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults"
            )
        found = self.ec2_backend.get_multi_instances_by_id(ids) if ids else self._listed()
        wanted = [one for one in found if _matches(one, request)]
        start = int(request.get("NextToken") or 0)
        size = len(wanted) if ids else int(request.get("MaxResults") or PAGE)
        page = [_described(one) for one in wanted[start : start + size]]
        more = {"NextToken": str(start + size)} if start + size < len(wanted) else {}
        return ActionResult({"Instances": page, **more})

    def _listed(self: Any) -> Sequence[Any]:
        return [one for held in self.ec2_backend.all_reservations() for one in held.instances]


def network_nodes(instance_id: str, zone_id: str, group: str | None) -> tuple[str, ...]:
    """The switches above an instance, from the top."""
    middle = _number(group or instance_id, "middle") % _MIDDLES
    leaf = _number(instance_id, "leaf") % _LEAVES
    return tuple(_name(zone_id, *below) for below in ((), (middle,), (middle, leaf)))


def _described(instance: Any) -> Mapping[str, Any]:
    zone, zone_id = _zone(instance)
    group = instance.placement.group_name or None
    known = instance.state == "running" and any(fnmatchcase(instance.instance_type, one) for one in _SUPPORTED)
    return {
        "InstanceId": instance.id,
        "InstanceType": instance.instance_type,
        "GroupName": group,
        "NetworkNodes": list(network_nodes(instance.id, zone_id, group)) if known else [],
        "AvailabilityZone": zone,
        "ZoneId": zone_id,
    }


def _zone(instance: Any) -> tuple[str, str]:
    """The name and the id of its zone."""
    found = instance.ec2_backend.get_subnet(instance.subnet_id)._availability_zone
    return found.name, found.zone_id


def _matches(instance: Any, request: Mapping[str, Any]) -> bool:
    zone, zone_id = _zone(instance)
    facts = {
        "availability-zone": zone,
        "zone-id": zone_id,
        "instance-type": instance.instance_type,
    }
    wanted = request.get("Filters") or request.get("Filter") or ()
    return all(any(fnmatchcase(facts[one["Name"]], value) for value in one["Values"]) for one in _known(wanted, facts))


def _known(filters: Sequence[Mapping[str, Any]], facts: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    for one in filters:
        if one["Name"] not in facts:
            raise ApiError("InvalidParameterValue", f"The filter '{one['Name']}' is invalid")
        yield one


def _name(*parts: object) -> str:
    return "nn-" + hashlib.sha256("/".join(str(part) for part in parts).encode()).hexdigest()[:17]


def _number(*parts: str) -> int:
    return int(hashlib.sha256("/".join(parts).encode()).hexdigest()[:8], 16)
