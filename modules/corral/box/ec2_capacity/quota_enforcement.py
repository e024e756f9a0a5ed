"""Which quotas EC2 enforces: vCPUs by family and market, VPCs, NAT gateways, elastic addresses. Hold the cloud's lock.

On demand counts pending and running instances, and every active capacity reservation as a whole, used or not.
Capacity Blocks and stopped instances do not count.
Source: EC2 user guide, "EC2 On-Demand Instance quotas", "Spot Instance quotas" and "Capacity Reservation limits".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box.api import service_quotas
from corral.box.api_errors import ApiError
from corral.catalog.aws.quota_defaults import Quota, find_quota, vcpu_quota

ON_DEMAND, SPOT = "on-demand", "spot"
VPCS, NAT_GATEWAYS, ADDRESSES = "L-F678F1CE", "L-FE5A380F", "L-0263D0A3"


def count_within_quota(
    backend: Any, instance_type: str, lifecycle: str | None, *, least: int, most: int, now: datetime
) -> int:
    """How many instances of a launch the quota of their family and market allows. Raises ApiError below `least`."""
    quota = _quota(instance_type, SPOT if lifecycle == SPOT else ON_DEMAND)
    if quota is None:
        return most
    limit = service_quotas.applied(quota, backend.region_name)
    available = max(0, int((limit - used_vcpus(backend, quota, now)) // vcpus(instance_type)))
    if available < least:
        raise _exceeded(quota, limit)
    return min(most, available)


def check_on_demand(backend: Any, instance_types: Iterable[str], now: datetime) -> None:
    """Raises ApiError if these instances, or capacity for them, exceed an on-demand quota."""
    wanted: Counter[Quota] = Counter()
    for kind in instance_types:
        if (quota := _quota(kind, ON_DEMAND)) is not None:
            wanted[quota] += vcpus(kind)
    for quota, more in wanted.items():
        limit = service_quotas.applied(quota, backend.region_name)
        if used_vcpus(backend, quota, now) + more > limit:
            raise _exceeded(quota, limit)


def check_vpcs(backend: Any) -> None:
    """Raises ApiError if the region's VPC quota is used up; the default VPC counts. Text: rhel-edge#3947."""
    if len(backend.vpcs) >= _applied(backend, VPCS):
        raise ApiError("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


def check_addresses(backend: Any) -> None:
    """Raises ApiError if the region's quota of elastic addresses is used up. Text: terraform-aws-vpc#429."""
    if len(backend.addresses) >= _applied(backend, ADDRESSES):
        raise ApiError("AddressLimitExceeded", "The maximum number of addresses has been reached.")


def check_nat_gateways(backend: Any, subnet_id: str) -> None:
    """Raises ApiError if the zone's quota of NAT gateways is used up. Text: eksctl#560."""
    zone, limit = backend.get_subnet(subnet_id).availability_zone, _applied(backend, NAT_GATEWAYS)
    held = [gateway for gateway in backend.nat_gateways.values() if gateway.state != "deleted"]
    if sum(backend.get_subnet(gateway.subnet_id).availability_zone == zone for gateway in held) >= limit:
        text = f"Performing this operation would exceed the limit of {limit:.0f} NAT gateways"
        raise ApiError("NatGatewayLimitExceeded", text)


def used_vcpus(backend: Any, quota: Quota, now: datetime) -> int:
    """The number of vCPUs that count in the quota."""
    held = {one.id: one for one in backend.capacity_reservations.values() if one.state_at(now) == "active"}
    counted: Counter[str] = Counter()
    for instance in backend.all_instances():
        if instance.is_active and _market(instance, held) == quota.market:
            counted[instance.instance_type] += 1
    for reservation in held.values():
        if reservation.block_id is None and quota.market == ON_DEMAND:
            counted[reservation.instance_type] += reservation.count
    return sum(count * vcpus(kind) for kind, count in counted.items() if _quota(kind, str(quota.market)) == quota)


def vcpus(instance_type: str) -> int:
    """The vCPUs of a type, without CPU options."""
    return int(INSTANCE_TYPES[instance_type]["VCpuInfo"]["DefaultVCpus"])


def _market(instance: Any, reservations: Any) -> str | None:
    """The market in which an instance counts; None in a reservation, which counts as a whole, and in a block."""
    if instance.capacity_reservation_id in reservations:
        return None
    return instance.lifecycle or ON_DEMAND


@cache
def _quota(instance_type: str, market: str) -> Quota | None:
    return vcpu_quota(instance_type, market)


def _applied(backend: Any, code: str) -> float:
    return service_quotas.applied(find_quota(code), backend.region_name)


def _exceeded(quota: Quota, limit: float) -> ApiError:
    """Texts: on demand, scrapoxy#202; spot, meadowdata/meadowrun#84."""
    if quota.market == SPOT:
        return ApiError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    return ApiError(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {limit:.0f} allows for the instance"
        " bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request"
        " to request an adjustment to this limit.",
    )
