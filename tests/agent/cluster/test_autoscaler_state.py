"""The autoscaler's own state: backoffs, launches that EC2 does not show yet, and a file that is written atomically."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.agent.cluster import launch_errors as refusals
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import Instance
from corral.agent.cluster.state import (
    AutoscalerState,
    Backoff,
    Intent,
    back_off,
    back_off_blocks_not_begun,
    clear_backoff,
    known_instances,
    load_state,
    prune,
    record_intent,
    record_launch,
    record_termination,
    save_state,
)
from corral.model.serialization import to_line

NOW = 1_790_000_000.0
ONE = Instance(instance_id="i-1", node="train-1", state="running", address="10.0.0.1", launched_at=NOW)
INTENT = Intent(offer="spot", nodes=("train-1",), at_least=1, token="t")


def last_backoff_s(*refusals: tuple[float, LaunchErrorKind]) -> float:
    """How long the offer rests after the last of these refusals, each so many seconds after the first."""
    memory = AutoscalerState()
    for after, kind in refusals:
        memory = back_off(memory, "spot", kind, "no", NOW + after)
    return memory.backoffs["spot"].until - NOW - refusals[-1][0]


@pytest.mark.parametrize(
    ("refusals", "seconds"),
    [
        ([(0, LaunchErrorKind.CAPACITY)], 600),
        ([(0, LaunchErrorKind.CAPACITY), (600, LaunchErrorKind.CAPACITY)], 1200),
        ([(0, LaunchErrorKind.CAPACITY), (600, LaunchErrorKind.CAPACITY), (1800, LaunchErrorKind.CAPACITY)], 2400),
        (
            [
                (0, LaunchErrorKind.CAPACITY),
                (600, LaunchErrorKind.CAPACITY),
                (1800, LaunchErrorKind.CAPACITY),
                (4200, LaunchErrorKind.CAPACITY),
            ],
            3600,
        ),
        ([(0, LaunchErrorKind.EARLY_TERMINATION)], 600),
        ([(0, LaunchErrorKind.QUOTA)], 3600),
        ([(0, LaunchErrorKind.PERMISSION), (3600, LaunchErrorKind.PERMISSION)], 3600),
        ([(after, LaunchErrorKind.NOT_BEGUN) for after in range(0, 3600, 60)], 60),
        ([(0, LaunchErrorKind.NOT_BEGUN), (60, LaunchErrorKind.NOT_BEGUN), (120, LaunchErrorKind.CAPACITY)], 600),
    ],
)
def test_an_offer_backs_off_longer_after_each_refusal(
    refusals: list[tuple[float, LaunchErrorKind]], seconds: float
) -> None:
    assert last_backoff_s(*refusals) == seconds


def test_an_offer_backs_off_until_its_block_begins_and_no_longer() -> None:
    cold = back_off_blocks_not_begun(AutoscalerState(), {"later": NOW + 1500, "begun": NOW}, NOW).backoffs
    assert {offer: (held.until, held.reason) for offer, held in cold.items()} == {
        "later": (NOW + 1500, "its capacity block begins at 2026-09-21 14:38 UTC")
    }


def test_a_refusal_of_many_nodes_counts_once() -> None:
    once = back_off(AutoscalerState(), "spot", LaunchErrorKind.EARLY_TERMINATION, "no", NOW)
    assert back_off(once, "spot", LaunchErrorKind.EARLY_TERMINATION, "no", NOW + 5) == once


def test_a_served_launch_clears_the_backoff() -> None:
    assert (
        clear_backoff(back_off(AutoscalerState(), "spot", LaunchErrorKind.CAPACITY, "no", NOW), "spot")
        == AutoscalerState()
    )


def test_refusals_are_not_counted_two_hours_after_a_backoff() -> None:
    memory = back_off(AutoscalerState(), "spot", LaunchErrorKind.CAPACITY, "no", NOW)
    assert [prune(memory, [], [], NOW + 600 + hours * 3600).backoffs == {} for hours in (1, 2)] == [False, True]


def test_a_launch_that_ec2_does_not_show_yet_exists() -> None:
    memory = record_launch(AutoscalerState(), "1-1 train 0", [ONE])
    assert known_instances(memory, [], NOW + 60) == (ONE,)


def test_a_launch_that_ec2_does_not_show_after_two_minutes_does_not_exist() -> None:
    assert known_instances(record_launch(AutoscalerState(), "1-1 train 0", [ONE]), [], NOW + 121) == ()


def test_a_terminated_instance_is_gone_although_ec2_still_shows_it() -> None:
    memory = record_termination(AutoscalerState(), ["i-1"], NOW)
    assert [known_instances(memory, [ONE], NOW + after) for after in (60, 100)] == [(), (ONE,)]


def test_an_instance_that_ec2_shows_as_terminated_is_gone() -> None:
    assert known_instances(AutoscalerState(), [replace(ONE, state="shutting-down")], NOW) == ()


def test_entries_of_no_use_are_pruned() -> None:
    memory = record_launch(record_intent(AutoscalerState(counted=("i-0",)), "9-9 cpu 0", INTENT), "1-1 train 0", [ONE])
    assert prune(record_termination(memory, ["i-7"], NOW), ["2-2"], [ONE], NOW + 200) == AutoscalerState()


def test_a_waiting_request_keeps_its_launch() -> None:
    memory = record_intent(AutoscalerState(), "1-1 train 0", INTENT)
    assert prune(memory, ["1-1"], [], NOW) == memory


def test_the_next_launch_of_a_request_has_another_token() -> None:
    memory = record_launch(record_intent(AutoscalerState(), "1-1 train 0", INTENT), "1-1 train 0", [])
    assert (memory.intents, memory.tries) == ({}, {"1-1 train 0": 1})


WHOLE = AutoscalerState(
    backoffs={"spot": Backoff(until=NOW, refusals=2, kind=LaunchErrorKind.QUOTA, reason="no")},
    intents={"1-1 train 0": INTENT},
    launched=(ONE,),
    ended={"i-2": NOW},
    wrong_since={"train-2": NOW},
)


def test_what_was_saved_is_what_is_loaded(tmp_path: Path) -> None:
    save_state(WHOLE, tmp_path / "keeper.json")
    assert load_state(tmp_path / "keeper.json") == WHOLE


def test_an_autoscaler_without_a_state_file_starts_empty(tmp_path: Path) -> None:
    assert load_state(tmp_path / "keeper.json") == AutoscalerState()


def rewritten(file: Path, change: Callable[[dict[str, Any]], object]) -> AutoscalerState:
    """What is loaded where an autoscaler of another version has written the file: the whole of it, changed so."""
    held = json.loads(to_line(WHOLE))
    change(held)
    file.write_text(json.dumps(held))
    return load_state(file)


def test_a_field_that_an_older_autoscaler_did_not_write_has_its_default(tmp_path: Path) -> None:
    assert rewritten(tmp_path / "keeper.json", lambda held: held.pop("wrong_since")) == replace(WHOLE, wrong_since={})


def test_a_field_of_an_instance_that_an_older_autoscaler_did_not_write_has_its_default(tmp_path: Path) -> None:
    one = replace(ONE, launched_at=0.0)
    found = rewritten(tmp_path / "keeper.json", lambda held: held["launched"][0].pop("launched_at"))
    assert found == replace(WHOLE, launched=(one,))


def test_a_field_that_a_newer_autoscaler_wrote_is_dropped(tmp_path: Path) -> None:
    assert rewritten(tmp_path / "keeper.json", lambda held: held.update(other={}, more=1)) == WHOLE


def test_a_field_without_a_default_is_required(tmp_path: Path) -> None:
    assert rewritten(tmp_path / "keeper.json", lambda held: held["backoffs"]["spot"].pop("until")) == AutoscalerState()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"backoffs": 1}'])
def test_an_invalid_state_file_is_renamed(tmp_path: Path, text: str) -> None:
    (tmp_path / "keeper.json").write_text(text)
    assert (load_state(tmp_path / "keeper.json"), [one.name for one in tmp_path.iterdir()]) == (
        AutoscalerState(),
        ["keeper.broken"],
    )


def test_the_first_backoff_can_be_set() -> None:
    held = back_off(AutoscalerState(), "spot", LaunchErrorKind.CAPACITY, "no", NOW, refusals.backoff_policies(5))
    assert held.backoffs["spot"].until == NOW + 5
