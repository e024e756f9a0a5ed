"""A life of a cluster, from its head or from what its base keeps of one: for `corral timeline`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corral.cli.failure import ExitCode, Failure
from corral.cli.heads import reach
from corral.cli.on_head import Head, Unreachable, events_of, history_of
from corral.cli.outlines import Outline
from corral.cli.screen import waiting
from corral.model.head import JobRun
from corral.report.events import Happened, read_events
from corral.report.lives import kept_line, meant
from corral.report.timeline import Timeline, timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A life as a picture, and what it is drawn from; `note`: of what, where that is not the cluster as it is."""

    picture: Timeline
    events: tuple[Happened, ...]
    runs: tuple[JobRun, ...]
    note: str = ""


def lived(seen: Outline, session: Any, box_dir: Path | None, life: str | None, long_s: float | None) -> Lived:
    """The life that the head tells of; where there is none, or `life` names one, a life that is kept. Raises Failure.

    `long_s`: the last of it.
    """
    from corral.inventory.heads import head_of

    name = seen.name
    there = head_of(session, name) if life is None else None
    head = reach(there, session, box_dir)
    if there is None or head is None:
        return _of_kept(seen, session, life, long_s)
    return _of_head(name, head, there.since, long_s)


def _of_head(name: str, head: Head, since: datetime | None, long_s: float | None) -> Lived:
    """What the head says. Raises Failure."""
    now = time.time()
    began = 0.0 if long_s is None else now - long_s
    with waiting(f"asking the head of {name}"):
        try:
            events, history = read_events(events_of(head, 0)), history_of(head, began)
        except Unreachable as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    start, end = datetime.fromtimestamp(began, UTC), datetime.fromtimestamp(int(now) + 1, UTC)
    picture = timeline(name, events, history.runs, head_since=since, start=start, end=end, problem=history.problem)
    return Lived(picture=picture, events=events, runs=history.runs)


def _of_kept(seen: Outline, session: Any, word: str | None, long_s: float | None) -> Lived:
    """What the bucket keeps: the newest life, or the one that is meant. `long_s`: the last of it. Raises Failure."""
    from corral.inventory.lives import UnreadableLife, lives_of, read_life

    name = seen.name
    with waiting(f"looking for what is kept of {name}"):
        there = lives_of(session, seen.base, name)
        if not there:
            raise Failure(_nothing_kept(seen, word), ExitCode.FAILED)
        found = there[:1] if word is None else meant(there, word)
        if len(found) != 1:
            raise Failure(_not_one(seen, str(word), [one.word for one in found]), ExitCode.WRONG_INPUT)
        try:
            kept = read_life(session, found[0])
        except UnreadableLife as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    end, events = kept.kept + 1, read_events(kept.events)
    picture = timeline(
        name,
        events,
        kept.runs,
        head_since=None if kept.head_since is None else datetime.fromtimestamp(kept.head_since, UTC),
        start=datetime.fromtimestamp(0.0 if long_s is None else max(0.0, end - long_s), UTC),
        end=datetime.fromtimestamp(end, UTC),
        problem=kept.problem,
    )
    note = kept_line(name, found[0], is_asked_for=word is not None)
    return Lived(picture=picture, events=events, runs=kept.runs, note=note)


def _nothing_kept(seen: Outline, word: str | None) -> str:
    if word is not None:
        return f"--life {word}: no life of {seen.name} is kept"
    command = f"corral up {seen.name}{seen.account_option}"
    return f"{seen.name} has no head now, and no life of it is kept - bring it up: {command}"


def _not_one(seen: Outline, word: str, found: list[str]) -> str:
    if found:
        return f"--life {word}: {len(found)} lives of {seen.name} begin so: {', '.join(found)}"
    command = f"corral timeline {seen.name}{seen.account_option} --lives"
    return f"--life {word}: no life of {seen.name} that is kept began then - {command} lists them"
