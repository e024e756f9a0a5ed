"""Whether the account's quotas allow the environment at its largest, in addition to what others use.

`forecast.required_quotas` computes what the environment needs; its own resources do not count as use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.quota_defaults import find_quota, quotas, vcpu_quota
from corral.forecast.required_quotas import (
    ADDRESSES,
    GATEWAYS,
    GP3_TIB,
    HOMES,
    NICS,
    UNITS,
    VPCS,
    head_needs,
    lustre_codes,
    market_codes,
    other_needs,
    users,
    vcpus_needed,
    vcpus_of,
)
from corral.inventory.ec2_resources import tags_of
from corral.model.cluster import QueuePlan
from corral.model.enums import Market
from corral.model.tags import BASE_TAG, CLUSTER_TAG
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="quotas")
_RUNNING = ("pending", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFacts:
    """By quota code: the quota, and the use by anything but the environment.

    `allowed` lacks the quotas that Service Quotas does not list.
    """

    allowed: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> QuotaFacts:
    """The quotas of each service, and the use of each."""
    services = sorted({quota.service for quota in quotas().values()})
    listed = [
        one
        for service in services
        for one in aws.list_all("service-quotas", "list_service_quotas", "Quotas", ServiceCode=service)
    ]
    return QuotaFacts(
        allowed={str(one["QuotaCode"]): float(one["Value"]) for one in listed},
        used={**_used_vcpus(aws, request), **_used_resources(aws, request)},
    )


def evaluate(request: PreflightRequest, facts: QuotaFacts) -> Iterator[PreflightFinding]:
    """The findings for vCPUs of each family and market, then for everything else with a quota."""
    needed = vcpus_needed(request.cluster)
    for code, vcpus in sorted(needed.items()):
        yield _vcpu_finding(request, facts, code, vcpus)
    for code, amount in other_needs(request.base, request.cluster).items():
        if code in facts.allowed:
            yield _other_finding(facts, code, amount)


def _vcpu_finding(request: PreflightRequest, facts: QuotaFacts, code: str, needed: int) -> PreflightFinding:
    quota = find_quota(code)
    allowed, used = facts.allowed.get(code, quota.default), facts.used.get(code, 0.0)
    free = allowed - used
    who = [queue for queue in request.cluster.queues if code in market_codes(queue).values()]
    names = ", ".join(users(request.cluster, code))
    has = f"{_amount(allowed)} vCPUs, {_amount(used)} used by others"
    if free >= needed:
        return _FINDINGS.ok(quota.name, f"{has}; up to {needed:,} for {names}")
    fix = _increase_command(quota.service, code, used + needed)
    text = f"{has}; up to {needed:,} needed for {names}"
    if 0 < head_needs(request.cluster, code) > free or any(not _starts_a_node(queue, facts) for queue in who):
        return _FINDINGS.fail(quota.name, text, fix)
    return _FINDINGS.warn(quota.name, text, fix)


def _other_finding(facts: QuotaFacts, code: str, needed: float) -> PreflightFinding:
    quota, allowed, used = find_quota(code), facts.allowed[code], facts.used.get(code, 0.0)
    text = f"{_amount(allowed)} {quota.unit}, {_amount(used)} used by others; up to {_amount(needed)} needed"
    if used + needed <= allowed:
        return _FINDINGS.ok(quota.name, text)
    fix = _increase_command(quota.service, code, used + needed)
    # Nodes launch one by one: fewer start than the queue's maximum.
    return (
        _FINDINGS.warn(quota.name, text, fix)
        if code in (NICS, UNITS, GP3_TIB)
        else _FINDINGS.fail(quota.name, text, fix)
    )


def _starts_a_node(queue: QueuePlan, facts: QuotaFacts) -> bool:
    """Whether one node of the queue fits a market's quota, or comes from reserved capacity."""
    free = (
        facts.allowed.get(code, find_quota(code).default) - facts.used.get(code, 0.0)
        for code in market_codes(queue).values()
    )
    return any(offer.market.is_reserved for offer in queue.offers) or any(one >= vcpus_of(queue) for one in free)


def _increase_command(service: str, code: str, value: float) -> str:
    words = f"--service-code {service} --quota-code {code} --desired-value {_amount(value).replace(',', '')}"
    return f"aws service-quotas request-service-quota-increase {words}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _used_vcpus(aws: AwsQueryCache, request: PreflightRequest) -> Counter[str]:
    """vCPUs of running instances that do not belong to the environment, by quota code."""
    used: Counter[str] = Counter()
    running = [{"Name": "instance-state-name", "Values": list(_RUNNING)}]
    for held in aws.list_all("ec2", "describe_instances", "Reservations", Filters=running):
        for one in held["Instances"]:
            quota = vcpu_quota(str(one["InstanceType"]), str(one.get("InstanceLifecycle", "on-demand")))
            if quota and not _is_own(one.get("Tags", ()), request):
                used[quota.code] += _vcpus_of(one)
    return used + _reserved_vcpus(aws)


