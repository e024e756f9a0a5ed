"""The head node: its zone, and the address that every replacement keeps."""

from ipaddress import IPv4Address

from corral.catalog.project_catalog import Catalog
from corral.model.base import ZonePlan
from corral.model.cluster import HeadPlan
from corral.spec.models.cluster import HeadSpec
from corral.spec.rules.head_address_conflict import head_slot
from corral.spec.spec_errors import SpecError


def plan_head(spec: HeadSpec, cluster: str, zone: ZonePlan, catalog: Catalog) -> HeadPlan:
    """Plan the head of this cluster in this zone. Raises ValueError if an adopted subnet has no declared address."""
    machine = catalog.instance_type(spec.instance_type)
    return HeadPlan(
        host_name=f"{cluster}-head",
        zone_id=zone.zone_id,
        instance_type=machine.name,
        vcpus=machine.vcpus,
        memory_mib=machine.memory_mib,
        address=spec.address or head_address(cluster, zone),
        root_gib=spec.root_gib,
        state_gib=spec.state_gib,
        state_device="/dev/sdf",
    )


def head_address(cluster: str, zone: ZonePlan) -> IPv4Address:
    """Derive the head's address from the cluster's name: slurm.conf needs it before any instance exists.

    Two clusters of one base get the same address in 1 of 50 cases. Within a project that is a spec error; for clusters
    of different projects EC2 rejects the second one, and setting `head.address` resolves it.
    """
    if zone.heads is None:
        raise ValueError(f"{zone.zone_id} reserves no addresses for heads: its subnet is adopted")
    return zone.heads[head_slot(cluster)]


def check_head_address(spec: HeadSpec, zone: ZonePlan, *, file: str) -> tuple[SpecError, ...]:
    """Return the errors in a declared address: in corral's subnets it must be in the range reserved for heads."""
    if spec.address is not None and zone.heads is None and _is_awss(spec.address, zone):
        message = f"{spec.address} is reserved by AWS, like the first four and the last address of {zone.private}"
        return (SpecError(file=file, path="head.address", message=message, fix="use another"),)
    if (
        spec.address is None
        or zone.heads is None
        or (spec.address in zone.heads and zone.heads[4] <= spec.address < zone.heads[-1])
    ):
        return ()
    message = f"{spec.address} is not reserved for heads in {zone.zone_id}"
    fix = f"use one of {zone.heads[4]} to {zone.heads[-2]}"
    return (SpecError(file=file, path="head.address", message=message, fix=fix),)


def _is_awss(address: IPv4Address, zone: ZonePlan) -> bool:
    return address in [*(zone.private[number] for number in range(4)), zone.private[-1]]
