"""The findings about an adopted VPC."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

from finding_lines import NOW, bad, finding_lines

from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.preflight.existing_vpc_check import ExistingVpcFacts, MountTargetFacts, SubnetFacts, evaluate
from corral.preflight.preflight_findings import PreflightRequest
from corral.spec.yaml.stack_files import read_environment
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


GOOD = ExistingVpcFacts(
    has_vpc=True,
    dns_support=True,
    dns_hostnames=True,
    subnets={
        FIRST: subnet("usw2-az2", "a", "10.20.32.0/19"),
        SECOND: subnet("usw2-az3", "c", "10.20.64.0/19"),
        THIRD: subnet("usw2-az1", "b", "10.20.96.0/19"),
    },
)


SEE_DOCS = "see docs/spec.md, network.adopt"
Problem = tuple[str, str, str]


def problems(facts: ExistingVpcFacts) -> list[Problem]:
    """What each failure is about, its message and its fix."""
    base, cluster = plans()
    found = evaluate(PreflightRequest(base=base, cluster=cluster, now=NOW), facts)
    return [(one.about, one.message, one.fix) for one in found if one.verdict == "fail"]


def first(**changes: object) -> ExistingVpcFacts:
    """The good facts, but for the first subnet."""
    return replace(GOOD, subnets={**GOOD.subnets, FIRST: replace(GOOD.subnets[FIRST], **changes)})


def test_a_good_vpc_is_ok() -> None:
    base, cluster = plans()
    found = evaluate(PreflightRequest(base=base, cluster=cluster, now=NOW), GOOD)
    assert finding_lines(found) == [f"ok {VPC}: has 3 subnets with free addresses and a route out"]


def test_a_vpc_that_the_base_creates_is_ok() -> None:
    request = PreflightRequest(base=dev_base(), cluster=dev_cluster(), now=NOW)
    assert finding_lines(evaluate(request, None)) == ["ok VPC: created by the base: 10.64.0.0/16"]


def test_a_missing_vpc_is_the_only_problem() -> None:
    assert problems(ExistingVpcFacts(has_vpc=False)) == [(VPC, "not found in this account and region", SEE_DOCS)]


def test_disabled_dns_is_reported_with_its_effect() -> None:
    assert problems(replace(GOOD, dns_support=False, dns_hostnames=False)) == [
        (VPC, "DNS resolution is off: no name resolves", "turn it on in the VPC's settings"),
        (
            VPC,
            "DNS hostnames is off: names of EFS and of private zones do not resolve",
            "turn it on in the VPC's settings",
        ),
    ]


def test_a_missing_subnet_is_named() -> None:
    assert problems(replace(GOOD, subnets={FIRST: GOOD.subnets[FIRST], THIRD: GOOD.subnets[THIRD]})) == [
        (SECOND, "not found in this account and region", SEE_DOCS)
    ]


def test_all_problems_of_a_subnet_are_reported_at_once() -> None:
    assert problems(
        first(vpc="vpc-9", zone_id="usw2-az4", zone_name="us-west-2d", cidr=IPv4Network("10.9.0.0/19"))
    ) == [
        (FIRST, f"belongs to vpc-9, not to {VPC}", SEE_DOCS),
        (FIRST, "is in usw2-az4 (us-west-2d), not in usw2-az2", SEE_DOCS),
        (FIRST, "has the range 10.9.0.0/19, not 10.20.32.0/19", "cidr: 10.9.0.0/19"),
    ]


def test_a_zone_may_be_declared_by_the_accounts_name() -> None:
    base, cluster = plans()
    zones = (replace(base.zones[0], zone_id="us-west-2a"), *base.zones[1:])
    request = PreflightRequest(base=replace(base, zones=zones), cluster=cluster, now=NOW)
    assert bad(evaluate(request, GOOD)) == []


def test_a_public_subnet_is_refused_since_instances_have_no_public_addresses() -> None:
    assert problems(first(default_route="igw-1")) == [
        (
            FIRST,
            "routes out through igw-1, which serves public addresses only, and instances have none",
            "use a private subnet with a NAT gateway",
        )
    ]


def test_a_subnet_without_a_route_out_needs_endpoints_for_s3_and_session_manager() -> None:
    assert problems(first(default_route=None)) == [
        (FIRST, "cannot reach S3", "add an S3 gateway endpoint to its route table, or a NAT route"),
        (
            FIRST,
            "cannot reach Session Manager",
            "add endpoints for ssm, ssmmessages to the VPC, or a NAT route",
        ),
    ]


def test_endpoints_replace_a_route_out() -> None:
    closed = first(default_route=None, reaches_s3=True)
    assert problems(replace(closed, endpoints=("ssm", "ssmmessages"))) == []


def test_too_few_addresses_are_reported_with_both_numbers() -> None:
    assert problems(first(free=10)) == [
        (FIRST, "has 10 addresses for mixed, whose nodes use up to 16", "lower nodes.max, or use a larger subnet")
    ]


def test_addresses_that_the_cluster_already_uses_count_as_free() -> None:
    assert problems(first(free=10, own=6)) == []


def home(**changes: str) -> ExistingVpcFacts:
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


def test_a_mount_target_of_the_home_in_another_vpc_is_a_problem() -> None:
    assert problems(home(vpc="vpc-9", subnet="subnet-9")) == [
        (
            "home fs-1",
            "has mount target fsmt-1 in vpc-9; EFS allows mount targets in one VPC only",
            "delete fsmt-1 first",
        )
    ]


def test_a_mount_target_of_the_home_in_another_subnet_of_a_zone_is_a_problem() -> None:
    assert problems(home(subnet="subnet-9")) == [
        (
            "home fs-1",
            "has mount target fsmt-1 in subnet-9; EFS allows one in usw2-az2",
            "use subnet-9 for the base, or delete fsmt-1 first",
        )
    ]


def test_a_mount_target_of_the_home_in_a_zone_that_the_base_lacks_is_no_problem() -> None:
    assert problems(home(subnet="subnet-9", zone_id="usw2-az4", zone_name="us-west-2d")) == []


def test_a_used_address_of_the_head_is_reported_with_its_user() -> None:
    assert problems(replace(GOOD, taken={"10.20.32.10": "eni-1"})) == [
        ("10.20.32.10", "the head of mixed needs it, but eni-1 uses it", "use another address")
    ]
