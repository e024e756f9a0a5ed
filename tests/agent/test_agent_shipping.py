"""Events in the log group: each once, in batches that CloudWatch Logs takes, across a rotation and a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from box.ground import Clients
from corral.agent.events import Event, Journal
from corral.agent.shipping import Line, Shipping, ShippingError, batches

GROUP = "/corral/dev"
NOW = 1_795_300_800.0  # 2026-11-21T22:40:00Z


@pytest.fixture
def logs(aws: Clients) -> Any:
    client = aws("logs")
    client.create_log_group(logGroupName=GROUP)
    return client


def shipping(client: Any, place: Path) -> Shipping:
    events, shipped = place / "events.jsonl", place / "shipped.json"
    return Shipping(client=client, group=GROUP, events=events, shipped=shipped, clock=lambda: NOW)


def tell(place: Path, *texts: str) -> None:
    for text in texts:
        Journal(place / "events.jsonl").tell(Event.UP, text)


def held(client: Any) -> list[str]:
    """The texts of the events in the log group."""
    found = client.get_log_events(logGroupName=GROUP, logStreamName="events", startFromHead=True)["events"]
    return [str(one["message"]).partition('"text": "')[2].partition('"')[0] for one in found]


def test_what_happened_is_in_the_log_group_with_its_time(logs: Any, tmp_path: Path) -> None:
    Journal(tmp_path / "events.jsonl").tell(Event.STOPPED, "ten boots failed", at=NOW, queue="train")
    shipping(logs, tmp_path)()
    (event,) = logs.get_log_events(logGroupName=GROUP, logStreamName="events")["events"]
    assert (event["timestamp"], event["message"]) == (
        1_795_300_800_000,
        '{"at": "2026-11-21T22:40:00Z", "event": "stopped", "text": "ten boots failed", "queue": "train"}',
    )


def test_another_look_and_another_keeper_ship_only_what_is_new(logs: Any, tmp_path: Path) -> None:
    tell(tmp_path, "one")
    shipping(logs, tmp_path)()
    shipping(logs, tmp_path)()
    tell(tmp_path, "two")
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two"]


def test_a_line_that_is_being_written_waits_until_it_is_whole(logs: Any, tmp_path: Path) -> None:
    tell(tmp_path, "one", "two")
    whole = (tmp_path / "events.jsonl").read_text()
    (tmp_path / "events.jsonl").write_text(whole[:-20])
    shipping(logs, tmp_path)()
    (tmp_path / "events.jsonl").write_text(whole)
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two"]


def test_a_file_that_was_set_aside_is_shipped_to_its_end_first(logs: Any, tmp_path: Path) -> None:
    tell(tmp_path, "one")
    shipping(logs, tmp_path)()
    tell(tmp_path, "two")
    (tmp_path / "events.jsonl").rename(tmp_path / "events.1.jsonl")
    tell(tmp_path, "three")
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two", "three"]


def test_a_file_that_was_cut_short_is_shipped_from_its_beginning(logs: Any, tmp_path: Path) -> None:
    tell(tmp_path, "one", "two")
    shipping(logs, tmp_path)()
    (tmp_path / "events.jsonl").write_text("")
    tell(tmp_path, "three")
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two", "three"]


def test_a_line_that_is_no_event_is_shipped_as_it_is(logs: Any, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("half a li\n")
    shipping(logs, tmp_path)()
    assert messages(logs) == ["half a li"]


def messages(client: Any) -> list[str]:
    found = client.get_log_events(logGroupName=GROUP, logStreamName="events", startFromHead=True)["events"]
    return [str(one["message"]) for one in found]


# CloudWatch takes 1 MB; 8 MiB of the file are read at once.
@pytest.mark.parametrize("size", [1_000_001, 9 * 2**20, 17 * 2**20])
def test_a_line_that_cloudwatch_would_not_take_is_cut_and_does_not_keep_those_behind_it(
    logs: Any, tmp_path: Path, size: int
) -> None:
    (tmp_path / "events.jsonl").write_text("x" * size + "\n" + "after it\n")
    shipping(logs, tmp_path)()
    assert messages(logs) == ["x" * 10_000, "after it"]


@pytest.mark.parametrize("size", [1_000_000, 9 * 2**20])
def test_a_long_line_that_is_being_written_waits_until_it_is_whole(logs: Any, tmp_path: Path, size: int) -> None:
    (tmp_path / "events.jsonl").write_text("x" * size)
    shipping(logs, tmp_path)()
    (tmp_path / "events.jsonl").write_text("x" * size + "\nafter it\n")
    shipping(logs, tmp_path)()
    assert messages(logs)[1:] == ["after it"]


def test_a_line_of_one_megabyte_is_shipped_as_it_is(logs: Any, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("x" * 1_000_000 + "\n")
    shipping(logs, tmp_path)()
    assert messages(logs) == ["x" * 1_000_000]


def test_an_event_that_is_cut_keeps_its_time_and_what_alarms_count(logs: Any, tmp_path: Path) -> None:
    instances = [f"i-{number:017}" for number in range(50_000)]
    Journal(tmp_path / "events.jsonl").tell(Event.TERMINATED, "é" * 600_000, at=NOW, instances=instances)
    shipping(logs, tmp_path)()
    (event,) = logs.get_log_events(logGroupName=GROUP, logStreamName="events")["events"]
    text = "é" * 10_000
    assert (event["timestamp"], event["message"]) == (
        1_795_300_800_000,
        f'{{"at": "2026-11-21T22:40:00Z", "event": "terminated", "text": "{text}"}}',
    )


def test_a_line_that_is_cut_is_told_once(logs: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "events.jsonl").write_text("x" * 1_000_001 + "\n")
    shipping(logs, tmp_path)()
    shipping(logs, tmp_path)()
    assert caplog.messages == [f"an event is too long for the log group, it is cut there: {'x' * 200}"]


def test_a_reason_with_a_separator_of_lines_in_it_is_one_event(logs: Any, tmp_path: Path) -> None:
    tell(tmp_path, "half\u2028half")
    shipping(logs, tmp_path)()
    assert held(logs) == ["half\u2028half"]


def test_without_its_group_events_wait_and_one_sentence_says_so(aws: Clients, tmp_path: Path) -> None:
    tell(tmp_path, "one")
    with pytest.raises(ShippingError, match=r"^events do not reach the log group /corral/dev: .*ResourceNotFound"):
        shipping(aws("logs"), tmp_path)()
    aws("logs").create_log_group(logGroupName=GROUP)
    shipping(aws("logs"), tmp_path)()
    assert held(aws("logs")) == ["one"]


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        ([Line(at_ms=0, text="{}")] * 10_001, [10_000, 1]),
        ([Line(at_ms=0, text="x" * 349_499)] * 4, [3, 1]),
        ([Line(at_ms=0, text="{}"), Line(at_ms=86_399_999, text="{}"), Line(at_ms=86_400_000, text="{}")], [2, 1]),
        ([], []),
    ],
    ids=["events", "bytes", "a day", "none"],
)
def test_a_request_holds_what_cloudwatch_takes(lines: list[Line], sizes: list[int]) -> None:
    assert [len(batch) for batch in batches(lines)] == sizes


def test_a_request_is_in_the_order_of_time() -> None:
    (batch,) = batches([Line(at_ms=2, text="b"), Line(at_ms=1, text="a")])
    assert [line.text for line in batch] == ["a", "b"]
