"""Events: their file, their pages, and docs/events.md against the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from corral.agent.events import Event, Journal
from corral.agent.report import events

PAGE = (Path(__file__).parents[2] / "docs/events.md").read_text()


def test_every_event_is_in_the_table_and_nothing_else() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == sorted(Event)


def test_example_lines_are_events() -> None:
    lines = re.search(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    assert lines and {json.loads(line)["event"] for line in lines[1].splitlines()} <= {*Event}


def test_an_event_says_when_it_happened_not_when_it_was_written(tmp_path: Path) -> None:
    Journal(tmp_path / "events.jsonl").tell(Event.UP, "train-1 is up", at=1795300800.0, nodes="train-1")
    assert json.loads((tmp_path / "events.jsonl").read_text()) == {
        "at": "2026-11-21T22:40:00Z",
        "event": "up",
        "text": "train-1 is up",
        "nodes": "train-1",
    }


def test_pages_of_events_follow_each_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl")
    for number in range(5):
        journal.tell(Event.UP, str(number), at=100.0 + number)
    pages = [events(102, start, tmp_path / "events.jsonl", most=2) for start in (0, 2)]
    assert [([json.loads(line)["text"] for line in page.lines], page.next) for page in pages] == [
        (["2", "3"], 2),
        (["4"], None),
    ]


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"at": "2026-11-21T22:40:00Z", "ev')
    assert events(0, 0, tmp_path / "events.jsonl").lines == ()


def test_the_file_before_is_read_first(tmp_path: Path) -> None:
    Journal(tmp_path / "events.1.jsonl").tell(Event.UP, "first", at=1.0)
    Journal(tmp_path / "events.jsonl").tell(Event.UP, "second", at=2.0)
    found = events(0, 0, tmp_path / "events.jsonl").lines
    assert [json.loads(line)["text"] for line in found] == ["first", "second"]


def test_an_event_after_a_torn_line_has_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"at": "2026-11-21T22:40:00Z", "ev')
    Journal(tmp_path / "events.jsonl").tell(Event.UP, "train-1 is up")
    assert [json.loads(line)["text"] for line in events(0, 0, tmp_path / "events.jsonl").lines] == ["train-1 is up"]


def test_whole_lines_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    for number in range(3):
        Journal(tmp_path / "events.jsonl").tell(Event.UP, str(number))
    assert [json.loads(line)["text"] for line in (tmp_path / "events.jsonl").read_text().splitlines()] == [
        "0",
        "1",
        "2",
    ]
