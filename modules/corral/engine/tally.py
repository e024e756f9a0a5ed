"""What an engine has done so far and is doing now, added up from its news. No text and no terminal here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.engine.progress import Begun, Deed, Ended, Failed, ProgressEvent, Said, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A resource that the engine is busy with, and since when by the clock that the tally is told."""

    subject: Subject
    deed: Deed
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing done to one resource; `failed` if it did not succeed."""

    subject: Subject
    deed: Deed
    took_s: float
    failed: bool = False


@dataclass(slots=True, kw_only=True)
class Tally:
    """The running account of one update or preview."""

    running: dict[tuple[str, str], Running] = field(default_factory=dict)
    counts: Counter[Deed] = field(default_factory=Counter)
    planned: list[Begun] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    failed: list[Subject] = field(default_factory=list)
    not_created: list[Mapping[str, Any]] = field(default_factory=list)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    is_plan: bool = False

    def add(self, event: ProgressEvent, now_s: float) -> Line | None:
        """Takes note of the event; a line to be shown where something was finished."""
        match event:
            case Said():
                self.said.append(event)
            case Begun(subject=subject, operation=operation) if not subject.is_ours:
                self.running[subject.urn, operation] = Running(subject=subject, deed=event.deed, since_s=now_s)
                self._plan(event)
            case Ended(outputs=outputs) if outputs is not None:
                self.outputs = outputs
            case Ended(subject=subject) if not subject.is_ours:
                return self._finish(event, now_s)
            case Failed(subject=subject):
                self.failed.append(subject)
                self.not_created += [event.creation] if event.creation is not None else []
                since_s = min((one.since_s for one in self._drop(subject)), default=now_s)
                return Line(subject=subject, deed=event.deed, took_s=now_s - since_s, failed=True)
        return None

    @property
    def changes(self) -> int:
        """How many things were or would be done."""
        return sum(count for deed, count in self.counts.items() if deed.is_change and not deed.is_news)

    @property
    def errors(self) -> list[Said]:
        """The errors among what was said."""
        return [one for one in self.said if one.severity == "error"]

    def _plan(self, event: Begun) -> None:
        is_part = event.operation in ("create-replacement", "delete-replaced")  # of what `replace` announces
        if event.planning and event.deed.is_change and (event.operation == "replace" or not is_part):
            self.planned.append(event)

    def _finish(self, event: Ended, now_s: float) -> Line | None:
        begun = self.running.pop((event.subject.urn, event.operation), None)
        if event.operation == "replace":  # counted and shown when the new one was created
            return None
        deed = Deed.SAME if event.operation == "delete-replaced" else event.deed
        self.counts[deed] += 1
        if not event.deed.is_change or (event.planning and not event.deed.is_news):
            return None
        return Line(subject=event.subject, deed=event.deed, took_s=now_s - begun.since_s if begun else 0.0)

    def _drop(self, subject: Subject) -> list[Running]:
        keys = [key for key in self.running if key[0] == subject.urn]
        return [self.running.pop(key) for key in keys]
