"""What an account has of quotas, and what it uses. What is the environment's own does not count: it is in the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from corral.catalog.instances import instance_types
from corral.catalog.quotas import quotas, vcpu_quota
from corral.forecast.quotas import ADDRESSES, GATEWAYS, GP3_TIB, HOMES, NICS, UNITS, VPCS, lustre_codes
from corral.inventory.ec2 import tags_of
from corral.inventory.things import BASE_TAG, CLUSTER_TAG
from corral.model.markets import Market
from corral.preflight.answers import Answers
from corral.preflight.findings import Wanted
from corral.preflight.quotas import Facts

_RUNNING = ("pending", "running")


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """A page or two for each service, and what is there of each kind."""
    services = sorted({quota.service for quota in quotas().values()})
    listed = [
        one
        for service in services
        for one in answers.every("service-quotas", "list_service_quotas", "Quotas", ServiceCode=service)
    ]
    return Facts(
        allowed={str(one["QuotaCode"]): float(one["Value"]) for one in listed},
        used={**_vcpus(answers, wanted), **_things(answers, wanted)},
    )


def _vcpus(answers: Answers, wanted: Wanted) -> Counter[str]:
    """vCPUs of running instances that are not the cluster's, by the code of their quota."""
    used: Counter[str] = Counter()
    running = [{"Name": "instance-state-name", "Values": list(_RUNNING)}]
    for held in answers.every("ec2", "describe_instances", "Reservations", Filters=running):
        for one in held["Instances"]:
            quota = vcpu_quota(str(one["InstanceType"]), str(one.get("InstanceLifecycle", "on-demand")))
            if quota and not _is_own(one.get("Tags", ()), wanted):
                used[quota.code] += _vcpus_of(one)
    return used + _reserved(answers)


def _reserved(answers: Answers) -> Counter[str]:
    """vCPUs of reservations that no instance uses now: they count as on-demand. Blocks have quotas of their own.

    What another account shares with this one counts there (EC2 User Guide, "Shared Capacity Reservations").
    """
    used: Counter[str] = Counter()
    account = _account(answers)
    for one in answers.every("ec2", "describe_capacity_reservations", "CapacityReservations"):
        if account and one.get("OwnerId", account) != account:
            continue
        quota = vcpu_quota(str(one["InstanceType"]), Market.ON_DEMAND.usage_class)
        known = instance_types().get(str(one["InstanceType"]))
        if quota and known and one["State"] == "active" and one.get("ReservationType") != "capacity-block":
            used[quota.code] += known.vcpus * int(one["AvailableInstanceCount"])
    return used


def _account(answers: Answers) -> str | None:
    """The number of who asks; None where AWS does not say it, so that all counts that is seen."""
    try:
        return str(answers.ask("sts", "get_caller_identity")["Account"])
    except ClientError:
        return None


def _vcpus_of(instance: Mapping[str, Any]) -> int:
    known = instance_types().get(str(instance["InstanceType"]))
    if known:
        return known.vcpus
    options = instance.get("CpuOptions", {})
    return int(options.get("CoreCount", 0)) * int(options.get("ThreadsPerCore", 1))


def _things(answers: Answers, wanted: Wanted) -> Mapping[str, float]:
    def others(action: str, key: str, tags: str = "Tags") -> list[Mapping[str, Any]]:
        return [one for one in answers.every("ec2", action, key) if not _is_own(one.get(tags, ()), wanted)]

    volumes = [one for one in others("describe_volumes", "Volumes") if one.get("VolumeType") == "gp3"]
    interfaces = others("describe_network_interfaces", "NetworkInterfaces", "TagSet")
    homes = answers.every("efs", "describe_file_systems", "FileSystems")
    used: Counter[str] = Counter()
    for system in answers.every("fsx", "describe_file_systems", "FileSystems"):
        if "LustreConfiguration" in system and not _is_own(system.get("Tags", ()), wanted):
            deployment = str(system["LustreConfiguration"]["DeploymentType"])
            storage, count = lustre_codes(deployment)
            used[storage] += int(system["StorageCapacity"])
            used[count] += 1
    return {
        ADDRESSES: len(others("describe_addresses", "Addresses")),
        VPCS: len(others("describe_vpcs", "Vpcs")),
        GATEWAYS: _gateways(answers, wanted, others("describe_nat_gateways", "NatGateways")),
        NICS: len(interfaces),
        UNITS: sum(len(one.get("PrivateIpAddresses", ())) for one in interfaces if _is_in_vpc(one, wanted)),
        HOMES: sum(not _is_own(one.get("Tags", ()), wanted) for one in homes),
        GP3_TIB: sum(int(one["Size"]) for one in volumes) / 1024,
        **used,
    }


def _is_in_vpc(interface: Mapping[str, Any], wanted: Wanted) -> bool:
    """Whether it is in the base's VPC: an adopted one has any tenants, one of its own the machines of its clusters."""
    if wanted.base.adopted_vpc:
        return bool(interface["VpcId"] == wanted.base.adopted_vpc)
    return tags_of(interface.get("TagSet", ())).get(BASE_TAG) == wanted.base.name


def _gateways(answers: Answers, wanted: Wanted, gateways: Iterable[Mapping[str, Any]]) -> int:
    """How many stand in the zone where the base will have its own: the quota is each zone's."""
    public = wanted.base.public
    if public is None:
        return 0
    there = {
        str(one["SubnetId"])
        for one in answers.every("ec2", "describe_subnets", "Subnets")
        if public.zone_id in (one.get("AvailabilityZoneId"), one["AvailabilityZone"])
    }
    return sum(one["State"] in ("pending", "available") and one["SubnetId"] in there for one in gateways)


def _is_own(tags: Any, wanted: Wanted) -> bool:
    found = tags_of(tags)
    if CLUSTER_TAG in found:
        return found[CLUSTER_TAG] == wanted.cluster.name
    return found.get(BASE_TAG) == wanted.base.name
