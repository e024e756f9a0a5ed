"""Events in the log group: each once, in batches that CloudWatch Logs accepts, across rotations and restarts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from box.vpc_fixtures import Clients
from corral.agent.events import Event, EventLog
from corral.agent.log_shipper import LogLine, LogShipper, ShippingError, line_batches

GROUP = "/corral/dev"
NOW = 1_795_300_800.0  # 2026-11-21T22:40:00Z


@pytest.fixture
def logs(aws: Clients) -> Any:
    client = aws("logs")
    client.create_log_group(logGroupName=GROUP)
    return client


def shipping(client: Any, work_dir: Path) -> LogShipper:
    events, shipped = work_dir / "events.jsonl", work_dir / "shipped.json"
    return LogShipper(client=client, group=GROUP, events=events, shipped=shipped, clock=lambda: NOW)


def write_events(work_dir: Path, *texts: str) -> None:
    for text in texts:
        EventLog(work_dir / "events.jsonl").log_event(Event.UP, text)


def held(client: Any) -> list[str]:
    """The texts of the events in the log group."""
    found = client.get_log_events(logGroupName=GROUP, logStreamName="events", startFromHead=True)["events"]
    return [str(one["message"]).partition('"text": "')[2].partition('"')[0] for one in found]


def test_an_event_is_in_the_log_group_with_its_time(logs: Any, tmp_path: Path) -> None:
    EventLog(tmp_path / "events.jsonl").log_event(Event.STOPPED, "ten boots failed", at=NOW, queue="train")
    shipping(logs, tmp_path)()
    (event,) = logs.get_log_events(logGroupName=GROUP, logStreamName="events")["events"]
    assert (event["timestamp"], event["message"]) == (
        1_795_300_800_000,
        '{"at": "2026-11-21T22:40:00Z", "event": "stopped", "text": "ten boots failed", "queue": "train"}',
    )


def test_later_runs_and_processes_ship_only_new_events(logs: Any, tmp_path: Path) -> None:
    write_events(tmp_path, "one")
    shipping(logs, tmp_path)()
    shipping(logs, tmp_path)()
    write_events(tmp_path, "two")
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two"]


def test_a_line_that_is_being_written_is_shipped_once_complete(logs: Any, tmp_path: Path) -> None:
    write_events(tmp_path, "one", "two")
    whole = (tmp_path / "events.jsonl").read_text()
    (tmp_path / "events.jsonl").write_text(whole[:-20])
    shipping(logs, tmp_path)()
    (tmp_path / "events.jsonl").write_text(whole)
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two"]


def test_a_rotated_file_is_shipped_to_its_end_first(logs: Any, tmp_path: Path) -> None:
    write_events(tmp_path, "one")
    shipping(logs, tmp_path)()
    write_events(tmp_path, "two")
    (tmp_path / "events.jsonl").rename(tmp_path / "events.1.jsonl")
    write_events(tmp_path, "three")
    shipping(logs, tmp_path)()
    assert held(logs) == ["one", "two", "three"]


def test_a_truncated_file_is_shipped_from_its_beginning(logs: Any, tmp_path: Path) -> None:
    write_events(tmp_path, "one", "two")
    shipping(logs, tmp_path)()
    (tmp_path / "events.jsonl").write_text("")
    write_events(tmp_path, "three")
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
def test_a_line_that_cloudwatch_would_refuse_is_cut_and_does_not_block_later_ones(
    logs: Any, tmp_path: Path, size: int
) -> None:
    (tmp_path / "events.jsonl").write_text("x" * size + "\n" + "after it\n")
    shipping(logs, tmp_path)()
    assert messages(logs) == ["x" * 10_000, "after it"]


@pytest.mark.parametrize("size", [1_000_000, 9 * 2**20])
def test_a_long_line_that_is_being_written_is_shipped_once_complete(logs: Any, tmp_path: Path, size: int) -> None:
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
    EventLog(tmp_path / "events.jsonl").log_event(Event.TERMINATED, "é" * 600_000, at=NOW, instances=instances)
    shipping(logs, tmp_path)()
    (event,) = logs.get_log_events(logGroupName=GROUP, logStreamName="events")["events"]
    text = "é" * 10_000
    assert (event["timestamp"], event["message"]) == (
        1_795_300_800_000,
        f'{{"at": "2026-11-21T22:40:00Z", "event": "terminated", "text": "{text}"}}',
    )


def test_a_cut_line_is_logged_once(logs: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "events.jsonl").write_text("x" * 1_000_001 + "\n")
    shipping(logs, tmp_path)()
    shipping(logs, tmp_path)()
    assert caplog.messages == [f"an event is too long for the log group and was cut: {'x' * 200}"]


def test_a_reason_with_a_separator_of_lines_in_it_is_one_event(logs: Any, tmp_path: Path) -> None:
    write_events(tmp_path, "half\u2028half")
    shipping(logs, tmp_path)()
    assert held(logs) == ["half\u2028half"]


def test_without_its_group_events_wait_and_one_error_is_logged(aws: Clients, tmp_path: Path) -> None:
    write_events(tmp_path, "one")
    with pytest.raises(ShippingError, match=r"^cannot ship events to the log group /corral/dev: .*ResourceNotFound"):
        shipping(aws("logs"), tmp_path)()
    aws("logs").create_log_group(logGroupName=GROUP)
    shipping(aws("logs"), tmp_path)()
    assert held(aws("logs")) == ["one"]


@pytest.mark.parametrize(
    ("lines", "sizes"),
    [
        ([LogLine(at_ms=0, text="{}")] * 10_001, [10_000, 1]),
        ([LogLine(at_ms=0, text="x" * 349_499)] * 4, [3, 1]),
        (
            [LogLine(at_ms=0, text="{}"), LogLine(at_ms=86_399_999, text="{}"), LogLine(at_ms=86_400_000, text="{}")],
            [2, 1],
        ),
        ([], []),
    ],
    ids=["events", "bytes", "a day", "none"],
)
def test_a_request_stays_within_cloudwatchs_limits(lines: list[LogLine], sizes: list[int]) -> None:
    assert [len(batch) for batch in line_batches(lines)] == sizes


def test_a_request_is_in_the_order_of_time() -> None:
    (batch,) = line_batches([LogLine(at_ms=2, text="b"), LogLine(at_ms=1, text="a")])
    assert [line.text for line in batch] == ["a", "b"]
