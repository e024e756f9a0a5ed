"""`corral usage` counts the history of a running head once, although the head has also recorded it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from test_timeline_command import NEWER, OLDER, stored_history

from corral.cli.support import timeline_data
from corral.cli.support.timeline_data import read_cluster_histories
from corral.inventory import head_instance, history_store

LAUNCHED = datetime.fromtimestamp(NEWER - 30, UTC)


def test_the_running_heads_own_record_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {
        "own": stored_history(NEWER, "own"),
        "earlier": replace(stored_history(OLDER, "earlier"), stored_at=NEWER - 99, events=()),
    }
    own = timeline_data._as_history("dev", records["own"], 0.0)
    listed = [SimpleNamespace(key=key, saved_at=LAUNCHED) for key in records]
    monkeypatch.setattr(head_instance, "head_of", lambda *_: SimpleNamespace(since=LAUNCHED))
    monkeypatch.setattr(timeline_data, "open_head", lambda *_: object())
    monkeypatch.setattr(timeline_data, "_from_head", lambda *_: own)
    monkeypatch.setattr(history_store, "list_histories", lambda *_: listed)
    monkeypatch.setattr(history_store, "read_history", lambda _, one: records[one.key])
    summary: Any = SimpleNamespace(name="dev", base="dev")
    found, problems = read_cluster_histories(summary, None, None, None, 0.0)
    assert ([one.runs[0].name for one in found], problems) == (["own", "earlier"], ())
