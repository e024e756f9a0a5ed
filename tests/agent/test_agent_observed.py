"""What the keeper learns of nodes from Slurm alone: that they are up, are taken back, are drained, and when."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from corral.agent.events import Event, Journal
from corral.agent.observed import News, Seen, comment_of, news, seen_now, tell
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
    assert list(news(seen_now([NODE]), [NODE], [INSTANCE], 0.0)) == []


def test_a_notice_is_read_from_the_comment_also_where_the_machine_is_gone() -> None:
    gone = changed(NODE, states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}), comment=NOTICE)
    assert [(one.event, one.text, one.at) for one in news(seen_now([NODE]), [gone], [], 0.0)] == [
        (Event.NOTICE, "train-1 is taken back at 22:43:00 UTC", 1795300860.0)
    ]


def test_a_comment_that_outlives_its_machine_is_no_second_notice() -> None:
    before = seen_now([changed(NODE, states=frozenset({"IDLE", "POWERED_DOWN"}), comment=NOTICE)])
    assert [one.event for one in news(before, [changed(NODE, comment=NOTICE)], [INSTANCE], 0.0)] == [Event.UP]


def test_a_drained_node_is_told_with_its_reason() -> None:
    drained = changed(NODE, states=frozenset({"IDLE", "CLOUD", "DRAIN"}), reason="corral: i-1: Xid 79")
    assert [(one.event, one.text) for one in news(seen_now([NODE]), [drained], [], 0.0)] == [
        (Event.DRAINED, "train-1: corral: i-1: Xid 79")
    ]


@pytest.mark.parametrize(("began", "told"), [(UP_AT - 1, ["up"]), (UP_AT + 1, [])])
def test_a_keepers_first_look_tells_what_happened_since_it_began(tmp_path: Path, began: float, told: list[str]) -> None:
    journal = Journal(tmp_path / "events")
    tell(journal, None, [NODE], [INSTANCE], zone_s=0.0, since=began)
    lines = (tmp_path / "events").read_text().splitlines() if told else []
    assert ([json.loads(line)["event"] for line in lines], (tmp_path / "events").exists()) == (told, bool(told))


def test_the_comment_of_a_notice_is_what_is_read() -> None:
    noticed = datetime(2026, 11, 21, 22, 41, tzinfo=UTC)
    assert comment_of(noticed, noticed.replace(minute=43)) == NOTICE


def test_a_node_without_a_machine_and_a_comment_is_not_remembered() -> None:
    off = changed(NODE, states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"}))
    assert seen_now([off, NODE]) == {"train-1": Seen(started=NODE.started, comment="", drains=False)}
