"""What the keeper remembers: how long offers rest, what EC2 does not show yet; and that it is never half written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.agent import refusals
from corral.agent.budget import Budget
from corral.agent.memory import (
    Cold,
    Intent,
    Memory,
    awaiting,
    chilled,
    concluded,
    ending,
    instances,
    intending,
    load,
    save,
    tidied,
    warmed,
)
from corral.agent.refusals import Kind
from corral.agent.world import Instance
from corral.model.jsons import to_line

NOW = 1_790_000_000.0
ONE = Instance(instance_id="i-1", node="train-1", state="running", address="10.0.0.1", launched_at=NOW)
INTENT = Intent(offer="spot", nodes=("train-1",), at_least=1, token="t")


def rests(*refusals: tuple[float, Kind]) -> float:
    """How long the offer rests after the last of these refusals, each so many seconds after the first."""
    memory = Memory()
    for after, kind in refusals:
        memory = chilled(memory, "spot", kind, "no", NOW + after)
    return memory.cold["spot"].until - NOW - refusals[-1][0]


@pytest.mark.parametrize(
    ("refusals", "seconds"),
    [
        ([(0, Kind.CAPACITY)], 600),
        ([(0, Kind.CAPACITY), (600, Kind.CAPACITY)], 1200),
        ([(0, Kind.CAPACITY), (600, Kind.CAPACITY), (1800, Kind.CAPACITY)], 2400),
        ([(0, Kind.CAPACITY), (600, Kind.CAPACITY), (1800, Kind.CAPACITY), (4200, Kind.CAPACITY)], 3600),
        ([(0, Kind.EARLY_DEATH)], 600),
        ([(0, Kind.QUOTA)], 3600),
        ([(0, Kind.PERMISSION), (3600, Kind.PERMISSION)], 3600),
        ([(after, Kind.NOT_BEGUN) for after in range(0, 3600, 60)], 60),
        ([(0, Kind.NOT_BEGUN), (60, Kind.NOT_BEGUN), (120, Kind.CAPACITY)], 600),
    ],
)
def test_an_offer_rests_the_longer_the_more_often_it_refused(
    refusals: list[tuple[float, Kind]], seconds: float
) -> None:
    assert rests(*refusals) == seconds


def test_an_offer_rests_until_its_block_begins_and_no_longer() -> None:
    cold = awaiting(Memory(), {"later": NOW + 1500, "begun": NOW}, NOW).cold
    assert {offer: (held.until, held.why) for offer, held in cold.items()} == {
        "later": (NOW + 1500, "its capacity block begins at 2026-09-21 14:38 UTC")
    }


def test_many_nodes_of_one_refusal_are_one() -> None:
    once = chilled(Memory(), "spot", Kind.EARLY_DEATH, "no", NOW)
    assert chilled(once, "spot", Kind.EARLY_DEATH, "no", NOW + 5) == once


def test_an_offer_that_gave_what_was_asked_has_no_strikes() -> None:
    assert warmed(chilled(Memory(), "spot", Kind.CAPACITY, "no", NOW), "spot") == Memory()


def test_a_strike_is_forgotten_two_hours_after_its_rest() -> None:
    memory = chilled(Memory(), "spot", Kind.CAPACITY, "no", NOW)
    assert [tidied(memory, [], [], NOW + 600 + hours * 3600).cold == {} for hours in (1, 2)] == [False, True]


def test_a_launch_that_ec2_does_not_show_yet_is_there() -> None:
    memory = concluded(Memory(), "1-1 train 0", [ONE])
    assert instances(memory, [], NOW + 60) == (ONE,)


def test_a_launch_that_ec2_does_not_show_after_two_minutes_is_not_there() -> None:
    assert instances(concluded(Memory(), "1-1 train 0", [ONE]), [], NOW + 121) == ()


def test_what_was_ended_is_gone_although_ec2_still_shows_it() -> None:
    memory = ending(Memory(), ["i-1"], NOW)
    assert [instances(memory, [ONE], NOW + after) for after in (60, 100)] == [(), (ONE,)]


def test_what_ec2_shows_as_ended_is_gone() -> None:
    assert instances(Memory(), [replace(ONE, state="shutting-down")], NOW) == ()


def test_what_is_of_no_use_is_forgotten() -> None:
    memory = concluded(intending(Memory(counted=("i-0",)), "9-9 cpu 0", INTENT), "1-1 train 0", [ONE])
    assert tidied(ending(memory, ["i-7"], NOW), ["2-2"], [ONE], NOW + 200) == Memory()


def test_a_note_that_waits_keeps_its_launch() -> None:
    memory = intending(Memory(), "1-1 train 0", INTENT)
    assert tidied(memory, ["1-1"], [], NOW) == memory


def test_the_next_launch_of_a_wish_is_another_one() -> None:
    memory = concluded(intending(Memory(), "1-1 train 0", INTENT), "1-1 train 0", [])
    assert (memory.intents, memory.tries) == ({}, {"1-1 train 0": 1})


WHOLE = Memory(
    cold={"spot": Cold(until=NOW, strikes=2, kind=Kind.QUOTA, why="no")},
    intents={"1-1 train 0": INTENT},
    launched=(ONE,),
    ended={"i-2": NOW},
    wrong={"train-2": NOW},
)


def test_what_was_saved_is_what_is_loaded(tmp_path: Path) -> None:
    save(WHOLE, tmp_path / "keeper.json")
    assert load(tmp_path / "keeper.json") == WHOLE


def test_a_keeper_without_a_memory_begins_with_nothing(tmp_path: Path) -> None:
    assert load(tmp_path / "keeper.json") == Memory()


def rewritten(file: Path, change: Callable[[dict[str, Any]], object]) -> Memory:
    """What is loaded where a keeper of another version has written the file: the whole of it, changed so."""
    held = json.loads(to_line(WHOLE))
    change(held)
    file.write_text(json.dumps(held))
    return load(file)


def test_a_field_that_an_older_keeper_did_not_write_begins_anew(tmp_path: Path) -> None:
    assert rewritten(tmp_path / "keeper.json", lambda held: held.pop("wrong")) == replace(WHOLE, wrong={})


def test_a_field_of_a_machine_that_an_older_keeper_did_not_write_begins_anew(tmp_path: Path) -> None:
    one = replace(ONE, launched_at=0.0)
    found = rewritten(tmp_path / "keeper.json", lambda held: held["launched"][0].pop("launched_at"))
    assert found == replace(WHOLE, launched=(one,))


def test_a_field_that_a_newer_keeper_wrote_is_left_out(tmp_path: Path) -> None:
    assert rewritten(tmp_path / "keeper.json", lambda held: held.update(other={}, more=1)) == WHOLE


def test_what_has_no_default_cannot_be_missing(tmp_path: Path) -> None:
    assert rewritten(tmp_path / "keeper.json", lambda held: held["cold"]["spot"].pop("until")) == Memory()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cold": 1}'])
def test_a_memory_that_cannot_be_read_is_set_aside(tmp_path: Path, text: str) -> None:
    (tmp_path / "keeper.json").write_text(text)
    assert (load(tmp_path / "keeper.json"), [one.name for one in tmp_path.iterdir()]) == (Memory(), ["keeper.broken"])


@pytest.mark.parametrize(
    ("spent", "waits"),
    [
        ([(0.0, 1000)], 0.0),
        ([(0.0, 1000), (0.0, 100)], 50.0),
        ([(0.0, 1000), (50.0, 100)], 0.0),
        ([(0.0, 1000), (49.0, 100)], 1.0),
    ],
)
def test_a_budget_of_a_thousand_comes_back_two_a_second(spent: list[tuple[float, int]], waits: float) -> None:
    budget, wait = Budget(most=1000, per_s=2), 0.0
    for at, amount in spent:
        budget, wait = budget.spend(amount, at)
    assert wait == waits


def test_how_long_an_offer_rests_can_be_said() -> None:
    held = chilled(Memory(), "spot", Kind.CAPACITY, "no", NOW, refusals.rests(5))
    assert held.cold["spot"].until == NOW + 5
