"""A cluster's life as rows of bars over time: its head, its nodes, its jobs. Pure: records in, records out.

`timeline_text` draws it on a terminal, `timeline_page` as one HTML file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from corral.model.head import JobRun
from corral.model.node_names import number_of, queue_of
from corral.report.concerned import by_node, expanded
from corral.report.events import Happened, briefly
from corral.report.readiness import ENDS, as_they_were

_MARKED = frozenset({"refused", "without", "stopped", "draining", "job-waits"})
_MARKED_OF_NODES = frozenset({"notice", "drained", "rebooted"})
# What happened on a node: a head may learn of it later, so it is no sign of the head of that time.
_OBSERVED = frozenset({"up", "notice"})
_IS_UP = "the head is up"


class State(StrEnum):
    """What a bar says of its row."""

    UP = "up"
    SILENT = "silent"
    BOOTING = "booting"
    IDLE = "idle"
    RUNNING = "running"
    NOTICE = "notice"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A stretch of time in one state. `text`: what a reader may want to know of it. `goes_on`: it had not ended."""

    start: datetime
    end: datetime
    state: State
    text: str
    goes_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Something that happened at a moment."""

    at: datetime
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A head, a node or a job. `note`: how it stands at the end."""

    kind: str
    name: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """The rows of one cluster between two moments; `problem`: what is missing, if anything."""

    cluster: str
    start: datetime
    end: datetime
    rows: tuple[Row, ...]
    problem: str = ""


def timeline(
    cluster: str,
    events: Sequence[Happened],
    runs: Sequence[JobRun],
    *,
    head_since: datetime | None,
    start: datetime,
    end: datetime,
    problem: str = "",
) -> Timeline:
    """The life of a cluster from `start` on. Nothing is drawn before its first event, as jobs of an earlier one.

    `events`: all, since what was launched before is still there. `head_since`: when the present head was launched.
    """
    began = [one.at for one in events] + ([head_since] if head_since else [])
    head = _head(events, runs, head_since, end)
    start = min(max(start, min(began, default=start)), end)
    told = by_node(events)
    seen = as_they_were(runs, told, end)
    rows = (head, *_nodes(told, seen, end), *_jobs(seen, end))
    shown = (_cut(row, start) for row in rows)
    return Timeline(
        cluster=cluster,
        start=start,
        end=end,
        rows=tuple(row for row in shown if row.bars or row.marks),
        problem=problem,
    )


def _head(events: Sequence[Happened], runs: Iterable[JobRun], launched: datetime | None, end: datetime) -> Row:
    """The head's bars: a former one up to its last sign, then the present one from its launch on.

    Each start of a keeper after the first is a mark.
    """
    began = [one.at for one in events if one.kind == "keeper-began"]
    if launched is not None:
        bars = (*_former_head(events, runs, launched), *_present_head(events, launched, end))
    else:
        bars = tuple(_open(at, State.UP, _IS_UP, end) for at in began[:1])
    marks = [Mark(at=at, kind="keeper-began", text="the keeper begins again") for at in began[1:]]
    marks += [Mark(at=one.at, kind=one.kind, text=briefly(one.text)) for one in events if one.kind in _MARKED]
    return Row(kind="head", name="head", bars=bars, marks=tuple(marks))


def _former_head(events: Sequence[Happened], runs: Iterable[JobRun], launched: datetime) -> Iterator[Bar]:
    """Up as long as it did something, then silent: nobody writes down when a head ends."""
    signs = [one.at for one in events if one.kind not in _OBSERVED]
    began = signs[0] if signs else launched
    signs += [_time(at) for run in runs for at in (run.submitted, run.started) if at is not None]
    last = max((at for at in signs if began <= at < launched), default=None)
    if last is not None:
        yield Bar(start=began, end=last, state=State.UP, text=_IS_UP)
        yield Bar(start=last, end=launched, state=State.SILENT, text="no sign of a head, until the next was launched")


def _present_head(events: Sequence[Happened], launched: datetime, end: datetime) -> Iterator[Bar]:
    """Booting until its keeper began; up all the time where that event is lost, as old ones are."""
    since = [one for one in events if one.at >= launched and one.kind not in _OBSERVED]
    began = next((one.at for one in since if one.kind == "keeper-began"), launched if since else None)
    if began != launched:
        yield Bar(start=launched, end=began or end, state=State.BOOTING, text="the head boots", goes_on=began is None)
    if began is not None:
        yield _open(began, State.UP, _IS_UP, end)


def _nodes(told: Mapping[str, Sequence[Happened]], runs: Sequence[JobRun], end: datetime) -> Iterator[Row]:
    """A row for each node that ever had a machine."""
    at_work: dict[str, list[JobRun]] = defaultdict(list)
    for run in runs:
        for node in expanded(run.nodes):
            at_work[node].append(run)
    for node in sorted(told, key=lambda name: (queue_of(name), number_of(name))):
        lives = _lives(told[node], end)
        bars = [bar for life in lives for bar in _worked(life, at_work[node], end)]
        if lives:
            yield Row(kind="node", name=node, bars=tuple(bars), marks=tuple(_marks(told[node])))


