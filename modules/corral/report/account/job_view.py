"""A cluster's jobs, offers and queues as its head reports them, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from rich.console import RenderableType
from rich.text import Text

from corral.model.head_report import HeadJob, HeadStatus
from corral.report.formatting import ago, count
from corral.report.plan.plan_json import Document
from corral.report.tables import facts, table
from corral.report.timeline.event_lines import shorten

_SHOWN = 20  # jobs of a view; the rest is counted
_STUCK_S = 300  # an EC2 call may take a minute, and one cycle of the autoscaler makes several


def slurm_view(state: HeadStatus) -> Iterator[RenderableType]:
    """Running and waiting jobs with reasons, offers in backoff, stopped queues."""
    yield Text()
    yield facts(_facts(state))
    if state.jobs:
        now = datetime.fromtimestamp(state.at, UTC)
        yield Text()
        yield table(("job", "user", "name", "queue", "state", ">nodes", "nodes, or reason"), _rows(state.jobs, now))
        if more := state.running + state.waiting - min(len(state.jobs), _SHOWN):
            yield Text(f"  and {count(more)} more")


def slurm_document(state: HeadStatus | None) -> Document | None:
    """The `slurm` part of `corral status --json`; None if the head did not answer."""
    if state is None:
        return None
    return {
        "at": _iso(state.at),
        "running": state.running,
        "waiting": state.waiting,
        "jobs": [_job(job) for job in state.jobs],
        "unreadable_jobs": state.unreadable_jobs,
        "backoffs": [
            {"offer": one.offer, "until": _iso(one.until), "kind": one.kind, "reason": one.reason}
            for one in state.backoffs
        ],
        "disabled_queues": list(state.disabled_queues),
        "nodes": [asdict(one) for one in state.nodes],
        "autoscaler": {
            "is_running": state.autoscaler.is_running,
            "last_cycle": None if state.autoscaler.last_cycle is None else _iso(state.autoscaler.last_cycle),
            "problem": autoscaler_problem(state) or None,
        },
    }


def autoscaler_problem(state: HeadStatus) -> str:
    """What is wrong with the autoscaler and what to do; empty if it works."""
    autoscaler, now = state.autoscaler, datetime.fromtimestamp(state.at, UTC)
    if autoscaler.is_running and (autoscaler.last_cycle is None or state.at - autoscaler.last_cycle <= _STUCK_S):
        return ""
    does = "has done nothing" if autoscaler.is_running else "has not run"
    since = "the head booted" if autoscaler.last_cycle is None else _clock(autoscaler.last_cycle, now)
    what = f"{does} since {since}: no instance is launched or terminated"
    return f"{what} - on the head `{autoscaler.start_command}` starts it, `{autoscaler.log_command}` shows why"


def job_line(job: HeadJob, now: datetime) -> str:
    """A running job on one line: id, user, name, queue, nodes, duration."""
    where = job.nodes or f"{job.node_count} nodes"
    return f"job {job.job_id}  {job.user}  {job.name}  {job.queue}  {where}  {job.state} for {_for(job, now)}"


def job_state(job: HeadJob, now: datetime) -> str:
    """Where a job runs and for how long, or why it waits and until when."""
    if not job.is_pending:
        return f"{job.nodes or '-'}, for {_for(job, now)}"
    until = "" if job.until is None else f" until {_clock(job.until, now)}"
    return f"waits{until}{f': {shorten(job.reason)}' if job.reason else ''}"


def _facts(state: HeadStatus) -> Iterator[tuple[str, str]]:
    yield "jobs", f"{count(state.running)} running, {count(state.waiting)} waiting"
    if state.unreadable_jobs:
        yield "not shown", f"{count(state.unreadable_jobs)} jobs, which Slurm prints in an unknown form"
    now = datetime.fromtimestamp(state.at, UTC)
    if problem := autoscaler_problem(state):
        yield "autoscaler", problem
    for one in state.backoffs:
        yield "backoff", f"{one.offer} until {_clock(one.until, now)}: {shorten(one.reason)} ({one.kind})"
    for queue in state.disabled_queues:
        yield "stopped", f"queue {queue} starts no jobs - `scontrol update partitionname={queue} state=up` on the head"


def _rows(jobs: Sequence[HeadJob], now: datetime) -> Iterator[tuple[str, ...]]:
    for job in jobs[:_SHOWN]:
        yield job.job_id, job.user, job.name, job.queue, job.state, count(job.node_count), job_state(job, now)


def _job(job: HeadJob) -> Document:
    return {**asdict(job), "since": _iso(job.since), "until": None if job.until is None else _iso(job.until)}


def _for(job: HeadJob, now: datetime) -> str:
    return ago(max(timedelta(), now - datetime.fromtimestamp(job.since, UTC)))


def _clock(moment: int, now: datetime) -> str:
    """The time of day, with the date if it is not today."""
    then = datetime.fromtimestamp(moment, UTC)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
