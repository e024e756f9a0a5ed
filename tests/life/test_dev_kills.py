"""kill -9 in the middle of up and of down of `dev`, at points drawn by a seed: nothing is lost, nothing is doubled.

Whatever is made twice is either in the state, whose numbers would differ, or left in the box after the last down. All
calls of this life, those that look for what was lost among them, are held against the deployer's policies.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest

from boxes import running_box
from corral.plan.deployer import allows, deployer_policies, permission, seen_actions
from desks import Desk, begun, family, furnished, is_engine, kill, numbers

pytestmark = [pytest.mark.pulumi, pytest.mark.box]
SEED = 20261121
COMMAND, ENGINE, ALL = "the command", "the engine", "everything"
# Calls of the box's own convenience: it makes the bucket that stands for the user's data. See engine/belongings.py.
ONLY_IN_THE_BOX = {"s3:ListAllMyBuckets"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    place = tmp_path_factory.mktemp("kills")
    with running_box(place / "box"):
        yield Desk(project=furnished(place / "project", small=False), box=place / "box")


def cut_down(desk: Desk, verb: str, word: str, after: int, victim: str, *options: str) -> None:
    """Begins the command and, after so many lines that begin with the word, kills it, or its engine, or all."""
    process = begun(desk, verb, word, after, *options)
    members = family(process.pid)
    victims = {ALL: members, COMMAND: [process.pid], ENGINE: [one for one in members if is_engine(one)]}
    kill(victims[victim])
    process.communicate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What an up did after the one that continued, and what the box held after the downs."""

    again: dict[str, tuple[int, int, int]]
    kept: set[str]
    after_all: set[str]
    called: set[str]


@pytest.fixture(scope="module")
def seen(desk: Desk) -> Seen:
    dice = random.Random(SEED)
    for victim in (ALL, ENGINE, COMMAND, ALL):
        cut_down(desk, "up", "created", dice.randint(1, 14), victim)
    must(desk, "up", "dev", "--yes")
    again = numbers(desk)
    must(desk, "status", "dev")
    for victim in (COMMAND, ALL, ENGINE):
        cut_down(desk, "down", "deleted", dice.randint(1, 14), victim, "--with-base")
    must(desk, "down", "dev", "--with-base", "--yes")
    kept = set(desk.left())
    must(desk, "sweep")
    must(desk, "down", "dev", "--yes", "--delete-data", "dev")
    calls = map(json.loads, (desk.box / "calls.jsonl").read_text().splitlines())
    called = {permission(call["service"], call["action"]) for call in calls} - ONLY_IN_THE_BOX
    return Seen(again=again, kept=kept, after_all=set(desk.left()), called=called)


def must(desk: Desk, *arguments: str) -> None:
    done = desk.run(*arguments)
    assert done.returncode == 0, done.stderr


def test_an_up_that_was_killed_again_and_again_is_continued_and_nothing_is_doubled(seen: Seen) -> None:
    assert seen.again == {"base": (0, 0, 32), "cluster": (0, 0, 55)}


def test_a_down_that_was_killed_again_and_again_is_continued_and_leaves_what_is_kept(seen: Seen) -> None:
    assert seen.kept == {"efs/file-system", "kms/key", "s3/bucket"}


def test_after_that_the_data_goes_by_its_name(seen: Seen) -> None:
    assert seen.after_all == {"kms/key"}  # it waits for its deletion


def test_every_call_of_this_life_is_allowed_by_the_deployers_policies(seen: Seen) -> None:
    policies = deployer_policies(account="123456789012", region="us-east-1")
    assert sorted(action for action in seen.called if not allows(policies, action)) == []


def test_every_allowed_action_is_called_or_has_its_reason(seen: Seen) -> None:
    unused = [one for one in seen_actions() if not any(fnmatchcase(action, one) for action in seen.called)]
    assert sorted(unused) == []
