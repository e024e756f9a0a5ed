"""Node events derived from Slurm: that nodes are up, reclaimed or drained, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from corral.agent.cluster.models import Instance, SlurmNode
from corral.agent.cluster.node_events import (
    NodeEvent,
    NodeSnapshot,
    Reported,
    log_new_events,
    new_events,
    notice_comment,
    reported_in,
    seen_now,
)
from corral.agent.events import Event, EventLog

NOTICE = "corral: notice at 2026-11-21T22:41:00Z, ends at 2026-11-21T22:43:00Z"
UP_AT = 1795300809.0
NODE = SlurmNode(name="train-1", states=frozenset({"IDLE", "CLOUD"}), started="2026-11-21T22:40:09")
INSTANCE = Instance(instance_id="i-1", node="train-1", state="running", address="10.64.0.9", launched_at=1795300800.0)


def changed(node: SlurmNode, **fields: object) -> SlurmNode:
    kept = {name: getattr(node, name) for name in ("name", "states", "started", "comment", "reason")}
    return SlurmNode(**{**kept, **fields})


def test_a_node_that_registers_is_reported_with_the_seconds_since_its_launch() -> None:
    assert list(new_events({}, [NODE], [INSTANCE], 0.0)) == [
        NodeEvent(
            event=Event.UP,
            node="train-1",
            text="train-1 is up, 9 s after its launch",
            at=UP_AT,
            facts={"instances": {"train-1": "i-1"}, "boot_s": 9},
        )
    ]


def test_slurms_times_are_local() -> None:
    assert [one.at for one in new_events({}, [NODE], [], 3600.0)] == [UP_AT - 3600]


def test_a_node_that_boots_is_not_up_by_its_former_machines_time() -> None:
    booting = changed(NODE, states=frozenset({"IDLE", "CLOUD", "POWERING_UP"}))
    assert list(new_events({}, [booting], [INSTANCE], 0.0)) == []


def test_an_event_is_reported_once() -> None:
    assert list(new_events(seen_now({}, [NODE]), [NODE], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("state", ["NOT_RESPONDING", "UNKNOWN", "DOWN", "POWERING_UP", "POWERING_DOWN", "POWERED_DOWN"])
def test_a_node_that_was_silent_for_a_while_is_not_up_again(state: str) -> None:
    silent = changed(NODE, states=frozenset({"CLOUD", state}))
    before = seen_now(seen_now({}, [NODE]), [silent])
    assert list(new_events(before, [NODE], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("started", ["None", "Unknown", ""])
def test_a_node_without_a_known_start_is_not_reported(started: str) -> None:
    assert list(new_events(seen_now({}, [NODE]), [changed(NODE, started=started)], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("started", ["None", "Unknown", ""])
def test_a_node_whose_start_slurm_knows_again_is_not_up_again(started: str) -> None:
    before = seen_now(seen_now({}, [NODE]), [changed(NODE, started=started)])
    assert list(new_events(before, [NODE], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("state", ["IDLE", "NOT_RESPONDING", "POWERED_DOWN"])
def test_a_node_whose_slurmd_has_restarted_is_up_again(state: str) -> None:
    before = seen_now(seen_now({}, [NODE]), [changed(NODE, states=frozenset({"CLOUD", state}))])
    restarted = changed(NODE, started="2026-11-21T23:40:09")
    assert [(one.event, one.at) for one in new_events(before, [restarted], [INSTANCE], 0.0)] == [
        (Event.UP, UP_AT + 3600)
    ]


def test_a_notice_is_read_from_the_comment_even_if_the_machine_is_gone() -> None:
    gone = changed(NODE, states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}), comment=NOTICE)
    assert [(one.event, one.text, one.at) for one in new_events(seen_now({}, [NODE]), [gone], [], 0.0)] == [
        (Event.NOTICE, "train-1 is reclaimed at 22:43:00 UTC", 1795300860.0)
    ]


def test_a_comment_that_outlives_its_machine_is_no_second_notice() -> None:
    before = seen_now({}, [changed(NODE, states=frozenset({"IDLE", "POWERED_DOWN"}), comment=NOTICE)])
    assert [one.event for one in new_events(before, [changed(NODE, comment=NOTICE)], [INSTANCE], 0.0)] == [Event.UP]


def test_a_drained_node_is_reported_with_its_reason() -> None:
    drained = changed(NODE, states=frozenset({"IDLE", "CLOUD", "DRAIN"}), reason="corral: i-1: Xid 79")
    assert [(one.event, one.text, one.facts) for one in new_events(seen_now({}, [NODE]), [drained], [], 0.0)] == [
        (Event.DRAINED, "train-1: corral: i-1: Xid 79", {"reason": "corral: i-1: Xid 79"})
    ]


DRAINED = changed(NODE, states=frozenset({"IDLE", "CLOUD", "DRAIN"}), reason="corral: Xid 79", comment=NOTICE)


def kinds(file: Path) -> list[str]:
    return [json.loads(line)["event"] for line in file.read_text().splitlines()] if file.exists() else []


def looked(file: Path, *nodes: SlurmNode) -> list[str]:
    """The events after the first look of another autoscaler."""
    log_new_events(EventLog(file), None, nodes, [INSTANCE], zone_s=0.0)
    return kinds(file)


def test_an_autoscalers_first_look_reports_what_no_autoscaler_has_reported(tmp_path: Path) -> None:
    assert looked(tmp_path / "events.jsonl", DRAINED) == ["up", "notice", "drained"]


def test_the_next_autoscalers_first_look_reports_nothing_again(tmp_path: Path) -> None:
    looked(tmp_path / "events.jsonl", DRAINED)
    assert looked(tmp_path / "events.jsonl", DRAINED) == ["up", "notice", "drained"]


def test_what_happened_while_no_autoscaler_ran_is_reported_by_the_next(tmp_path: Path) -> None:
    looked(tmp_path / "events.jsonl", NODE)
    assert looked(tmp_path / "events.jsonl", DRAINED) == ["up", "notice", "drained"]


def test_what_slurm_knows_only_after_an_autoscalers_first_look_is_not_reported_again(tmp_path: Path) -> None:
    looked(tmp_path / "events.jsonl", NODE)
    journal, unknown = EventLog(tmp_path / "events.jsonl"), changed(NODE, started="None")
    first = log_new_events(journal, None, [unknown], [INSTANCE], zone_s=0.0)
    log_new_events(journal, first, [NODE], [INSTANCE], zone_s=0.0)
    assert kinds(tmp_path / "events.jsonl") == ["up"]


def test_a_node_that_is_drained_again_for_the_same_reason_is_reported_again(tmp_path: Path) -> None:
    journal, last = EventLog(tmp_path / "events.jsonl"), None
    looked(tmp_path / "events.jsonl", DRAINED)
    for node in (DRAINED, NODE, DRAINED):
        last = log_new_events(journal, last, [node], [INSTANCE], zone_s=0.0)
    assert kinds(tmp_path / "events.jsonl") == ["up", "notice", "drained", "drained"]


def test_what_is_older_than_the_journal_was_reported_in_lines_that_are_gone(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").log_event(Event.AUTOSCALER_STARTED, "", at=UP_AT + 1)
    assert looked(tmp_path / "events.jsonl", NODE) == ["autoscaler-started"]


def test_what_was_reported_before_the_file_was_full_is_not_reported_again(tmp_path: Path) -> None:
    looked(tmp_path / "events.1.jsonl", NODE)
    assert looked(tmp_path / "events.jsonl", NODE) == []


def test_a_truncated_line_is_skipped() -> None:
    assert reported_in(['{"at": "2026-11-21T22:40:00Z", "event": "up", "no']) == Reported()


def test_the_comment_of_a_notice_is_what_is_read() -> None:
    noticed = datetime(2026, 11, 21, 22, 41, tzinfo=UTC)
    assert notice_comment(noticed, noticed.replace(minute=43)) == NOTICE


def test_a_node_that_never_had_a_machine_nor_a_comment_is_not_remembered() -> None:
    off = changed(NODE, name="train-2", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}))
    assert seen_now({}, [off, NODE]) == {"train-1": NodeSnapshot(started=NODE.started, comment="", draining=False)}


WRONG_NOTICES = (
    "corral: notice at x, ends at y",
    "corral: notice at 2026-13-41T22:41:00Z, ends at 2026-11-21T22:43:00Z",
    "corral: notice at 2026-11-21T22:41:00Z, ends at 2026-11-21T22:43:00Z\x1b]0;",
    "corral: notice at 2026-11-21T22:41:00Z",
)


@pytest.mark.parametrize("comment", WRONG_NOTICES)
def test_a_comment_that_is_no_notice_is_ignored(comment: str) -> None:
    node = changed(NODE, comment=comment)
    assert [one.event for one in new_events({}, [node], [], 0.0)] == [Event.UP]


def test_comments_that_are_no_notices_are_counted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    nodes = [changed(NODE, comment=WRONG_NOTICES[0]), SlurmNode(name="train-2", states=NODE.states, comment=NOTICE)]
    journal, last = EventLog(tmp_path / "events.jsonl"), None
    for _ in range(2):
        last = log_new_events(journal, last, nodes, [], zone_s=0.0)
    assert [one.getMessage() for one in caplog.records if one.name == "corral.agent.cluster.node_events"] == [
        "ignored 1 comments that are not notices: train-1"
    ]


def test_a_comment_of_a_person_is_not_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log_new_events(EventLog(tmp_path / "events.jsonl"), None, [changed(NODE, comment="fan is loud")], [], zone_s=0.0)
    assert [one for one in caplog.records if one.name == "corral.agent.cluster.node_events"] == []
