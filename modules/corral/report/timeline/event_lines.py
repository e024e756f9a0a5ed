"""The events of a cluster: parsed from the lines that its head wrote, and formatted for the terminal.

docs/events.md lists the kinds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from corral.model.printable import printable_document

_NO_CAPACITY = re.compile(r"\b(Insufficient\w*Capacity): .*?(?=;|, tried again|$)")
_MARKED = {"refused": "red", "launch-failed": "red", "terminated": "yellow", "marked-down": "yellow", "stopped": "red"}
_MARKED |= {"notice": "yellow", "drained": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """An event. `nodes`: its nodes, folded. `instances`: their instance ids, by node if known. `facts`: the line."""

    at: datetime
    kind: str
    text: str
    nodes: str = ""
    instances: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def read_events(lines: Iterable[str]) -> tuple[ClusterEvent, ...]:
    """The events of these lines in chronological order. Skips other lines."""
    found = (_read(line) for line in lines)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.at))


def event_lines(events: Iterable[ClusterEvent]) -> Iterator[RenderableType]:
    """A line per event: time, kind, text."""
    for one in events:
        when, kind = f"{one.at:%Y-%m-%d %H:%M:%S}", f"{one.kind:<12}"
        yield Text.assemble((when, "dim"), "  ", (kind, _MARKED.get(one.kind, "")), "  ", shorten(one.text))


def shorten(text: str) -> str:
    """The text without EC2's message after an InsufficientCapacity code: four identical lines per offer."""
    return _NO_CAPACITY.sub(r"\1", text)


def _read(line: str) -> ClusterEvent | None:
    try:
        held = printable_document(json.loads(line))
        at = datetime.strptime(held["at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        kind, text = str(held["event"]), str(held["text"])
    except (ValueError, KeyError, TypeError):
        return None
    instances = held.get("instances") or {}
    if not isinstance(instances, Mapping):
        instances = {id: id for id in instances}
    return ClusterEvent(
        at=at, kind=kind, text=text, nodes=str(held.get("nodes") or ""), instances=instances, facts=held
    )
