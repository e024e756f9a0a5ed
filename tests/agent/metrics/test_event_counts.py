"""What happened, counted from the event log that the autoscaler writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.events import Event, EventLog, rotated
from corral.agent.metrics.event_counts import EventCounts, EventFollower


@pytest.fixture
def journal(tmp_path: Path) -> EventLog:
    return EventLog(tmp_path / "events.jsonl")


@pytest.fixture
def follower(tmp_path: Path) -> EventFollower:
    return EventFollower(file=tmp_path / "events.jsonl")


def launch(journal: EventLog, offer: str = "train-0-spot-a") -> None:
    journal.log_event(Event.LAUNCHED, "train-[1-2]", nodes="train-[1-2]", offer=offer)


def test_a_launch_counts_once_however_many_machines_it_has(journal: EventLog, follower: EventFollower) -> None:
    launch(journal)
    assert dict(follower.follow().launches) == {("train", "train-0-spot-a", "launched"): 1}


def test_a_refusal_and_a_request_without_any_offer_are_outcomes_too(journal: EventLog, follower: EventFollower) -> None:
    journal.log_event(Event.REFUSED, "-", nodes="train-1", offer="train-0-spot-a", kind="capacity")
    journal.log_event(Event.LAUNCH_FAILED, "-", nodes="train-1", jobs=[3])
    assert dict(follower.follow().launches) == {
        ("train", "train-0-spot-a", "refused"): 1,
        ("train", "", "failed"): 1,
    }


def test_a_boot_has_the_seconds_that_its_event_has(journal: EventLog, follower: EventFollower) -> None:
    journal.log_event(Event.UP, "-", nodes="train-1", boot_s=187)
    journal.log_event(Event.UP, "slurmd restarted, no launch is known", nodes="train-2")
    assert follower.follow().boots == {"train": [187.0]}


def test_a_notice_counts_for_its_queue(journal: EventLog, follower: EventFollower) -> None:
    journal.log_event(Event.NOTICE, "-", nodes="train-2", ends="2026-11-28T03:00:00Z")
    assert dict(follower.follow().notices) == {"train": 1}


def test_each_line_is_counted_once(journal: EventLog, follower: EventFollower) -> None:
    launch(journal)
    follower.follow()
    launch(journal)
    assert follower.follow().launches.total() == 2


def test_lines_are_counted_across_a_rotation(journal: EventLog, follower: EventFollower, tmp_path: Path) -> None:
    launch(journal)
    follower.follow()
    launch(journal)
    (tmp_path / "events.jsonl").rename(rotated(tmp_path / "events.jsonl"))
    launch(journal)
    assert follower.follow().launches.total() == 3


def test_a_restarted_agent_counts_the_predecessor_too(
    journal: EventLog, follower: EventFollower, tmp_path: Path
) -> None:
    launch(journal)
    (tmp_path / "events.jsonl").rename(rotated(tmp_path / "events.jsonl"))
    launch(journal)
    assert follower.follow().launches.total() == 2


def test_a_line_that_is_still_written_counts_once_it_is_whole(
    journal: EventLog, follower: EventFollower, tmp_path: Path
) -> None:
    launch(journal)
    whole = (tmp_path / "events.jsonl").read_bytes()
    (tmp_path / "events.jsonl").write_bytes(whole[:-10])
    before = follower.follow().launches.total()
    (tmp_path / "events.jsonl").write_bytes(whole)
    assert (before, follower.follow().launches.total()) == (0, 1)


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "launched", "nodes": "train-1"',
        '{"event": "launched", "nodes": "../etc", "offer": "x"}',
        '{"event": "launched"}',
        '["event": "launched"]',
        '{"event": "up", "nodes": "train-1", "boot_s": "soon"}',
        '{"event": "up", "nodes": "train-1", "boot_s": -7}',
        "",
    ],
)
def test_a_line_that_cannot_be_read_counts_as_nothing(line: str) -> None:
    counts = EventCounts()
    counts.add(line)
    assert counts == EventCounts()


def test_a_head_without_events_counts_nothing(follower: EventFollower) -> None:
    assert follower.follow() == EventCounts()
