"""Fault matching and request throttling, on literal values."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from corral.box.api_errors import ApiError
from corral.box.ec2.throttling import bucket_of_action, charge_instances
from corral.box.faults.matching import FaultContext, after_hit, first_match
from corral.box.faults.records import DelayedVisibility, Fault, FaultScope, NoCapacity, Throttle
from corral.model.enums import Market
from corral.model.token_bucket import TokenBucket, full_bucket

NOON = datetime(2026, 11, 21, 12)
SPOT = FaultContext(
    call="ec2:RunInstances", type="p4d.24xlarge", zone="us-east-1a", market=Market.SPOT, names=frozenset({"train"})
)


@pytest.mark.parametrize(
    ("fault", "hits"),
    [
        (NoCapacity(), True),
        (
            NoCapacity(scope=FaultScope(type="p4d.24xlarge", zone="us-east-1a", market=Market.SPOT, target="train")),
            True,
        ),
        (NoCapacity(scope=FaultScope(type="p5.48xlarge")), False),
        (NoCapacity(scope=FaultScope(zone="us-east-1b")), False),
        (NoCapacity(scope=FaultScope(market=Market.ON_DEMAND)), False),
        (NoCapacity(scope=FaultScope(target="eval")), False),
        (NoCapacity(until=NOON + timedelta(seconds=1)), True),
        (NoCapacity(until=NOON), False),
        (NoCapacity(hits_left=0), False),
        (DelayedVisibility(), False),
    ],
)
def test_an_active_fault_matches_its_scope(fault: Fault, hits: bool) -> None:
    assert (first_match([fault], NoCapacity, SPOT, NOON) is fault) is hits


@pytest.mark.parametrize(
    ("call", "hits"),
    [("ec2:RunInstances", True), ("ec2:Run*", True), ("*", True), ("ec2:Describe*", False), ("s3:RunInstances", False)],
)
def test_a_fault_names_a_call_by_name_or_pattern(call: str, hits: bool) -> None:
    assert (first_match([Throttle(call=call)], Throttle, SPOT, NOON) is not None) is hits


def test_other_calls_are_not_matched_by_a_launch_fault() -> None:
    fault = Throttle(call="*", scope=FaultScope(zone="us-east-1a"))
    assert first_match([fault], Throttle, FaultContext(call="ec2:DescribeVpcs"), NOON) is None


def test_the_oldest_of_several_faults_applies() -> None:
    old, new = NoCapacity(hits_left=1), NoCapacity(hits_left=2)
    assert first_match([old, new], NoCapacity, SPOT, NOON) is old


def test_a_hit_uses_up_one_count() -> None:
    assert after_hit([hit := DelayedVisibility(hits_left=2)], hit) == (DelayedVisibility(hits_left=1),)


def test_the_last_hit_removes_the_fault() -> None:
    assert after_hit([hit := DelayedVisibility(hits_left=1), Throttle()], hit) == (Throttle(),)


@pytest.mark.parametrize(
    ("action", "parameters", "limit"),
    [
        ("RunInstances", (), full_bucket(capacity=5, refill_per_s=2)),
        ("StartInstances", (), full_bucket(capacity=5, refill_per_s=2)),
        ("TerminateInstances", ("InstanceId.1",), full_bucket(capacity=100, refill_per_s=5)),
        ("DescribeInstanceTopology", (), full_bucket(capacity=1, refill_per_s=1)),
        ("CreateSecurityGroup", (), full_bucket(capacity=50, refill_per_s=5)),
        ("DescribeSubnets", (), full_bucket(capacity=100, refill_per_s=20)),
        ("DescribeInstances", ("InstanceId.1",), full_bucket(capacity=50, refill_per_s=10)),
        ("DescribeInstances", ("Filter.1.Name",), full_bucket(capacity=100, refill_per_s=20)),
        ("DescribeInstances", ("MaxResults",), full_bucket(capacity=100, refill_per_s=20)),
    ],
)
def test_an_action_has_the_bucket_that_aws_documents(
    action: str, parameters: tuple[str, ...], limit: TokenBucket
) -> None:
    assert bucket_of_action(action, parameters) == limit


def test_instances_beyond_the_budget_are_refused_in_one_call_or_many() -> None:
    region = SimpleNamespace()
    charge_instances(region, "RunInstances", 600, 0)
    with pytest.raises(ApiError, match="Request limit exceeded"):
        charge_instances(region, "RunInstances", 601, 100)
