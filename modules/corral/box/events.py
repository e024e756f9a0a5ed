"""What happens to machines, for whoever makes them real: launches and terminations as they are decided.

A listener is called while the cloud's lock is held, so it only notes the event and does its work elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEvent:
    """One instance was launched, started, stopped or terminated."""

    kind: Literal["launched", "started", "stopped", "terminated"]
    region: str
    instance_id: str


listeners: list[Callable[[MachineEvent], None]] = []


def announce(event: MachineEvent) -> None:
    """Tells all listeners."""
    for listener in listeners:
        listener(event)
