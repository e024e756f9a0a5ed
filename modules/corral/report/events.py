"""What happened to a cluster, from the lines that its head wrote: read, and shown as lines for people.

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

_NO_CAPACITY = re.compile(r"\b(Insufficient\w*Capacity): .*?(?=;|, tried again|$)")
_MARKED = {"refused": "red", "without": "red", "terminated": "yellow", "forgotten": "yellow", "stopped": "red"}
_MARKED |= {"notice": "yellow", "drained": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """An event. `nodes`: those that it is about, folded. `instances`: their ids, by node where that is known.

    `facts`: all that the line says.
    """

    at: datetime
    kind: str
    text: str
    nodes: str = ""
    instances: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def read_events(lines: Iterable[str]) -> tuple[Happened, ...]:
    """The events of these lines, in the order in which they happened. What is no event is left out."""
    found = (_read(line) for line in lines)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.at))


def event_lines(events: Iterable[Happened]) -> Iterator[RenderableType]:
    """A line each: time, kind, text."""
    for one in events:
        when, kind = f"{one.at:%Y-%m-%d %H:%M:%S}", f"{one.kind:<12}"
        yield Text.assemble((when, "dim"), "  ", (kind, _MARKED.get(one.kind, "")), "  ", briefly(one.text))


def briefly(text: str) -> str:
    """Without what EC2 says to its codes for no capacity: four lines for each of a queue's offers, all the same."""
    return _NO_CAPACITY.sub(r"\1", text)


def _read(line: str) -> Happened | None:
    try:
        held = json.loads(line)
        at = datetime.strptime(held["at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        kind, text = str(held["event"]), str(held["text"])
    except (ValueError, KeyError, TypeError):
        return None
    instances = held.get("instances") or {}
    if not isinstance(instances, Mapping):
        instances = {id: id for id in instances}
    return Happened(at=at, kind=kind, text=text, nodes=str(held.get("nodes") or ""), instances=instances, facts=held)
