"""What is wrong with an adopted VPC, sentence by sentence; facts in, problems out."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.adoption import AdoptionFacts, MountTargetFacts, SubnetFacts, adoption_problems
from corral.spec.files import read_environment
from environments import PROJECT, dev_base, dev_cluster

VPC = "vpc-0123456789abcdef0"
FIRST, SECOND, THIRD = (f"subnet-0123456789abcdef{number}" for number in range(3))


def plans() -> tuple[BasePlan, ClusterPlan]:
    environment = read_environment(PROJECT, "mixed")
    base = plan_base(environment.base)
    return base, plan_cluster(environment.cluster, base)


def subnet(zone: str, letter: str, cidr: str) -> SubnetFacts:
    return SubnetFacts(
        vpc=VPC,
        zone_id=zone,
        zone_name=f"us-west-2{letter}",
        cidr=IPv4Network(cidr),
        free=8187,
        own=0,
        default_route="nat-1",
        reaches_s3=False,
    )


GOOD = AdoptionFacts(
    has_vpc=True,
    dns_support=True,
    dns_hostnames=True,
    subnets={
        FIRST: subnet("usw2-az2", "a", "10.20.32.0/19"),
        SECOND: subnet("usw2-az3", "c", "10.20.64.0/19"),
        THIRD: subnet("usw2-az1", "b", "10.20.96.0/19"),
    },
)


def problems(facts: AdoptionFacts) -> list[str]:
    return list(adoption_problems(*plans(), facts))


def first(**changes: object) -> AdoptionFacts:
    """The good facts, but for the first subnet."""
    return replace(GOOD, subnets={**GOOD.subnets, FIRST: replace(GOOD.subnets[FIRST], **changes)})


def test_a_good_vpc_has_no_problems() -> None:
    assert problems(GOOD) == []


def test_nothing_is_said_of_a_vpc_of_corrals_own() -> None:
    assert adoption_problems(dev_base(), dev_cluster(), AdoptionFacts(has_vpc=False)) == ()


def test_a_vpc_that_is_not_there_is_all_that_is_said() -> None:
    assert problems(AdoptionFacts(has_vpc=False)) == [f"{VPC} is not in this account and region"]


def test_dns_that_is_off_is_told_with_what_it_breaks() -> None:
    assert problems(replace(GOOD, dns_support=False, dns_hostnames=False)) == [
        f"{VPC} has DNS resolution off, without which no name is found - turn it on in the VPC's settings",
        f"{VPC} has DNS hostnames off, without which EFS and private zones answer by no name"
        " - turn it on in the VPC's settings",
    ]


def test_a_subnet_that_is_not_there_is_named() -> None:
    assert problems(replace(GOOD, subnets={FIRST: GOOD.subnets[FIRST], THIRD: GOOD.subnets[THIRD]})) == [
        f"{SECOND} is not in this account and region"
    ]


def test_a_subnet_of_another_vpc_zone_and_range_is_told_at_once() -> None:
    assert problems(
        first(vpc="vpc-9", zone_id="usw2-az4", zone_name="us-west-2d", cidr=IPv4Network("10.9.0.0/19"))
    ) == [
        f"{FIRST} belongs to vpc-9, not to {VPC}",
        f"{FIRST} is in usw2-az4 (us-west-2d), not in usw2-az2",
        f"{FIRST} has the range 10.9.0.0/19, not 10.20.32.0/19",
    ]


def test_a_zone_may_be_declared_by_the_accounts_name() -> None:
    base, cluster = plans()
    zones = (replace(base.zones[0], zone_id="us-west-2a"), *base.zones[1:])
    assert adoption_problems(replace(base, zones=zones), cluster, GOOD) == ()


def test_a_public_subnet_is_refused_since_machines_have_no_public_addresses() -> None:
    assert problems(first(default_route="igw-1")) == [
        f"{FIRST} leads out through igw-1, which serves public addresses alone, and machines have none"
        " - use a private subnet with a NAT gateway"
    ]


def test_a_subnet_without_a_way_out_needs_endpoints_for_s3_and_session_manager() -> None:
    assert problems(first(default_route=None)) == [
        f"{FIRST} reaches no S3 - give its route table a gateway endpoint for S3, or a way out through NAT",
        f"{FIRST} reaches no Session Manager - give the VPC endpoints for ssm, ssmmessages, or a way out through NAT",
    ]


def test_endpoints_stand_in_for_a_way_out() -> None:
    closed = first(default_route=None, reaches_s3=True)
    assert problems(replace(closed, endpoints=("ssm", "ssmmessages"))) == []


def test_too_few_addresses_are_told_with_both_numbers() -> None:
    assert problems(first(free=10)) == [f"{FIRST} has 10 addresses for mixed, whose nodes take up to 16"]


def test_addresses_that_the_cluster_has_already_count() -> None:
    assert problems(first(free=10, own=6)) == []


def home(**changes: str) -> AdoptionFacts:
    """The good facts, with a mount target of the base's home in the first subnet, as changed."""
    target = {
        "id": "fsmt-1",
        "file_system": "fs-1",
        "vpc": VPC,
        "subnet": FIRST,
        "zone_id": "usw2-az2",
        "zone_name": "us-west-2a",
    }
    return replace(GOOD, home=[MountTargetFacts(**{**target, **changes})])


def test_the_homes_own_mount_target_is_no_problem() -> None:
    assert problems(home()) == []


def test_a_mount_target_of_the_home_in_another_vpc_is_in_the_way() -> None:
    assert problems(home(vpc="vpc-9", subnet="subnet-9")) == [
        "fs-1, the home of base mixed, has fsmt-1 in vpc-9, and a file system has mount targets in one VPC alone"
        " - delete that one first"
    ]


def test_a_mount_target_of_the_home_in_another_subnet_of_a_zone_is_in_the_way() -> None:
    assert problems(home(subnet="subnet-9")) == [
        "fs-1, the home of base mixed, has fsmt-1 in subnet-9, and EFS takes one alone in usw2-az2"
        " - give the base that subnet, or delete that one first"
    ]


def test_a_mount_target_of_the_home_in_a_zone_that_the_base_lacks_is_no_problem() -> None:
    assert problems(home(subnet="subnet-9", zone_id="usw2-az4", zone_name="us-west-2d")) == []


def test_a_taken_address_of_the_head_is_told_with_its_user() -> None:
    assert problems(replace(GOOD, taken={"10.20.32.10": "eni-1"})) == [
        "10.20.32.10, which the head of mixed is to have, is taken by eni-1 - use another one"
    ]
