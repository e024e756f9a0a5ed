"""Faster parsing: every field that the autoscaler uses is there, and times are right."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import boxes
from agent.offered import offering
from box.vpc_fixtures import Clients, LaunchNetwork
from corral.agent.cluster.boto_parsing import fast_session, parse_time, parse_used_fields
from corral.agent.cluster.ec2_client import Ec2
from corral.box.client import BoxStatus


@pytest.fixture
def quick(box: BoxStatus) -> Any:
    """The autoscaler's own client, of the box."""
    return parse_used_fields(
        fast_session().client("ec2", endpoint_url=box.url, region_name="us-east-1", **boxes.owner_keys(box))
    )


def test_a_lean_client_parses_launched_instances_as_another_does(
    aws: Clients, launch_network: LaunchNetwork, quick: Any
) -> None:
    template = offering(aws, launch_network, {"open": None}).templates["open"]
    made = Ec2(quick, "dev").launch(template, ["train-1", "train-2"], "token", at_least=2)
    assert made == Ec2(aws("ec2"), "dev").launch(template, ["train-1", "train-2"], "token", at_least=2)


def test_a_lean_client_parses_terminated_instances_as_another_does(
    aws: Clients, launch_network: LaunchNetwork, quick: Any
) -> None:
    template = offering(aws, launch_network, {"open": None}).templates["open"]
    made = Ec2(aws("ec2"), "dev").launch(template, ["train-1", "train-2"], "token", at_least=2)
    Ec2(quick, "dev").terminate([made[0].instance_id])
    assert Ec2(quick, "dev").instances() == Ec2(aws("ec2"), "dev").instances()


def test_a_lean_client_skips_fields_that_nothing_reads(aws: Clients, launch_network: LaunchNetwork, quick: Any) -> None:
    template = offering(aws, launch_network, {"open": None}).templates["open"]
    Ec2(quick, "dev").launch(template, ["train-1"], "token", at_least=1)
    (reservation,) = quick.describe_instances()["Reservations"]
    assert "NetworkInterfaces" not in reservation["Instances"][0]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-11-21T08:22:00.000Z", datetime(2026, 11, 21, 8, 22, tzinfo=UTC)),
        ("2026-11-21T08:22:00Z", datetime(2026, 11, 21, 8, 22, tzinfo=UTC)),
        ("Sat, 21 Nov 2026 08:22:00 GMT", datetime(2026, 11, 21, 8, 22, tzinfo=UTC)),
        (1795249320, datetime(2026, 11, 21, 8, 22, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_every_form(text: Any, read: datetime) -> None:
    assert parse_time(text) == read
