"""Reads histories of a cluster for `corral timeline` and `usage`: from its head, or as recorded in the bucket."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corral.cli.support.env_summary import EnvironmentSummary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import open_head
from corral.cli.support.output import waiting
from corral.cli.support.remote import HeadConnection, HeadUnreachable, fetch_events, fetch_history
from corral.model.head_report import JobRun
from corral.model.history import StoredHistory
from corral.model.printable import printable
from corral.report.timeline.event_lines import ClusterEvent, read_events
from corral.report.timeline.history_list import history_line, matching_histories
from corral.report.timeline.timeline import Timeline, build_timeline

if TYPE_CHECKING:
    from corral.inventory.history_store import HistoryObject

_NODES_LENGTH = 10_000  # characters of a folded list of nodes, more than any has


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHistory:
    """A history as a timeline, with its events and runs. `source`: the record it is from; empty for a running head."""

    timeline: Timeline
    events: tuple[ClusterEvent, ...]
    runs: tuple[JobRun, ...]
    source: str = ""


def read_cluster_history(
    summary: EnvironmentSummary, session: Any, box_dir: Path | None, start_prefix: str | None, long_s: float | None
) -> ClusterHistory:
    """The history from the running head; without a head, or with `start_prefix`, a recorded one. Raises Failure.

    `long_s`: only the last seconds of it.
    """
    from corral.inventory.head_instance import head_of

    name = summary.name
    there = head_of(session, name) if start_prefix is None else None
    head = open_head(there, session, box_dir)
    if there is None or head is None:
        return _from_bucket(summary, session, start_prefix, long_s)
    return _from_head(name, head, there.since, 0.0 if long_s is None else time.time() - long_s)


def read_cluster_histories(
    summary: EnvironmentSummary, session: Any, box_dir: Path | None, start_prefix: str | None, since: float
) -> tuple[Sequence[ClusterHistory], Sequence[str]]:
    """All histories that reach beyond `since` (seconds since 1970), the newest first; and what is missing in them.

    A running head reports its own. `start_prefix`: only the recorded one that began then. Raises Failure without any.
    """
    from corral.inventory.head_instance import head_of
    from corral.inventory.history_store import UnreadableHistory, read_history

    name, found, problems = summary.name, list[ClusterHistory](), list[str]()
    there = head_of(session, name) if start_prefix is None else None
    head = open_head(there, session, box_dir)
    began = math.inf
    if there is not None and head is not None:
        found.append(_from_head(name, head, there.since, since))
        began = min(one.timestamp() for one in (*_first_event(found[0]), there.since or datetime.now(UTC)))
    with waiting(f"reading the recorded histories of {name}"):
        for one in _recorded(summary, session, start_prefix, is_required=not found):
            if one.saved_at.timestamp() < since:
                continue
            try:
                stored = read_history(session, one)
            except UnreadableHistory as error:
                problems.append(str(error))
                continue
            if stored.stored_at < began:  # otherwise it is the running head's, which has reported it
                found.append(_as_history(name, stored, since))
    return found, (*problems, *(one.timeline.problem for one in found if one.timeline.problem))


def _first_event(history: ClusterHistory) -> Iterator[datetime]:
    yield from (event.at for event in history.events[:1])


def _from_head(name: str, head: HeadConnection, since: datetime | None, began: float) -> ClusterHistory:
    """The history that the head reports, from `began` on. Raises Failure."""
    now = time.time()
    with waiting(f"querying the head of {name}"):
        try:
            events, history = read_events(fetch_events(head, 0)), fetch_history(head, began)
        except HeadUnreachable as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    runs = printable_runs(history.runs)
    start, end = datetime.fromtimestamp(began, UTC), datetime.fromtimestamp(int(now) + 1, UTC)
    timeline = build_timeline(name, events, runs, head_since=since, start=start, end=end, problem=history.problem)
    return ClusterHistory(timeline=timeline, events=events, runs=runs)


def _from_bucket(summary: EnvironmentSummary, session: Any, word: str | None, long_s: float | None) -> ClusterHistory:
    """The newest recorded history, or the one that starts with `word`; only its last `long_s`. Raises Failure."""
    from corral.inventory.history_store import UnreadableHistory, read_history

    with waiting(f"reading the recorded histories of {summary.name}"):
        (found, *_) = _recorded(summary, session, word, is_required=True)
        try:
            stored = read_history(session, found)
        except UnreadableHistory as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    start = 0.0 if long_s is None else max(0.0, stored.stored_at + 1 - long_s)
    return _as_history(
        summary.name, stored, start, source=history_line(summary.name, found, is_selected=word is not None)
    )


def _recorded(
    summary: EnvironmentSummary, session: Any, word: str | None, *, is_required: bool
) -> Sequence[HistoryObject]:
    """The recorded histories, newest first, or only the one that starts with `word`. Raises Failure without any."""
    from corral.inventory.history_store import list_histories

    there = list_histories(session, summary.base, summary.name)
    if not there and is_required:
        raise Failure(_no_history(summary, word), ExitCode.FAILED)
    if word is None:
        return there
    found = matching_histories(there, word)
    if len(found) != 1:
        raise Failure(_no_single_history(summary, word, [one.id for one in found]), ExitCode.WRONG_INPUT)
    return found


def _as_history(name: str, stored: StoredHistory, start: float, source: str = "") -> ClusterHistory:
    """The recorded history from `start` on."""
    events, runs = read_events(stored.events), printable_runs(stored.runs)
    timeline = build_timeline(
        name,
        events,
        runs,
        head_since=None if stored.head_since is None else datetime.fromtimestamp(stored.head_since, UTC),
        start=datetime.fromtimestamp(start, UTC),
        end=datetime.fromtimestamp(stored.stored_at + 1, UTC),
        problem=stored.problem,
    )
    return ClusterHistory(timeline=timeline, events=events, runs=runs, source=source)


def printable_runs(runs: Iterable[JobRun]) -> tuple[JobRun, ...]:
    """The runs with texts that can be shown: an earlier agent recorded names, and what they forged, as they were."""
    return tuple(
        replace(
            run,
            job_id=printable(run.job_id),
            user=printable(run.user),
            name=printable(run.name),
            queue=printable(run.queue),
            account=printable(run.account),
            state=printable(run.state),
            nodes=printable(run.nodes, _NODES_LENGTH),
        )
        for run in runs
    )


def _no_history(summary: EnvironmentSummary, word: str | None) -> str:
    if word is not None:
        return f"--history {word}: no recorded history of {summary.name}"
    command = f"corral up {summary.name}{summary.account_option}"
    return f"{summary.name} has no head now and no recorded history - to deploy it: {command}"


def _no_single_history(summary: EnvironmentSummary, word: str, found: list[str]) -> str:
    if found:
        return f"--history {word}: {len(found)} recorded histories of {summary.name} match: {', '.join(found)}"
    command = f"corral timeline {summary.name}{summary.account_option} --list-history"
    return f"--history {word}: no recorded history of {summary.name} starts then - {command} lists them"
