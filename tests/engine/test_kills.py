"""Ctrl-C in an up, and kill -9 for its box: it says what happened, and the next command continues."""

from __future__ import annotations

import signal

import pytest

from boxes import client
from corral.box import control
from desks import Desk, begun, kill, numbers

pytestmark = [pytest.mark.pulumi, pytest.mark.box]


def test_ctrl_c_ends_in_order_and_says_that_the_next_command_continues(desk: Desk) -> None:
    process = begun(desk, "up", "created", 1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 130
    assert "run the same command again: it continues where this one stopped" in said
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert desk.left() == {}


def test_a_box_that_was_killed_is_named_and_what_it_made_without_an_answer_is_taken_over(desk: Desk) -> None:
    process = begun(desk, "up", "created", 1)
    pid = control.status(desk.box).pid
    assert pid is not None
    kill([pid])
    said, _ = process.communicate()
    assert "the box does not answer: its daemon has stopped or was killed" in said
    assert "`corral box start` starts it" in said
    control.start(desk.box)
    make_gateway(desk)
    continued = desk.run("up", "dev", "--yes")
    assert "things that they may have made are looked at" in continued.stdout
    assert numbers(desk) == {"base": (0, 0, 18), "cluster": (0, 0, 4)}
    assert len(control.inventory(desk.box)["ec2/internet-gateway"]) == 1
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert desk.left() == {}


def make_gateway(desk: Desk) -> None:
    """The internet gateway that was under way, as it is there if only the answer to its creation was lost."""
    tags = [{"Key": "Name", "Value": "gateway"}, {"Key": "corral:base", "Value": "dev"}]
    wanted = [{"ResourceType": "internet-gateway", "Tags": tags}]
    client(control.status(desk.box), "ec2").create_internet_gateway(TagSpecifications=wanted)
