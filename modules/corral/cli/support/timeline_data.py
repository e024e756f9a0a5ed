"""Reads the history of a cluster for `corral timeline`: from its head, or as recorded in the base's bucket."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from corral.cli.support.env_summary import EnvironmentSummary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import open_head
from corral.cli.support.output import waiting
from corral.cli.support.remote import HeadConnection, HeadUnreachable, fetch_events, fetch_history
from corral.model.head_report import JobRun
from corral.model.printable import printable
from corral.report.timeline.event_lines import ClusterEvent, read_events
from corral.report.timeline.history_list import history_line, matching_histories
from corral.report.timeline.timeline import Timeline, build_timeline

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
    return _from_head(name, head, there.since, long_s)


def _from_head(name: str, head: HeadConnection, since: datetime | None, long_s: float | None) -> ClusterHistory:
    """The history that the head reports. Raises Failure."""
    now = time.time()
    began = 0.0 if long_s is None else now - long_s
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
    from corral.inventory.history_store import UnreadableHistory, list_histories, read_history

    name = summary.name
    with waiting(f"reading the recorded histories of {name}"):
        there = list_histories(session, summary.base, name)
        if not there:
            raise Failure(_no_history(summary, word), ExitCode.FAILED)
        found = there[:1] if word is None else matching_histories(there, word)
        if len(found) != 1:
            raise Failure(_no_single_history(summary, str(word), [one.id for one in found]), ExitCode.WRONG_INPUT)
        try:
            stored = read_history(session, found[0])
        except UnreadableHistory as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    end, events, runs = stored.stored_at + 1, read_events(stored.events), printable_runs(stored.runs)
    timeline = build_timeline(
        name,
        events,
        runs,
        head_since=None if stored.head_since is None else datetime.fromtimestamp(stored.head_since, UTC),
        start=datetime.fromtimestamp(0.0 if long_s is None else max(0.0, end - long_s), UTC),
        end=datetime.fromtimestamp(end, UTC),
        problem=stored.problem,
    )
    source = history_line(name, found[0], is_selected=word is not None)
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
