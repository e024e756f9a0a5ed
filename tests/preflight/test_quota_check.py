"""Quotas: findings where the environment at its largest exceeds them, and what others use of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from finding_lines import bad, dev, on_demand, train

from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import PreflightFinding
from corral.preflight.quota_check import QuotaFacts, evaluate, fetch

STANDARD, P, P4_SPOT, P5_SPOT = "L-1216C47A", "L-417A185B", "L-7212CCBC", "L-C4BD4855"
LIMITS = {STANDARD: 100.0, P: 400.0, P4_SPOT: 400.0}


def found(**used: float) -> list[PreflightFinding]:
    """The findings for `dev` with these quotas, by code with _ for -."""
    return list(
        evaluate(dev(), QuotaFacts(allowed={**LIMITS, **{code.replace("_", "-"): one for code, one in used.items()}}))
    )


def test_quota_for_all_nodes_is_ok() -> None:
    assert bad(found()) == []


def test_a_market_without_quota_is_a_warning_if_another_has_some() -> None:
    assert bad(found(L_7212CCBC=0)) == [
        "warn All P4, P3 and P2 Spot Instance Requests: 0 vCPUs, 0 used by others; up to 384 needed for queue train"
    ]


def test_quota_for_some_nodes_is_a_warning() -> None:
    (finding,) = (one for one in found(L_417A185B=200, L_7212CCBC=0) if "On-Demand P" in one.about)
    assert (finding.verdict, finding.fix.rpartition(" ")[2]) == ("warn", "384")


def test_a_queue_of_which_not_one_node_fits_anywhere_is_a_failure() -> None:
    verdicts = [one.verdict for one in found(L_417A185B=95, L_7212CCBC=95)]
    assert verdicts == ["ok", "fail", "fail"]


def test_a_head_that_does_not_fit_is_a_failure() -> None:
    assert bad(found(L_1216C47A=7)) == [
        "fail Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances: 7 vCPUs, 0 used by others;"
        " up to 8 needed for the head"
    ]


def test_a_quota_of_which_the_head_takes_nothing_is_a_warning_however_much_others_use() -> None:
    facts = QuotaFacts(allowed={**LIMITS, P: 0.0}, used={P: 3072.0})
    assert bad(evaluate(dev(), facts)) == [
        "warn Running On-Demand P instances: 0 vCPUs, 3,072 used by others; up to 384 needed for queue train"
    ]


def test_the_use_of_others_counts() -> None:
    facts = QuotaFacts(allowed=LIMITS, used={P: 17.0})
    assert bad(evaluate(on_demand(dev()), facts)) == [
        "warn Running On-Demand P instances: 400 vCPUs, 17 used by others; up to 384 needed for queue train"
    ]


def test_a_queue_with_reserved_capacity_starts_without_quota_in_other_markets() -> None:
    facts = QuotaFacts(allowed={STANDARD: 100.0, P5_SPOT: 0.0})
    assert [line.split()[0] for line in bad(evaluate(train(), facts))] == ["warn"]


def test_a_file_system_that_does_not_fit_is_a_failure() -> None:
    facts = QuotaFacts(allowed={**LIMITS, "L-AD2FC696": 1199.0})
    assert bad(evaluate(dev(), facts)) == [
        "fail Lustre Scratch storage capacity: 1,199 GiB, 0 used by others; up to 1,200 needed"
    ]


def test_interfaces_for_some_of_the_nodes_are_a_warning() -> None:
    facts = replace(QuotaFacts(allowed={**LIMITS, "L-DF5E4CA3": 5000.0}), used={"L-DF5E4CA3": 4990.0})
    assert bad(evaluate(dev(), facts)) == [
        "warn Network interfaces per Region: 5,000 interfaces, 4,990 used by others; up to 21 needed"
    ]


# --- the use of quotas by others

NAT = "L-FE5A380F"
GP3, NICS = "L-7A658B76", "L-DF5E4CA3"
EFS, SCRATCH_GIB, SCRATCH_COUNT = "L-848C634D", "L-AD2FC696", "L-C48231E5"
OWN = [{"Key": "corral:base", "Value": "dev"}, {"Key": "corral:cluster", "Value": "dev"}]
ANOTHER = [{"Key": "corral:base", "Value": "dev"}, {"Key": "corral:cluster", "Value": "other"}]
EMPTY = {
    "list_service_quotas": "Quotas",
    "describe_instances": "Reservations",
    "describe_capacity_reservations": "CapacityReservations",
    "describe_volumes": "Volumes",
    "describe_addresses": "Addresses",
    "describe_vpcs": "Vpcs",
    "describe_network_interfaces": "NetworkInterfaces",
    "describe_file_systems": "FileSystems",
}


class Account:
    """An account with two zones and a NAT gateway in each; nothing else."""

    def __init__(self, *, tags: list[dict[str, str]], state: str = "available") -> None:
        self._tags, self._state = tags, state

    def client(self, service: str) -> Account:
        return self

    def can_paginate(self, action: str) -> bool:
        return False

    def __getattr__(self, action: str) -> Any:
        return lambda **_: {EMPTY[action]: []}

    def get_caller_identity(self) -> dict[str, Any]:
        return {"Account": "111122223333"}

    def describe_subnets(self, **_: Any) -> dict[str, Any]:
        zones = {"subnet-1": "1", "subnet-2": "2"}
        subnets = [
            {"SubnetId": id, "AvailabilityZoneId": f"use1-az{zone}", "AvailabilityZone": f"us-east-1{zone}"}
            for id, zone in zones.items()
        ]
        return {"Subnets": subnets}

    def describe_nat_gateways(self, **_: Any) -> dict[str, Any]:
        made = {"State": self._state, "Tags": self._tags}
        return {"NatGateways": [{"SubnetId": id, **made} for id in ("subnet-1", "subnet-2")]}


class Full(Account):
    """An account that answers these as well."""

    def __init__(self, **aws: list[dict[str, Any]]) -> None:
        super().__init__(tags=[])
        self._answers = aws

    def __getattr__(self, action: str) -> Any:
        return lambda **_: {EMPTY[action]: self._answers.get(action, [])}


def used(**aws: list[dict[str, Any]]) -> Mapping[str, float]:
    """What others than `dev` use in such an account, by code."""
    return fetch(AwsQueryCache(Full(**aws)), dev()).used


def machine(instance_type: str, tags: list[dict[str, str]], **more: str) -> dict[str, Any]:
    return {"InstanceType": instance_type, "Tags": tags, **more}


def test_vcpus_of_others_machines_count_by_family_and_market() -> None:
    instances = [
        machine("p4d.24xlarge", []),
        machine("p4d.24xlarge", ANOTHER),
        machine("p4d.24xlarge", OWN),
        machine("p5.48xlarge", [], InstanceLifecycle="spot"),
    ]
    found = used(describe_instances=[{"Instances": instances}])
    assert (found[P], found[P5_SPOT]) == (192, 192)


def test_idle_reservations_count_as_on_demand_and_blocks_do_not() -> None:
    held = {"InstanceType": "p4d.24xlarge", "State": "active", "AvailableInstanceCount": 3}
    block = {**held, "ReservationType": "capacity-block"}
    over = {**held, "State": "expired"}
    assert used(describe_capacity_reservations=[held, block, over])[P] == 288


def test_a_shared_reservation_counts_in_its_owners_account() -> None:
    held = {"InstanceType": "p4d.24xlarge", "State": "active", "AvailableInstanceCount": 1}
    reservations = [{**held, "OwnerId": owner} for owner in ("111122223333", "444455556666", "444455556666")]
    assert used(describe_capacity_reservations=reservations)[P] == 96


def test_all_reservations_count_if_the_caller_is_unknown() -> None:
    class Nameless(Full):
        def get_caller_identity(self) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetCallerIdentity")

    held = {"InstanceType": "p4d.24xlarge", "State": "active", "AvailableInstanceCount": 1, "OwnerId": "444455556666"}
    account = Nameless(describe_capacity_reservations=[held])
    assert fetch(AwsQueryCache(account), dev()).used[P] == 96


def test_gp3_volumes_of_others_count_in_tib() -> None:
    volumes = [
        {"VolumeType": "gp3", "Size": 1536, "Tags": ANOTHER},
        {"VolumeType": "gp3", "Size": 1024, "Tags": OWN},
        {"VolumeType": "io2", "Size": 1024},
    ]
    assert used(describe_volumes=volumes)[GP3] == 1.5


def test_interfaces_of_others_count() -> None:
    interfaces = [{"VpcId": "vpc-1", "TagSet": tags} for tags in (OWN, ANOTHER, [])]
    assert used(describe_network_interfaces=interfaces)[NICS] == 2


def test_address_units_of_another_cluster_on_the_base_count() -> None:
    one = {"VpcId": "vpc-1", "PrivateIpAddresses": [{"PrivateIpAddress": "10.0.0.1"}]}
    interfaces = [{**one, "TagSet": tags} for tags in (OWN, ANOTHER, [])]  # the last one is in a VPC of somebody else
    assert used(describe_network_interfaces=interfaces)["L-BB24F6E5"] == 1


def test_file_systems_of_others_count_each_by_its_kind() -> None:
    lustre = {"LustreConfiguration": {"DeploymentType": "SCRATCH_2"}, "StorageCapacity": 2400}
    systems = [{**lustre, "Tags": ANOTHER}, {**lustre, "Tags": OWN}, {"Tags": []}]  # the last one is EFS's alone
    found = used(describe_file_systems=systems)
    assert (found[SCRATCH_GIB], found[SCRATCH_COUNT], found[EFS]) == (2400, 1, 2)


@pytest.mark.parametrize(
    ("account", "used"),
    [
        (Account(tags=[]), 1),  # the other zone's counts there
        (Account(tags=[], state="deleted"), 0),
        (Account(tags=[{"Key": "corral:base", "Value": "dev"}]), 0),
    ],
    ids=["theirs", "gone", "the base's own"],
)
def test_nat_gateways_count_in_the_zone_of_the_bases_own(account: Account, used: int) -> None:
    assert fetch(AwsQueryCache(account), dev()).used[NAT] == used
