"""Who stands in a subnet: everything that keeps AWS from deleting it, as network interfaces show it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from corral.inventory.ec2 import tags_of

# What a base itself puts into its subnets and takes out again before it deletes them.
_BASES_OWN = frozenset({"efs", "nat_gateway", "vpc_endpoint"})
_MOUNT_TARGET = "EFS mount target for "  # their interfaces are of an ordinary type in older accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A machine, or an interface of another service. `name`: what people know it by, or AWS's description of it."""

    subnet: str
    id: str
    name: str


def tenants(session: Any, subnets: Collection[str]) -> tuple[Tenant, ...]:
    """Who stands in these subnets, each once, by subnet and name; the base's own interfaces are not counted."""
    if not subnets:
        return ()
    ec2 = session.client("ec2")
    wanted = [{"Name": "subnet-id", "Values": sorted(subnets)}]
    pages = ec2.get_paginator("describe_network_interfaces").paginate(Filters=wanted)
    interfaces = [one for page in pages for one in page["NetworkInterfaces"] if not _is_bases_own(one)]
    ids = sorted({id for one in interfaces if (id := _machine(one))})
    names = _names(ec2, ids) if ids else {}
    found = {_tenant(one, names) for one in interfaces}
    return tuple(sorted(found, key=lambda tenant: (tenant.subnet, tenant.name, tenant.id)))


def _is_bases_own(interface: Mapping[str, Any]) -> bool:
    is_mount_target = str(interface.get("Description", "")).startswith(_MOUNT_TARGET)
    return is_mount_target or interface.get("InterfaceType") in _BASES_OWN


def _machine(interface: Mapping[str, Any]) -> str | None:
    return (interface.get("Attachment") or {}).get("InstanceId")


def _names(ec2: Any, ids: Collection[str]) -> Mapping[str, str]:
    pages = ec2.get_paginator("describe_instances").paginate(InstanceIds=[*ids])
    machines = [one for page in pages for reservation in page["Reservations"] for one in reservation["Instances"]]
    return {one["InstanceId"]: tags_of(one.get("Tags", ())).get("Name", "") for one in machines}


def _tenant(interface: Mapping[str, Any], names: Mapping[str, str]) -> Tenant:
    if machine := _machine(interface):
        return Tenant(subnet=interface["SubnetId"], id=machine, name=names.get(machine, ""))
    id = interface["NetworkInterfaceId"]
    return Tenant(subnet=interface["SubnetId"], id=id, name=str(interface.get("Description", "")))
