"""What others use of quotas, as the account's answers say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from judging import dev

from corral.preflight.answers import Answers
from corral.preflight.quota_use import ask

NAT = "L-FE5A380F"
P_ON_DEMAND, P5_SPOT, GP3, NICS = "L-417A185B", "L-C4BD4855", "L-7A658B76", "L-DF5E4CA3"
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

    def __init__(self, **answers: list[dict[str, Any]]) -> None:
        super().__init__(tags=[])
        self._answers = answers

    def __getattr__(self, action: str) -> Any:
        return lambda **_: {EMPTY[action]: self._answers.get(action, [])}


def used(**answers: list[dict[str, Any]]) -> Mapping[str, float]:
    """What others than `dev` use in such an account, by code."""
    return ask(Answers(Full(**answers)), dev()).used


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
    assert (found[P_ON_DEMAND], found[P5_SPOT]) == (192, 192)


def test_what_is_reserved_and_idle_counts_as_on_demand_and_a_block_does_not() -> None:
    held = {"InstanceType": "p4d.24xlarge", "State": "active", "AvailableInstanceCount": 3}
    block = {**held, "ReservationType": "capacity-block"}
    over = {**held, "State": "expired"}
    assert used(describe_capacity_reservations=[held, block, over])[P_ON_DEMAND] == 288


def test_what_another_account_shares_counts_there() -> None:
    held = {"InstanceType": "p4d.24xlarge", "State": "active", "AvailableInstanceCount": 1}
    reservations = [{**held, "OwnerId": owner} for owner in ("111122223333", "444455556666", "444455556666")]
    assert used(describe_capacity_reservations=reservations)[P_ON_DEMAND] == 96


def test_reservations_all_count_where_nobody_says_who_asks() -> None:
    class Nameless(Full):
        def get_caller_identity(self) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "GetCallerIdentity")

    held = {"InstanceType": "p4d.24xlarge", "State": "active", "AvailableInstanceCount": 1, "OwnerId": "444455556666"}
    account = Nameless(describe_capacity_reservations=[held])
    assert ask(Answers(account), dev()).used[P_ON_DEMAND] == 96


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
    assert ask(Answers(account), dev()).used[NAT] == used
