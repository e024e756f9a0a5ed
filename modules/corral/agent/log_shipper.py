"""Ship the events on the head's state volume to the cluster's log group, where alarms count them.

Each line is shipped once, or twice if the head dies between the request and saving the offset.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, rotated
from corral.agent.file_install import Placement, install
from corral.model.deployed import LOG_STREAM
from corral.model.serialization import from_json, to_line

SHIP_EVERY_S = 30.0
SHIPPED = EVENTS.with_name("shipped.json")
# Limits of one request. Source: CloudWatch Logs API reference, PutLogEvents.
BATCH, BATCH_BYTES, BATCH_SPAN_MS = 10_000, 1_048_576, 24 * 3600 * 1000
LONGEST = 1_000_000  # bytes of one event: "no larger than 1 MB"
_OVERHEAD = 26  # bytes that CloudWatch adds to each event's own
_AT_ONCE = 8 * BATCH_BYTES  # bytes of the file
_LONGEST_FIELD = 10_000  # characters that each field of a too long event keeps

log = logging.getLogger("corral.agent")


class ShippingError(AgentError):
    """Events did not reach the log group. They stay in their file; the next run ships them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedOffset:
    """How much is shipped: a file, by its inode, and an offset in bytes."""

    inode: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """An event for the log group: when it happened, in milliseconds since 1970, and its JSON."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogShipper:
    """`client`: CloudWatch Logs. `group`, `stream`: in the cluster's log group. `shipped`: the file of the offset."""

    client: Any
    group: str
    stream: str = LOG_STREAM
    events: Path = EVENTS
    shipped: Path = SHIPPED
    clock: Callable[[], float] = time.time

    def __call__(self) -> None:
        """Ship new events. Raises ShippingError."""
        while (found := self._next()) is not None:
            content, here = found
            lines = [_line(text, self.clock()) for text in content.decode("utf-8", "replace").split("\n") if text]
            for batch in line_batches(lines):
                self._put(batch)
            install((Placement(path=str(self.shipped), content=to_line(here).encode(), mode=0o600),))

    def _next(self) -> tuple[bytes, ShippedOffset] | None:
        """Return lines that are not shipped yet and the offset after them; None if there are none."""
        known = self._known()
        for file in (rotated(self.events), self.events):
            with suppress(FileNotFoundError), file.open("rb") as lines:
                about = file.stat()
                is_known = about.st_ino == known.inode and about.st_size >= known.offset
                if file != self.events and not is_known:
                    continue  # shipped completely before its rotation, or older than the saved offset
                inode, offset = about.st_ino, known.offset if is_known else 0
                lines.seek(offset)
                content, size = _whole_lines(lines)
                if size:
                    return content, ShippedOffset(inode=inode, offset=offset + size)
        return None

    def _known(self) -> ShippedOffset:
        try:
            return from_json(ShippedOffset, self.shipped.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return ShippedOffset()

    def _put(self, batch: Sequence[LogLine]) -> None:
        events = [{"timestamp": line.at_ms, "message": line.text} for line in batch]
        stream = {"logGroupName": self.group, "logStreamName": self.stream}
        with aws_errors_as(ShippingError, f"ship events to the log group {self.group}"):
            try:
                self.client.put_log_events(**stream, logEvents=events)
            except self.client.exceptions.ResourceNotFoundException:
                self.client.create_log_stream(**stream)
                self.client.put_log_events(**stream, logEvents=events)


def line_batches(lines: Sequence[LogLine]) -> Iterator[tuple[LogLine, ...]]:
    """Split the lines into batches for one request each: sorted by time, spanning at most a day."""
    batch: list[LogLine] = []
    size = 0
    for line in sorted(lines, key=lambda line: line.at_ms):
        weight = len(line.text.encode()) + _OVERHEAD
        is_full = len(batch) == BATCH or size + weight > BATCH_BYTES
        if batch and (is_full or line.at_ms - batch[0].at_ms >= BATCH_SPAN_MS):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(line)
        size += weight
    if batch:
        yield tuple(batch)


def _whole_lines(lines: BinaryIO) -> tuple[bytes, int]:
    """The next whole lines, or the beginning of a line that is longer than one read; and the bytes to skip."""
    content = lines.read(_AT_ONCE)
    if end := content.rfind(b"\n") + 1:
        return content[:end], end
    size = len(content)
    # Leave a shorter line without an end: it is still being written.
    while size >= _AT_ONCE and (more := lines.readline(_AT_ONCE)):
        size += len(more)
        if more.endswith(b"\n"):
            return content, size
    return b"", 0


def _line(text: str, now: float) -> LogLine:
    """The line with its time, cut if too long. A line that is not an event, as after a full disk, gets the time now."""
    at, short = now, text[:_LONGEST_FIELD]
    with suppress(ValueError, KeyError, TypeError):
        held = json.loads(text)
        at = datetime.fromisoformat(str(held["at"])).timestamp()
        facts = {key: str(held[key])[:_LONGEST_FIELD] for key in ("at", "event", "text")}
        short = json.dumps(facts, ensure_ascii=False)  # alarms count it
    if len(text.encode()) > LONGEST:
        log.error("an event is too long for the log group and was cut: %s", short[:200])
        text = short
    return LogLine(at_ms=int(at * 1000), text=text)