def _marks(told: Iterable[Happened]) -> Iterator[Mark]:
    """What went otherwise on a node: also each end of a machine that nobody asked for and no notice foretold."""
    there = False  # a machine of which neither has been told
    for one in told:
        if one.kind in _MARKED_OF_NODES or (there and _unasked(one)):
            yield Mark(at=one.at, kind=one.kind, text=one.text)
        if one.kind == "launched":
            there = True
        elif one.kind == "notice" or one.kind in ENDS:
            there = False


def _unasked(one: Happened) -> bool:
    """Whether a machine is gone, or silent, or did not come up in time."""
    return one.kind == "forgotten" or (one.kind == "ended" and one.facts.get("verb") == "resume-failed")


def _jobs(runs: Sequence[JobRun], end: datetime) -> Iterator[Row]:
    """A row for each job, with all its runs."""
    found: dict[str, list[JobRun]] = defaultdict(list)
    for run in sorted(runs, key=lambda one: (one.submitted, _number(one.job_id), one.started or 0)):
        found[run.job_id].append(run)
    for job_id, own in found.items():
        last = own[-1]
        name = f"{job_id} {last.name}"
        yield Row(kind="job", name=name, bars=tuple(bar for run in own for bar in _run(run, end)), note=last.state)


def _number(job_id: str) -> int:
    """The number before `_3` of an array's job."""
    digits = job_id.partition("_")[0]
    return int(digits) if digits.isdigit() else 0


def _run(run: JobRun, end: datetime) -> Iterator[Bar]:
    """A run waits from its submission to its start, and runs from there to its end."""
    over = end if run.ended is None else _time(run.ended)
    begins = over if run.started is None else _time(run.started)
    submitted = _time(run.submitted)
    if submitted < begins:
        text = f"job {run.job_id} waits"
        yield Bar(start=submitted, end=begins, state=State.WAITING, text=text, goes_on=begins == end and not run.ended)
    if run.started is not None:
        text = f"job {run.job_id} ({run.name}) of {run.user} on {run.nodes}: {run.state}"
        yield Bar(start=begins, end=over, state=State.RUNNING, text=text, goes_on=run.ended is None)


def _lives(told: Sequence[Happened], end: datetime) -> list[list[Bar]]:
    """The machines of a node one after the other, each as bars: booting, idle, and under a notice."""
    lives: list[list[Bar]] = []
    for one in told:
        now = lives[-1][-1] if lives and lives[-1][-1].goes_on else None
        if one.kind == "launched":
            if now is not None:
                lives[-1][-1] = _ended(now, one.at)
            lives.append([_open(one.at, State.BOOTING, one.text, end)])
        elif now is None:
            continue
        elif one.kind == "up" and now.state is State.BOOTING and one.at >= now.start:
            lives[-1][-1:] = [_ended(now, one.at), _open(one.at, State.IDLE, one.text, end)]
        elif one.kind == "notice" and one.at >= now.start:
            lives[-1][-1:] = [_ended(now, one.at), _open(one.at, State.NOTICE, one.text, end)]
        elif one.kind in ENDS:
            lives[-1][-1] = _ended(now, one.at)
    return lives


def _worked(life: Sequence[Bar], runs: Iterable[JobRun], end: datetime) -> Iterator[Bar]:
    """A machine's bars, with what a job took of its time in the job's place; a notice stays to be seen."""
    at_work = []
    for run in sorted(runs, key=lambda one: one.started or 0):
        if run.started is not None:
            over = end if run.ended is None else _time(run.ended)
            text = f"job {run.job_id} ({run.name}) of {run.user}"
            goes_on = run.ended is None
            at_work.append(Bar(start=_time(run.started), end=over, state=State.RUNNING, text=text, goes_on=goes_on))
    for bar in life:
        if bar.state is not State.IDLE and bar.state is not State.BOOTING:
            yield bar
            continue
        at = bar.start
        for work in at_work:
            begins, over = max(work.start, at), min(work.end, bar.end)
            if over <= begins:
                continue
            if begins > at:
                yield replace(bar, start=at, end=begins, goes_on=False)
            yield replace(work, start=begins, end=over, goes_on=work.goes_on and over == bar.end and bar.goes_on)
            at = over
        if at < bar.end:
            yield replace(bar, start=at)


def _open(at: datetime, state: State, text: str, end: datetime) -> Bar:
    return Bar(start=at, end=max(at, end), state=state, text=text, goes_on=True)


def _ended(bar: Bar, at: datetime) -> Bar:
    return replace(bar, end=max(bar.start, at), goes_on=False)


def _cut(row: Row, start: datetime) -> Row:
    """The row without what was before."""
    bars = tuple(replace(bar, start=max(bar.start, start)) for bar in row.bars if bar.end > start)
    return replace(row, bars=bars, marks=tuple(mark for mark in row.marks if mark.at >= start))


def _time(moment: int) -> datetime:
    return datetime.fromtimestamp(moment, UTC)
