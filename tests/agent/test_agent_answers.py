"""Answers that are read quickly: all that the keeper knows of an instance is there, and no time is misread."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.offered import offering
from box.ground import Clients, Ground
from corral.agent.answers import lean, moment, quick_session
from corral.agent.ec2 import Ec2
from corral.box import control
from corral.box.control import BoxStatus


@pytest.fixture
def quick(box: BoxStatus) -> Any:
    """The keeper's own client, of the box."""
    keys = {"aws_access_key_id": control.ACCESS_KEY, "aws_secret_access_key": "corral-box"}
    return lean(quick_session().client("ec2", endpoint_url=box.url, region_name="us-east-1", **keys))


def test_a_lean_client_knows_of_launched_instances_what_another_knows(aws: Clients, ground: Ground, quick: Any) -> None:
    template = offering(aws, ground, {"open": None}).templates["open"]
    made = Ec2(quick, "dev").launch(template, ["train-1", "train-2"], "token", at_least=2)
    assert made == Ec2(aws("ec2"), "dev").launch(template, ["train-1", "train-2"], "token", at_least=2)


def test_a_lean_client_knows_of_ended_instances_what_another_knows(aws: Clients, ground: Ground, quick: Any) -> None:
    template = offering(aws, ground, {"open": None}).templates["open"]
    made = Ec2(aws("ec2"), "dev").launch(template, ["train-1", "train-2"], "token", at_least=2)
    Ec2(quick, "dev").terminate([made[0].instance_id])
    assert Ec2(quick, "dev").instances() == Ec2(aws("ec2"), "dev").instances()


def test_a_lean_client_leaves_out_what_nobody_reads(aws: Clients, ground: Ground, quick: Any) -> None:
    template = offering(aws, ground, {"open": None}).templates["open"]
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
    assert moment(text) == read
