"""A cluster's history as rows of bars over time: its head, its nodes, its jobs. Pure: records in, records out.

`timeline_text` shows it on a terminal, `timeline_page` as one HTML file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from corral.model.head_report import JobRun
from corral.model.node_names import number_of, queue_of
from corral.report.timeline.event_lines import ClusterEvent, shorten
from corral.report.timeline.event_nodes import by_node, expanded
from corral.report.timeline.node_boot_times import ENDS, corrected_runs

_MARKED = frozenset({"refused", "launch-failed", "stopped", "draining", "job-waits"})
_MARKED_OF_NODES = frozenset({"notice", "drained", "rebooted"})
# Events on a node, which a later head may report: they do not prove that a head was up at that time.
_OBSERVED = frozenset({"up", "notice"})
_IS_UP = "the head is up"


class State(StrEnum):
    """The state that a bar shows."""

    UP = "up"
    SILENT = "silent"
    BOOTING = "booting"
    IDLE = "idle"
    RUNNING = "running"
    NOTICE = "notice"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A period in one state. `text`: its tooltip. `ongoing`: it had not ended."""

    start: datetime
    end: datetime
    state: State
    text: str
    ongoing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMark:
    """An event in a row."""

    at: datetime
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """A head, a node or a job. `final_state`: its last known state."""

    kind: str
    name: str
    bars: tuple[Bar, ...]
    marks: tuple[EventMark, ...] = ()
    final_state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The rows of a cluster between two times. `problem`: what is missing, if anything."""

    cluster: str
    start: datetime
    end: datetime
    rows: tuple[TimelineRow, ...]
    problem: str = ""


def build_timeline(
    cluster: str,
    events: Sequence[ClusterEvent],
    runs: Sequence[JobRun],
    *,
    head_since: datetime | None,
    start: datetime,
    end: datetime,
    problem: str = "",
) -> Timeline:
    """The history of a cluster, from `start` or its first event on.

    `events`: all events, since instances launched before may still run. `head_since`: the launch of the current head.
    """
    began = [one.at for one in events] + ([head_since] if head_since else [])
    head = _head(events, runs, head_since, end)
    start = min(max(start, min(began, default=start)), end)
    node_events = by_node(events)
    seen = corrected_runs(runs, node_events, end)
    rows = (head, *_nodes(node_events, seen, end), *_jobs(seen, end))
    shown = (_cut(row, start) for row in rows)
    return Timeline(
        cluster=cluster,
        start=start,
        end=end,
        rows=tuple(row for row in shown if row.bars or row.marks),
        problem=problem,
    )


def _head(
    events: Sequence[ClusterEvent], runs: Iterable[JobRun], launched: datetime | None, end: datetime
) -> TimelineRow:
    """The head's bars: a former head until its last event, then the current one from its launch on.

    Each start of the autoscaler after the first is a mark.
    """
    began = [one.at for one in events if one.kind == "autoscaler-started"]
    if launched is not None:
        bars = (*_former_head(events, runs, launched), *_present_head(events, launched, end))
    else:
        bars = tuple(_open(at, State.UP, _IS_UP, end) for at in began[:1])
    marks = [EventMark(at=at, kind="autoscaler-started", text="the autoscaler restarted") for at in began[1:]]
    marks += [EventMark(at=one.at, kind=one.kind, text=shorten(one.text)) for one in events if one.kind in _MARKED]
    return TimelineRow(kind="head", name="head", bars=bars, marks=tuple(marks))


def _former_head(events: Sequence[ClusterEvent], runs: Iterable[JobRun], launched: datetime) -> Iterator[Bar]:
    """Up until its last event, then silent: the end of a head is not recorded."""
    observed = [one.at for one in events if one.kind not in _OBSERVED]
    began = observed[0] if observed else launched
    observed += [_time(at) for run in runs for at in (run.submitted, run.started) if at is not None]
    last = max((at for at in observed if began <= at < launched), default=None)
    if last is not None:
        yield Bar(start=began, end=last, state=State.UP, text=_IS_UP)
        yield Bar(
            start=last, end=launched, state=State.SILENT, text="no event of a head until the next one was launched"
        )


def _present_head(events: Sequence[ClusterEvent], launched: datetime, end: datetime) -> Iterator[Bar]:
    """Booting until its autoscaler started; up all the time if that event is lost, as old events are."""
    since = [one for one in events if one.at >= launched and one.kind not in _OBSERVED]
    began = next((one.at for one in since if one.kind == "autoscaler-started"), launched if since else None)
    if began != launched:
        yield Bar(start=launched, end=began or end, state=State.BOOTING, text="the head boots", ongoing=began is None)
    if began is not None:
        yield _open(began, State.UP, _IS_UP, end)


def _nodes(
    node_events: Mapping[str, Sequence[ClusterEvent]], runs: Sequence[JobRun], end: datetime
) -> Iterator[TimelineRow]:
    """A row for each node that ever had an instance."""
    node_runs: dict[str, list[JobRun]] = defaultdict(list)
    for run in runs:
        for node in expanded(run.nodes):
            node_runs[node].append(run)
    for node in sorted(node_events, key=lambda name: (queue_of(name), number_of(name))):
        instances = _instance_bars(node_events[node], end)
        bars = [bar for instance in instances for bar in _with_jobs(instance, node_runs[node], end)]
        if instances:
            yield TimelineRow(kind="node", name=node, bars=tuple(bars), marks=tuple(_marks(node_events[node])))


def _marks(node_events: Iterable[ClusterEvent]) -> Iterator[EventMark]:
    """Unexpected events of a node, with each unplanned end of an instance that no notice announced."""
    there = False  # an instance without a notice or an end so far
    for one in node_events:
        if one.kind in _MARKED_OF_NODES or (there and _is_unplanned(one)):
            yield EventMark(at=one.at, kind=one.kind, text=one.text)
        if one.kind == "launched":
            there = True
        elif one.kind == "notice" or one.kind in ENDS:
            there = False


def _is_unplanned(one: ClusterEvent) -> bool:
    """True if an instance is gone or silent, or did not come up in time."""
    return one.kind == "marked-down" or (one.kind == "ended" and one.facts.get("verb") == "resume-failed")


def _jobs(runs: Sequence[JobRun], end: datetime) -> Iterator[TimelineRow]:
    """A row for each job, with all its runs."""
    found: dict[str, list[JobRun]] = defaultdict(list)
    for run in sorted(runs, key=lambda one: (one.submitted, _number(one.job_id), one.started or 0)):
        found[run.job_id].append(run)
    for job_id, own in found.items():
        last = own[-1]
        name = f"{job_id} {last.name}"
        yield TimelineRow(
            kind="job", name=name, bars=tuple(bar for run in own for bar in _run(run, end)), final_state=last.state
        )


def _number(job_id: str) -> int:
    """The number of a job id; of an array job, that of the array."""
    digits = job_id.partition("_")[0]
    return int(digits) if digits.isdigit() else 0


def _run(run: JobRun, end: datetime) -> Iterator[Bar]:
    """A run waits from its submission to its start, and runs from there to its end."""
    over = end if run.ended is None else _time(run.ended)
    begins = over if run.started is None else _time(run.started)
    submitted = _time(run.submitted)
    if submitted < begins:
        text = f"job {run.job_id} waits"
        yield Bar(start=submitted, end=begins, state=State.WAITING, text=text, ongoing=begins == end and not run.ended)
    if run.started is not None:
        text = f"job {run.job_id} ({run.name}) of {run.user} on {run.nodes}: {run.state}"
        yield Bar(start=begins, end=over, state=State.RUNNING, text=text, ongoing=run.ended is None)


def _instance_bars(node_events: Sequence[ClusterEvent], end: datetime) -> list[list[Bar]]:
    """The instances of a node in order, each as bars: booting, idle, under a notice."""
    instances: list[list[Bar]] = []
    for one in node_events:
        now = instances[-1][-1] if instances and instances[-1][-1].ongoing else None
        if one.kind == "launched":
            if now is not None:
                instances[-1][-1] = _ended(now, one.at)
            instances.append([_open(one.at, State.BOOTING, one.text, end)])
        elif now is None:
            continue
        elif one.kind == "up" and now.state is State.BOOTING and one.at >= now.start:
            instances[-1][-1:] = [_ended(now, one.at), _open(one.at, State.IDLE, one.text, end)]
        elif one.kind == "notice" and one.at >= now.start:
            instances[-1][-1:] = [_ended(now, one.at), _open(one.at, State.NOTICE, one.text, end)]
        elif one.kind in ENDS:
            instances[-1][-1] = _ended(now, one.at)
    return instances


def _with_jobs(instance: Sequence[Bar], runs: Iterable[JobRun], end: datetime) -> Iterator[Bar]:
    """The bars of an instance, with idle and boot time replaced by job runs; bars under a notice stay."""
    node_runs = []
    for run in sorted(runs, key=lambda one: one.started or 0):
        if run.started is not None:
            over = end if run.ended is None else _time(run.ended)
            text = f"job {run.job_id} ({run.name}) of {run.user}"
            ongoing = run.ended is None
            node_runs.append(Bar(start=_time(run.started), end=over, state=State.RUNNING, text=text, ongoing=ongoing))
    for bar in instance:
        if bar.state is not State.IDLE and bar.state is not State.BOOTING:
            yield bar
            continue
        at = bar.start
        for work in node_runs:
            begins, over = max(work.start, at), min(work.end, bar.end)
            if over <= begins:
                continue
            if begins > at:
                yield replace(bar, start=at, end=begins, ongoing=False)
            yield replace(work, start=begins, end=over, ongoing=work.ongoing and over == bar.end and bar.ongoing)
            at = over
        if at < bar.end:
            yield replace(bar, start=at)


def _open(at: datetime, state: State, text: str, end: datetime) -> Bar:
    return Bar(start=at, end=max(at, end), state=state, text=text, ongoing=True)


def _ended(bar: Bar, at: datetime) -> Bar:
    return replace(bar, end=max(bar.start, at), ongoing=False)


def _cut(row: TimelineRow, start: datetime) -> TimelineRow:
    """The row without bars and marks before `start`."""
    bars = tuple(replace(bar, start=max(bar.start, start)) for bar in row.bars if bar.end > start)
    return replace(row, bars=bars, marks=tuple(mark for mark in row.marks if mark.at >= start))


def _time(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
