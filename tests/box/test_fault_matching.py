"""Which fault hits what, and how tokens are counted: literal values, nothing runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from corral.box.ec2_rates import Bucket, Limit, charge_instances, limit_of, take
from corral.box.faults.matching import Occasion, after_hit, first
from corral.box.faults.records import Fault, Late, Market, NoCapacity, Throttle, Where
from corral.box.refusals import Refused

NOON = datetime(2026, 11, 21, 12)
SPOT = Occasion(
    call="ec2:RunInstances", type="p4d.24xlarge", zone="us-east-1a", market=Market.SPOT, names=frozenset({"train"})
)
TWO_A_SECOND = Limit(most=1000, per_s=2)


@pytest.mark.parametrize(
    ("fault", "hits"),
    [
        (NoCapacity(), True),
        (NoCapacity(where=Where(type="p4d.24xlarge", zone="us-east-1a", market=Market.SPOT, of="train")), True),
        (NoCapacity(where=Where(type="p5.48xlarge")), False),
        (NoCapacity(where=Where(zone="us-east-1b")), False),
        (NoCapacity(where=Where(market=Market.ON_DEMAND)), False),
        (NoCapacity(where=Where(of="eval")), False),
        (NoCapacity(until=NOON + timedelta(seconds=1)), True),
        (NoCapacity(until=NOON), False),
        (NoCapacity(left=0), False),
        (Late(), False),
    ],
)
def test_a_fault_hits_what_it_means_while_it_is_in_force(fault: Fault, hits: bool) -> None:
    assert (first([fault], NoCapacity, SPOT, NOON) is fault) is hits


@pytest.mark.parametrize(
    ("call", "hits"),
    [("ec2:RunInstances", True), ("ec2:Run*", True), ("*", True), ("ec2:Describe*", False), ("s3:RunInstances", False)],
)
def test_a_call_is_meant_by_its_name_or_a_pattern(call: str, hits: bool) -> None:
    assert (first([Throttle(call=call)], Throttle, SPOT, NOON) is not None) is hits


def test_a_call_that_is_no_launch_is_not_hit_by_a_fault_of_launches() -> None:
    fault = Throttle(call="*", where=Where(zone="us-east-1a"))
    assert first([fault], Throttle, Occasion(call="ec2:DescribeVpcs"), NOON) is None


def test_of_several_faults_the_oldest_strikes() -> None:
    old, new = NoCapacity(left=1), NoCapacity(left=2)
    assert first([old, new], NoCapacity, SPOT, NOON) is old


def test_a_fault_that_has_struck_has_one_time_less() -> None:
    assert after_hit([hit := Late(left=2)], hit) == (Late(left=1),)


def test_a_fault_that_has_struck_for_the_last_time_is_gone() -> None:
    assert after_hit([hit := Late(left=1), Throttle()], hit) == (Throttle(),)


@pytest.mark.parametrize(
    ("action", "parameters", "limit"),
    [
        ("RunInstances", (), Limit(most=5, per_s=2)),
        ("TerminateInstances", ("InstanceId.1",), Limit(most=100, per_s=5)),
        ("CreateSecurityGroup", (), Limit(most=50, per_s=5)),
        ("DescribeSubnets", (), Limit(most=100, per_s=20)),
        ("DescribeInstances", ("InstanceId.1",), Limit(most=50, per_s=10)),
        ("DescribeInstances", ("Filter.1.Name",), Limit(most=100, per_s=20)),
        ("DescribeInstances", ("MaxResults",), Limit(most=100, per_s=20)),
    ],
)
def test_an_action_has_the_bucket_that_aws_documents(action: str, parameters: tuple[str, ...], limit: Limit) -> None:
    assert limit_of(action, parameters) == limit


@pytest.mark.parametrize(
    ("bucket", "count", "left", "enough"),
    [
        (None, 1000, 0, True),
        (None, 1001, 1000, False),
        (Bucket(tokens=0, at=90), 20, 0, True),
        (Bucket(tokens=0, at=90), 21, 20, False),
        (Bucket(tokens=900, at=0), 1, 999, True),
    ],
)
def test_a_bucket_refills_and_refuses_what_it_does_not_hold(
    bucket: Bucket | None, count: int, left: float, enough: bool
) -> None:
    assert take(bucket, TWO_A_SECOND, count, 100) == (Bucket(tokens=left, at=100), enough)


def test_instances_beyond_the_budget_are_refused_in_one_call_or_many() -> None:
    region = SimpleNamespace()
    charge_instances(region, "RunInstances", 600, 0)
    with pytest.raises(Refused, match="Request limit exceeded"):
        charge_instances(region, "RunInstances", 601, 100)
