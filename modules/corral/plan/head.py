"""The head node: its place, and the address that it keeps through every replacement."""

from ipaddress import IPv4Address

from corral.catalog.project import Catalogue
from corral.model.base import ZonePlan
from corral.model.cluster import HeadPlan
from corral.spec.cluster import HeadSpec
from corral.spec.errors import SpecError
from corral.spec.heads import head_slot


def plan_head(spec: HeadSpec, cluster: str, zone: ZonePlan, catalogue: Catalogue) -> HeadPlan:
    """The head of this cluster in this zone. Raises ValueError where an adopted subnet needs an address to be given."""
    machine = catalogue.instance_type(spec.instance_type)
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
    """The address that follows from the cluster's name: slurm.conf must name it before any machine exists.

    Two clusters of one base meet on one address in 1 of 50 cases. Reading their environments refuses it; for clusters
    of other projects EC2 refuses the second, and `head.address` helps.
    """
    if zone.heads is None:
        raise ValueError(f"no addresses are kept for heads in {zone.zone_id}: its subnet is adopted")
    return zone.heads[head_slot(cluster)]


def check_head_address(spec: HeadSpec, zone: ZonePlan, *, file: str) -> tuple[SpecError, ...]:
    """What is wrong with a declared address: in a subnet of our own it must lie where AWS assigns none by itself."""
    if spec.address is not None and zone.heads is None and _is_awss(spec.address, zone):
        message = (
            f"{spec.address} is one of the five addresses that AWS keeps in {zone.private}, the first four and the last"
            " - use another"
        )
        return (SpecError(file=file, path="head.address", message=message),)
    if (
        spec.address is None
        or zone.heads is None
        or (spec.address in zone.heads and zone.heads[4] <= spec.address < zone.heads[-1])
    ):
        return ()
    message = (
        f"{spec.address} is not among the addresses kept for heads in {zone.zone_id} - "
        f"use one of {zone.heads[4]} to {zone.heads[-2]}"
    )
    return (SpecError(file=file, path="head.address", message=message),)


def _is_awss(address: IPv4Address, zone: ZonePlan) -> bool:
    return address in [*(zone.private[number] for number in range(4)), zone.private[-1]]
