"""Ctrl-C in an up, and kill -9 for its box: it says what happened, and the next command continues."""

from __future__ import annotations

import signal

import pytest

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


def test_a_box_that_was_killed_is_named_and_the_next_command_continues(desk: Desk) -> None:
    process = begun(desk, "up", "created", 1)
    pid = control.status(desk.box).pid
    assert pid is not None
    kill([pid])
    said, _ = process.communicate()
    assert "the box does not answer: its daemon has stopped or was killed" in said
    assert "`corral box start` starts it" in said
    assert desk.run("up", "dev", "--yes").returncode == 0
    assert numbers(desk) == {"base": (0, 0, 38), "cluster": (0, 0, 3)}
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert desk.left() == {}
