"""kill -9 in the middle of up and of down: the next command comes clean, nothing is lost and nothing is doubled."""

from __future__ import annotations

import json
import signal

import pytest
from desks import Desk, begun, family, is_engine, kill

from corral.box import control

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
ALL, COMMAND, ENGINE = "everything", "the command", "the engine"


def cut_down(desk: Desk, verb: str, word: str, after: int, victim: str, *options: str) -> None:
    """Begins the command and kills it, or all that it started, or its engine."""
    process = begun(desk, verb, word, after, *options)
    members = family(process.pid)
    victims = {ALL: members, COMMAND: [process.pid], ENGINE: [one for one in members if is_engine(one)]}
    kill(victims[victim])
    process.communicate()


def numbers(desk: Desk) -> dict[str, tuple[int, int, int]]:
    """What an up does now: created, changed or deleted, and left as it is, by stack."""
    done = desk.run("up", "dev", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    stacks = {name: found[name] for name in ("base", "cluster")}
    return {
        name: (one["created"], one["updated"] + one["replaced"] + one["deleted"], one["same"])
        for name, one in stacks.items()
    }


def test_an_up_that_was_killed_again_and_again_is_continued_and_so_is_a_down(desk: Desk) -> None:
    cut_down(desk, "up", "created", 1, ALL)
    cut_down(desk, "up", "created", 4, ENGINE)
    cut_down(desk, "up", "created", 3, COMMAND)
    cut_down(desk, "up", "created", 4, ALL)
    assert desk.run("up", "dev", "--yes").returncode == 0
    assert numbers(desk) == {"base": (0, 0, 38), "cluster": (0, 0, 3)}
    cut_down(desk, "down", "deleted", 2, COMMAND, "--with-base")
    cut_down(desk, "down", "deleted", 6, ALL, "--with-base")
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert desk.left() == {}


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
