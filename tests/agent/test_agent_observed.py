"""What the keeper learns of nodes from Slurm alone: that they are up, are taken back, are drained, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from corral.agent.events import Event, Journal
from corral.agent.observed import News, Seen, Told, comment_of, news, seen_now, tell, told_in
from corral.agent.world import Instance, SlurmNode

NOTICE = "corral: notice at 2026-11-21T22:41:00Z, ends at 2026-11-21T22:43:00Z"
UP_AT = 1795300809.0
NODE = SlurmNode(name="train-1", states=frozenset({"IDLE", "CLOUD"}), started="2026-11-21T22:40:09")
INSTANCE = Instance(instance_id="i-1", node="train-1", state="running", address="10.64.0.9", launched_at=1795300800.0)


def changed(node: SlurmNode, **fields: object) -> SlurmNode:
    kept = {name: getattr(node, name) for name in ("name", "states", "started", "comment", "reason")}
    return SlurmNode(**{**kept, **fields})


def test_a_node_that_registers_is_told_with_the_seconds_since_its_launch() -> None:
    assert list(news({}, [NODE], [INSTANCE], 0.0)) == [
        News(
            event=Event.UP,
            node="train-1",
            text="train-1 is up, 9 s after its launch",
            at=UP_AT,
            facts={"instances": {"train-1": "i-1"}, "boot_s": 9},
        )
    ]


def test_slurms_time_is_this_machines() -> None:
    assert [one.at for one in news({}, [NODE], [], 3600.0)] == [UP_AT - 3600]


def test_a_node_that_boots_is_not_up_by_its_former_machines_time() -> None:
    booting = changed(NODE, states=frozenset({"IDLE", "CLOUD", "POWERING_UP"}))
    assert list(news({}, [booting], [INSTANCE], 0.0)) == []


def test_what_was_seen_is_told_once() -> None:
    assert list(news(seen_now({}, [NODE]), [NODE], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("state", ["NOT_RESPONDING", "UNKNOWN", "DOWN", "POWERING_UP", "POWERING_DOWN", "POWERED_DOWN"])
def test_a_node_that_slurm_did_not_hear_for_a_while_is_not_up_again(state: str) -> None:
    silent = changed(NODE, states=frozenset({"CLOUD", state}))
    before = seen_now(seen_now({}, [NODE]), [silent])
    assert list(news(before, [NODE], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("started", ["None", "Unknown", ""])
def test_while_slurm_does_not_know_since_when_a_node_is_up_nothing_is_told(started: str) -> None:
    assert list(news(seen_now({}, [NODE]), [changed(NODE, started=started)], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("started", ["None", "Unknown", ""])
def test_a_node_whose_start_slurm_knows_again_is_not_up_again(started: str) -> None:
    before = seen_now(seen_now({}, [NODE]), [changed(NODE, started=started)])
    assert list(news(before, [NODE], [INSTANCE], 0.0)) == []


@pytest.mark.parametrize("state", ["IDLE", "NOT_RESPONDING", "POWERED_DOWN"])
def test_a_node_whose_slurmd_has_begun_anew_is_up_again(state: str) -> None:
    before = seen_now(seen_now({}, [NODE]), [changed(NODE, states=frozenset({"CLOUD", state}))])
    anew = changed(NODE, started="2026-11-21T23:40:09")
    assert [(one.event, one.at) for one in news(before, [anew], [INSTANCE], 0.0)] == [(Event.UP, UP_AT + 3600)]


def test_a_notice_is_read_from_the_comment_also_where_the_machine_is_gone() -> None:
    gone = changed(NODE, states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}), comment=NOTICE)
    assert [(one.event, one.text, one.at) for one in news(seen_now({}, [NODE]), [gone], [], 0.0)] == [
        (Event.NOTICE, "train-1 is taken back at 22:43:00 UTC", 1795300860.0)
    ]


def test_a_comment_that_outlives_its_machine_is_no_second_notice() -> None:
    before = seen_now({}, [changed(NODE, states=frozenset({"IDLE", "POWERED_DOWN"}), comment=NOTICE)])
    assert [one.event for one in news(before, [changed(NODE, comment=NOTICE)], [INSTANCE], 0.0)] == [Event.UP]


def test_a_drained_node_is_told_with_its_reason() -> None:
    drained = changed(NODE, states=frozenset({"IDLE", "CLOUD", "DRAIN"}), reason="corral: i-1: Xid 79")
    assert [(one.event, one.text) for one in news(seen_now({}, [NODE]), [drained], [], 0.0)] == [
        (Event.DRAINED, "train-1: corral: i-1: Xid 79")
    ]


DRAINED = changed(NODE, states=frozenset({"IDLE", "CLOUD", "DRAIN"}), reason="corral: Xid 79", comment=NOTICE)


def kinds(file: Path) -> list[str]:
    return [json.loads(line)["event"] for line in file.read_text().splitlines()] if file.exists() else []


def looked(file: Path, *nodes: SlurmNode) -> list[str]:
    """The events after the first look of another keeper."""
    tell(Journal(file), None, nodes, [INSTANCE], zone_s=0.0)
    return kinds(file)


def test_a_keepers_first_look_tells_what_no_keeper_has_told(tmp_path: Path) -> None:
    assert looked(tmp_path / "events.jsonl", DRAINED) == ["up", "notice", "drained"]


def test_the_next_keepers_first_look_tells_nothing_again(tmp_path: Path) -> None:
    looked(tmp_path / "events.jsonl", DRAINED)
    assert looked(tmp_path / "events.jsonl", DRAINED) == ["up", "notice", "drained"]


def test_what_happened_while_no_keeper_ran_is_told_by_the_next(tmp_path: Path) -> None:
    looked(tmp_path / "events.jsonl", NODE)
    assert looked(tmp_path / "events.jsonl", DRAINED) == ["up", "notice", "drained"]


def test_what_slurm_knows_only_after_a_keepers_first_look_is_not_told_again(tmp_path: Path) -> None:
    looked(tmp_path / "events.jsonl", NODE)
    journal, unknown = Journal(tmp_path / "events.jsonl"), changed(NODE, started="None")
    first = tell(journal, None, [unknown], [INSTANCE], zone_s=0.0)
    tell(journal, first, [NODE], [INSTANCE], zone_s=0.0)
    assert kinds(tmp_path / "events.jsonl") == ["up"]


def test_a_node_that_is_drained_again_for_the_same_reason_is_told_again(tmp_path: Path) -> None:
    journal, last = Journal(tmp_path / "events.jsonl"), None
    looked(tmp_path / "events.jsonl", DRAINED)
    for node in (DRAINED, NODE, DRAINED):
        last = tell(journal, last, [node], [INSTANCE], zone_s=0.0)
    assert kinds(tmp_path / "events.jsonl") == ["up", "notice", "drained", "drained"]


def test_what_is_older_than_the_journal_was_told_in_lines_that_are_gone(tmp_path: Path) -> None:
    Journal(tmp_path / "events.jsonl").tell(Event.BEGAN, "", at=UP_AT + 1)
    assert looked(tmp_path / "events.jsonl", NODE) == ["keeper-began"]


def test_what_was_told_before_the_file_was_full_is_not_told_again(tmp_path: Path) -> None:
    looked(tmp_path / "events.1.jsonl", NODE)
    assert looked(tmp_path / "events.jsonl", NODE) == []


def test_a_torn_line_of_a_journal_says_nothing() -> None:
    assert told_in(['{"at": "2026-11-21T22:40:00Z", "event": "up", "no']) == Told()


def test_the_comment_of_a_notice_is_what_is_read() -> None:
    noticed = datetime(2026, 11, 21, 22, 41, tzinfo=UTC)
    assert comment_of(noticed, noticed.replace(minute=43)) == NOTICE


def test_a_node_that_never_had_a_machine_nor_a_comment_is_not_remembered() -> None:
    off = changed(NODE, name="train-2", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}))
    assert seen_now({}, [off, NODE]) == {"train-1": Seen(started=NODE.started, comment="", drains=False)}
