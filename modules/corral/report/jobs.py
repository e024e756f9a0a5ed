"""A cluster's jobs, offers and queues as its head tells of them, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from rich.console import RenderableType
from rich.text import Text

from corral.model.head import HeadJob, HeadState
from corral.report.amounts import ago, count
from corral.report.documents import Document
from corral.report.events import briefly
from corral.report.tables import facts, table

_SHOWN = 20  # jobs of a view; the rest is counted
_STUCK_S = 300  # an answer of EC2's may take a minute, and one turn of the keeper asks it several times


def slurm_view(state: HeadState) -> Iterator[RenderableType]:
    """What runs, what waits and why, and what the head does not ask for now."""
    yield Text()
    yield facts(_facts(state))
    if state.jobs:
        now = datetime.fromtimestamp(state.at, UTC)
        yield Text()
        yield table(("job", "user", "name", "queue", "state", ">nodes", "where, or why not"), _rows(state.jobs, now))
        if more := state.running + state.waiting - min(len(state.jobs), _SHOWN):
            yield Text(f"  and {count(more)} more")


def slurm_document(state: HeadState | None) -> Document | None:
    """The part of `corral status --json` that the head tells; None where it did not answer."""
    if state is None:
        return None
    return {
        "at": _iso(state.at),
        "running": state.running,
        "waiting": state.waiting,
        "jobs": [_job(job) for job in state.jobs],
        "resting_offers": [{**asdict(one), "until": _iso(one.until)} for one in state.resting],
        "stopped_queues": list(state.stopped),
        "nodes": [asdict(one) for one in state.nodes],
        "keeper": {
            "runs": state.keeper.runs,
            "turned": None if state.keeper.turned is None else _iso(state.keeper.turned),
            "problem": keeper_problem(state) or None,
        },
    }


def keeper_problem(state: HeadState) -> str:
    """What is wrong with the head's keeper, and what to do; empty where nothing is."""
    keeper, now = state.keeper, datetime.fromtimestamp(state.at, UTC)
    if keeper.runs and (keeper.turned is None or state.at - keeper.turned <= _STUCK_S):
        return ""
    does = "runs, but does nothing" if keeper.runs else "does not run"
    since = "the head booted" if keeper.turned is None else _clock(keeper.turned, now)
    what = f"{does} since {since}: no machine is launched or ended"
    return f"{what} - on the head `{keeper.start}` starts it, `{keeper.log}` says why"


def job_line(job: HeadJob, now: datetime) -> str:
    """A running job in a sentence's place: number, user, name, queue, nodes, how long."""
    where = job.nodes or f"{job.node_count} nodes"
    return f"job {job.job_id}  {job.user}  {job.name}  {job.queue}  {where}  {job.state} for {_for(job, now)}"


def what_it_does(job: HeadJob, now: datetime) -> str:
    """Where a job runs and since when, or why it waits and until when."""
    if not job.waits:
        return f"{job.nodes or '-'}, for {_for(job, now)}"
    until = "" if job.until is None else f" until {_clock(job.until, now)}"
    return f"waits{until}{f': {briefly(job.why)}' if job.why else ''}"


def _facts(state: HeadState) -> Iterator[tuple[str, str]]:
    yield "jobs", f"{count(state.running)} run, {count(state.waiting)} wait"
    now = datetime.fromtimestamp(state.at, UTC)
    if problem := keeper_problem(state):
        yield "keeper", problem
    for one in state.resting:
        yield "rests", f"{one.offer} until {_clock(one.until, now)}: {briefly(one.why)} ({one.kind})"
    for queue in state.stopped:
        yield "stopped", f"queue {queue} starts no jobs - `scontrol update partitionname={queue} state=up` on the head"


def _rows(jobs: Sequence[HeadJob], now: datetime) -> Iterator[tuple[str, ...]]:
    for job in jobs[:_SHOWN]:
        yield job.job_id, job.user, job.name, job.queue, job.state, count(job.node_count), what_it_does(job, now)


def _job(job: HeadJob) -> Document:
    return {**asdict(job), "since": _iso(job.since), "until": None if job.until is None else _iso(job.until)}


def _for(job: HeadJob, now: datetime) -> str:
    return ago(max(timedelta(), now - datetime.fromtimestamp(job.since, UTC)))


def _clock(moment: int, now: datetime) -> str:
    """The time of day, with its date where that is another."""
    then = datetime.fromtimestamp(moment, UTC)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
