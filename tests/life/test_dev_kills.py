"""kill -9 in the middle of up and of down of `dev`, at points drawn by a seed: nothing is lost, nothing is doubled.

Whatever is made twice is either in the state, whose numbers would differ, or left in the box after the last down.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxes import running_box
from desks import Desk, begun, family, furnished, is_engine, kill, numbers

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
SEED = 20261121
COMMAND, ENGINE, ALL = "the command", "the engine", "everything"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with running_box(tmp_path / "box"):
        yield Desk(project=furnished(tmp_path / "project", small=False), box=tmp_path / "box")


def cut_down(desk: Desk, verb: str, word: str, after: int, victim: str, *options: str) -> None:
    """Begins the command and, after so many lines that begin with the word, kills it, or its engine, or all."""
    process = begun(desk, verb, word, after, *options)
    members = family(process.pid)
    victims = {ALL: members, COMMAND: [process.pid], ENGINE: [one for one in members if is_engine(one)]}
    kill(victims[victim])
    process.communicate()


def test_an_up_that_was_killed_again_and_again_is_continued_and_so_is_a_down(desk: Desk) -> None:
    dice = random.Random(SEED)
    for victim in (ALL, ENGINE, COMMAND, ALL):
        cut_down(desk, "up", "created", dice.randint(1, 14), victim)
    assert desk.run("up", "dev", "--yes").returncode == 0
    assert numbers(desk) == {"base": (0, 0, 32), "cluster": (0, 0, 51)}
    before = set(desk.left()) - {"s3/object"}
    for victim in (COMMAND, ALL, ENGINE):
        cut_down(desk, "down", "deleted", dice.randint(1, 14), victim, "--with-base")
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    assert set(desk.left()) == {"efs/file-system", "kms/key", "s3/bucket"} <= before
