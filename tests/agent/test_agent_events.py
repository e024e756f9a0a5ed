"""Events: their file, their pages, and docs/events.md against the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from corral.agent.events import Event, EventLog
from corral.agent.head_status import event_page

PAGE = (Path(__file__).parents[2] / "docs/events.md").read_text()


def test_every_event_is_in_the_table_and_nothing_else() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.MULTILINE)) == sorted(Event)


def test_example_lines_are_events() -> None:
    lines = re.search(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    assert lines and {json.loads(line)["event"] for line in lines[1].splitlines()} <= {*Event}


def test_an_event_has_the_time_at_which_it_happened(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").log_event(Event.UP, "train-1 is up", at=1795300800.0, nodes="train-1")
    assert json.loads((tmp_path / "events.jsonl").read_text()) == {
        "at": "2026-11-21T22:40:00Z",
        "event": "up",
        "text": "train-1 is up",
        "nodes": "train-1",
    }


def test_nobody_but_root_reads_events_nor_those_of_before(tmp_path: Path) -> None:
    """Among them are the commands of sudo, and from where people log in."""
    files = [tmp_path / name for name in ("events.jsonl", "events.1.jsonl")]
    for file in files:
        file.touch(mode=0o644)
    EventLog(files[0]).log_event(Event.SUDO, "ada: reboot")
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]


def test_a_new_file_of_events_is_roots_alone(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").log_event(Event.UP, "train-1 is up")
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600


def test_pages_of_events_follow_each_other(tmp_path: Path) -> None:
    journal = EventLog(tmp_path / "events.jsonl")
    for number in range(5):
        journal.log_event(Event.UP, str(number), at=100.0 + number)
    pages = [event_page(102, start, tmp_path / "events.jsonl", limit=2) for start in (0, 2)]
    assert [([json.loads(line)["text"] for line in page.lines], page.next) for page in pages] == [
        (["2", "3"], 2),
        (["4"], None),
    ]


def test_a_truncated_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"at": "2026-11-21T22:40:00Z", "ev')
    assert event_page(0, 0, tmp_path / "events.jsonl").lines == ()


def test_the_rotated_file_is_read_first(tmp_path: Path) -> None:
    EventLog(tmp_path / "events.1.jsonl").log_event(Event.UP, "first", at=1.0)
    EventLog(tmp_path / "events.jsonl").log_event(Event.UP, "second", at=2.0)
    found = event_page(0, 0, tmp_path / "events.jsonl").lines
    assert [json.loads(line)["text"] for line in found] == ["first", "second"]


def test_an_event_after_a_truncated_line_has_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"at": "2026-11-21T22:40:00Z", "ev')
    EventLog(tmp_path / "events.jsonl").log_event(Event.UP, "train-1 is up")
    assert [json.loads(line)["text"] for line in event_page(0, 0, tmp_path / "events.jsonl").lines] == ["train-1 is up"]


def test_whole_lines_follow_each_other_without_a_gap(tmp_path: Path) -> None:
    for number in range(3):
        EventLog(tmp_path / "events.jsonl").log_event(Event.UP, str(number))
    assert [json.loads(line)["text"] for line in (tmp_path / "events.jsonl").read_text().splitlines()] == [
        "0",
        "1",
        "2",
    ]
