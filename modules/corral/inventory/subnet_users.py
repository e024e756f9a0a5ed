"""What uses a subnet: the owners of network interfaces that keep AWS from deleting it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from corral.inventory.ec2_resources import tags_of

# Interfaces that a base creates in its subnets, and deletes before the subnets.
_BASES_OWN = frozenset({"efs", "nat_gateway", "vpc_endpoint"})
_MOUNT_TARGET = "EFS mount target for "  # in older accounts their interfaces have an ordinary type


@dataclass(frozen=True, slots=True, kw_only=True)
class SubnetUser:
    """An instance, or an interface of another service. `name`: its Name tag, or AWS's description."""

    subnet: str
    id: str
    name: str


def list_subnet_users(session: Any, subnets: Collection[str]) -> tuple[SubnetUser, ...]:
    """The users of these subnets, each once, by subnet and name; without the base's own interfaces."""
    if not subnets:
        return ()
    ec2 = session.client("ec2")
    filters = [{"Name": "subnet-id", "Values": sorted(subnets)}]
    pages = ec2.get_paginator("describe_network_interfaces").paginate(Filters=filters)
    interfaces = [one for page in pages for one in page["NetworkInterfaces"] if not _is_bases_own(one)]
    ids = sorted({id for one in interfaces if (id := _machine(one))})
    names = _names(ec2, ids) if ids else {}
    found = {_subnet_user(one, names) for one in interfaces}
    return tuple(sorted(found, key=lambda user: (user.subnet, user.name, user.id)))


def _is_bases_own(interface: Mapping[str, Any]) -> bool:
    is_mount_target = str(interface.get("Description", "")).startswith(_MOUNT_TARGET)
    return is_mount_target or interface.get("InterfaceType") in _BASES_OWN


def _machine(interface: Mapping[str, Any]) -> str | None:
    return (interface.get("Attachment") or {}).get("InstanceId")


def _names(ec2: Any, ids: Collection[str]) -> Mapping[str, str]:
    pages = ec2.get_paginator("describe_instances").paginate(InstanceIds=[*ids])
    machines = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    return {one["InstanceId"]: tags_of(one.get("Tags", ())).get("Name", "") for one in machines}


def _subnet_user(interface: Mapping[str, Any], names: Mapping[str, str]) -> SubnetUser:
    if machine := _machine(interface):
        return SubnetUser(subnet=interface["SubnetId"], id=machine, name=names.get(machine, ""))
    id = interface["NetworkInterfaceId"]
    return SubnetUser(subnet=interface["SubnetId"], id=id, name=str(interface.get("Description", "")))
