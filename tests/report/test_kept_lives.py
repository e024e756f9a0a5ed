"""The lives of a cluster that are kept: their table, and which of them a word means."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from corral.inventory.lives import LifeObject
from corral.report.lives import kept_line, lives_view, meant

FIRST = datetime(2026, 11, 20, 8, 0, 1, tzinfo=UTC)


def life(days: int) -> LifeObject:
    began = FIRST + timedelta(days=days)
    return LifeObject(bucket="b", key=f"k{days}", began=began, kept=began + timedelta(minutes=90), size_bytes=9)


LIVES = (life(2), life(1), life(0))


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
def test_a_life_is_meant_by_how_its_name_begins(word: str, keys: list[str]) -> None:
    assert [one.key for one in meant(LIVES, word)] == keys


def test_what_is_drawn_is_told_with_its_times() -> None:
    assert kept_line("dev", life(0), is_asked_for=False) == (
        "dev has no head now: the life that began 2026-11-20 08:00:01, kept at 09:30:01 UTC"
    )


def shown(lives: tuple[LifeObject, ...]) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    for part in lives_view("dev", lives, " --box"):
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_lives_are_a_line_each_and_the_newest_can_be_copied() -> None:
    lines = shown(LIVES[:1])
    assert (lines[-2].split(), lines[-1]) == (
        ["2026-11-22T08-00-01Z", "2026-11-22", "09:30:01", "1", "h", "30", "min"],
        "corral timeline dev --life 2026-11-22T08-00-01Z --box",
    )


def test_that_no_life_is_kept_is_one_line() -> None:
    assert shown(()) == ["dev  no life is kept"]