def _reserved_vcpus(aws: AwsQueryCache) -> Counter[str]:
    """vCPUs of unused reservations, which count as on-demand; capacity blocks have quotas of their own.

    A shared reservation counts in its owner's account (EC2 User Guide, "Shared Capacity Reservations").
    """
    used: Counter[str] = Counter()
    account = _account(aws)
    for one in aws.list_all("ec2", "describe_capacity_reservations", "CapacityReservations"):
        if account and one.get("OwnerId", account) != account:
            continue
        quota = vcpu_quota(str(one["InstanceType"]), Market.ON_DEMAND.usage_class)
        known = instance_types().get(str(one["InstanceType"]))
        if quota and known and one["State"] == "active" and one.get("ReservationType") != "capacity-block":
            used[quota.code] += known.vcpus * int(one["AvailableInstanceCount"])
    return used


def _account(aws: AwsQueryCache) -> str | None:
    """The caller's account; None if unknown, which counts every reservation."""
    try:
        return str(aws.call("sts", "get_caller_identity")["Account"])
    except ClientError:
        return None


def _vcpus_of(instance: Mapping[str, Any]) -> int:
    known = instance_types().get(str(instance["InstanceType"]))
    if known:
        return known.vcpus
    options = instance.get("CpuOptions", {})
    return int(options.get("CoreCount", 0)) * int(options.get("ThreadsPerCore", 1))


def _used_resources(aws: AwsQueryCache, request: PreflightRequest) -> Mapping[str, float]:
    def others(action: str, key: str, tags: str = "Tags") -> list[Mapping[str, Any]]:
        return [one for one in aws.list_all("ec2", action, key) if not _is_own(one.get(tags, ()), request)]

    volumes = [one for one in others("describe_volumes", "Volumes") if one.get("VolumeType") == "gp3"]
    interfaces = others("describe_network_interfaces", "NetworkInterfaces", "TagSet")
    homes = aws.list_all("efs", "describe_file_systems", "FileSystems")
    used: Counter[str] = Counter()
    for system in aws.list_all("fsx", "describe_file_systems", "FileSystems"):
        if "LustreConfiguration" in system and not _is_own(system.get("Tags", ()), request):
            deployment = str(system["LustreConfiguration"]["DeploymentType"])
            storage, count = lustre_codes(deployment)
            used[storage] += int(system["StorageCapacity"])
            used[count] += 1
    return {
        ADDRESSES: len(others("describe_addresses", "Addresses")),
        VPCS: len(others("describe_vpcs", "Vpcs")),
        GATEWAYS: _gateways(aws, request, others("describe_nat_gateways", "NatGateways")),
        NICS: len(interfaces),
        UNITS: sum(len(one.get("PrivateIpAddresses", ())) for one in interfaces if _is_in_vpc(one, request)),
        HOMES: sum(not _is_own(one.get("Tags", ()), request) for one in homes),
        GP3_TIB: sum(int(one["Size"]) for one in volumes) / 1024,
        **used,
    }


def _is_in_vpc(interface: Mapping[str, Any], request: PreflightRequest) -> bool:
    """Whether it is in the base's VPC: by id if adopted, otherwise by the base's tag."""
    if request.base.adopted_vpc:
        return bool(interface["VpcId"] == request.base.adopted_vpc)
    return tags_of(interface.get("TagSet", ())).get(BASE_TAG) == request.base.name


def _gateways(aws: AwsQueryCache, request: PreflightRequest, gateways: Iterable[Mapping[str, Any]]) -> int:
    """The NAT gateways in the zone of the base's own: the quota is for each zone."""
    public = request.base.public
    if public is None:
        return 0
    there = {
        str(one["SubnetId"])
        for one in aws.list_all("ec2", "describe_subnets", "Subnets")
        if public.zone_id in (one.get("AvailabilityZoneId"), one["AvailabilityZone"])
    }
    return sum(one["State"] in ("pending", "available") and one["SubnetId"] in there for one in gateways)


def _is_own(tags: Any, request: PreflightRequest) -> bool:
    found = tags_of(tags)
    if CLUSTER_TAG in found:
        return found[CLUSTER_TAG] == request.cluster.name
    return found.get(BASE_TAG) == request.base.name
