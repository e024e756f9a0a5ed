"""The recorded histories of a cluster: their table, and the selection by start."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from corral.inventory.history_store import HistoryObject
from corral.report.timeline.history_list import history_line, history_view, matching_histories

FIRST = datetime(2026, 11, 20, 8, 0, 1, tzinfo=UTC)


def history(days: int) -> HistoryObject:
    began = FIRST + timedelta(days=days)
    return HistoryObject(bucket="b", key=f"k{days}", began=began, saved_at=began + timedelta(minutes=90))


HISTORIES = (history(2), history(1), history(0))


@pytest.mark.parametrize(
    ("word", "keys"),
    [
        ("2026-11-22T08-00-01Z", ["k2"]),
        ("2026-11-22", ["k2"]),
        ("2026-11-21 08:00", ["k1"]),
        ("2026-11-21t08:00:01z", ["k1"]),
        ("2026-11", ["k2", "k1", "k0"]),
        ("2026-12", []),
        ("", []),
    ],
)
def test_history_is_selected_by_the_start_of_its_id(word: str, keys: list[str]) -> None:
    assert [one.key for one in matching_histories(HISTORIES, word)] == keys


def test_shown_history_is_named_with_its_times() -> None:
    assert history_line("dev", history(0), is_selected=False) == (
        "dev has no head now: the history that began 2026-11-20 08:00:01, saved at 09:30:01 UTC"
    )


def shown(histories: tuple[HistoryObject, ...]) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    for part in history_view("dev", histories, " --box"):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_histories_are_one_line_each_and_the_newest_has_a_command() -> None:
    lines = shown(HISTORIES[:1])
    assert (lines[-2].split(), lines[-1]) == (
        ["2026-11-22T08-00-01Z", "2026-11-22", "09:30:01", "1", "h", "30", "min"],
        "corral timeline dev --history 2026-11-22T08-00-01Z --box",
    )


def test_no_recorded_history_is_one_line() -> None:
    assert shown(()) == ["dev  no recorded history"]
