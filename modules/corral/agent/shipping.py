"""The events of the head's state volume in the cluster's log group, where alarms count them.

A line is in the group once, or twice where the head died between the request and its note of how far it had come.
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

from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, former
from corral.agent.install import Placement, install
from corral.model.jsons import from_json, to_line

STREAM = "events"
SHIP_EACH_S = 30.0
SHIPPED = EVENTS.with_name("shipped.json")
# What one request takes. Source: CloudWatch Logs API reference, PutLogEvents.
BATCH, BATCH_BYTES, BATCH_SPAN_MS = 10_000, 1_048_576, 24 * 3600 * 1000
LONGEST = 1_000_000  # bytes of one event: "no larger than 1 MB"
_OVERHEAD = 26  # bytes that count beside each event's own
_AT_ONCE = 8 * BATCH_BYTES  # of the file
_LONGEST_WORD = 10_000  # characters that are left of each fact of an event that is too long

log = logging.getLogger("corral.agent")


class ShippingError(AgentError):
    """Events that do not reach the log group. They stay in their file, and the next look ships them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """How far it has come: a file, by its inode, and the bytes of it that are shipped."""

    inode: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An event as the log group takes it: when it happened, in milliseconds since 1970, and its JSON."""

    at_ms: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipping:
    """`client`: CloudWatch Logs. `group`: the cluster's log group. `shipped`: where it notes how far it has come."""

    client: Any
    group: str
    events: Path = EVENTS
    shipped: Path = SHIPPED
    clock: Callable[[], float] = time.time

    def __call__(self) -> None:
        """Ships what is new. Raises ShippingError."""
        while (found := self._next()) is not None:
            content, here = found
            lines = [_line(text, self.clock()) for text in content.decode("utf-8", "replace").split("\n") if text]
            for batch in batches(lines):
                self._put(batch)
            install((Placement(path=str(self.shipped), content=to_line(here).encode(), mode=0o600),))

    def _next(self) -> tuple[bytes, Shipped] | None:
        """Lines that are not shipped yet, and how far it has come with them; None where there are none."""
        known = self._known()
        for file in (former(self.events), self.events):
            with suppress(FileNotFoundError), file.open("rb") as lines:
                about = file.stat()
                is_known = about.st_ino == known.inode and about.st_size >= known.offset
                if file != self.events and not is_known:
                    continue  # shipped to its end before it was set aside, or older than the note
                inode, offset = about.st_ino, known.offset if is_known else 0
                lines.seek(offset)
                content, size = _whole(lines)
                if size:
                    return content, Shipped(inode=inode, offset=offset + size)
        return None

    def _known(self) -> Shipped:
        try:
            return from_json(Shipped, self.shipped.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return Shipped()

    def _put(self, batch: Sequence[Line]) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        told = [{"timestamp": line.at_ms, "message": line.text} for line in batch]
        place = {"logGroupName": self.group, "logStreamName": STREAM}
        try:
            try:
                self.client.put_log_events(**place, logEvents=told)
            except self.client.exceptions.ResourceNotFoundException:
                self.client.create_log_stream(**place)
                self.client.put_log_events(**place, logEvents=told)
        except (BotoCoreError, ClientError) as error:
            raise ShippingError(f"events do not reach the log group {self.group}: {error}") from error


def batches(lines: Sequence[Line]) -> Iterator[tuple[Line, ...]]:
    """What one request each can take: in the order of time, of at most a day."""
    batch: list[Line] = []
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


def _whole(lines: BinaryIO) -> tuple[bytes, int]:
    """The next whole lines, or what one begins with that is longer than is read at once; the bytes that they take."""
    content = lines.read(_AT_ONCE)
    if end := content.rfind(b"\n") + 1:
        return content[:end], end
    size = len(content)
    # A shorter one is being written, and what comes of it meanwhile would be taken for its next part.
    while size >= _AT_ONCE and (more := lines.readline(_AT_ONCE)):
        size += len(more)
        if more.endswith(b"\n"):
            return content, size
    return b"", 0


def _line(text: str, now: float) -> Line:
    """A line that is no event, as after a full disk, is of now. One that CloudWatch would not take is cut."""
    at, short = now, text[:_LONGEST_WORD]
    with suppress(ValueError, KeyError, TypeError):
        held = json.loads(text)
        at = datetime.fromisoformat(str(held["at"])).timestamp()
        facts = {key: str(held[key])[:_LONGEST_WORD] for key in ("at", "event", "text")}
        short = json.dumps(facts, ensure_ascii=False)  # alarms count it
    if len(text.encode()) > LONGEST:
        log.error("an event is too long for the log group, it is cut there: %s", short[:200])
        text = short
    return Line(at_ms=int(at * 1000), text=text)
