"""The reports of the head for `corral status`, `timeline` and `down`, read from Slurm and the autoscaler's state.

Read-only. The reports are records of `model.head_report`, readable by any corral of the same version. Names and
accounts of jobs are their users' text: they are read from columns of fixed width, so that no part of them can pass as
another job (decision 162), and made printable here.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from corral.agent.autoscaler.requeue_release import LONGEST_DELAY, ClosedQueue, closed_queues, opens_at
from corral.agent.cluster.models import SlurmNode
from corral.agent.cluster.partition_state import not_open
from corral.agent.cluster.state import AutoscalerState
from corral.agent.events import EVENTS, read_lines
from corral.agent.slurm import SlurmError, fixed_rows, gpus_in, lines, query
from corral.model.cluster import QueuePlan
from corral.model.head_report import (
    AutoscalerStatus,
    EventPage,
    HeadJob,
    HeadStatus,
    JobRun,
    JobRunPage,
    NodeGroup,
    OfferBackoff,
)
from corral.model.node_names import fold, queue_of
from corral.model.printable import LENGTH, printable

PAGE_SIZE = 400  # jobs, runs or events per report: Session Manager returns 24,000 characters of a command's output
_EARLIEST = 1.0  # sacct takes the second before, 0, for no start time, and starts at the last midnight
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_NAME_BYTES = 4 * LENGTH + 1  # more than is shown; a character has at most four
# Widths in bytes.
_WIDTHS: Mapping[str, int] = {
    "JobArrayID": 48, "UserName": 64, "Partition": 200, "State": 24, "NumNodes": 10, "NodeList": 400,
    "StartTime": 20, "SubmitTime": 20, "Reason": 60, "admin_comment": 1000, "RestartCnt": 12, "Account": _NAME_BYTES,
    "Name": _NAME_BYTES,
}  # fmt: skip
_JOBS = "--Format=" + ",".join(f"{name}:{width}" for name, width in _WIDTHS.items())
_RUNS = "--format=JobIDRaw,JobID,User,Partition,State,Submit,Start,End,NodeList,AllocCPUS,AllocTRES"  # no users' text
# Left-aligned; a blank follows each column.
_NAME_WIDTHS: Mapping[str, int] = {"JobIDRaw": 12, "Submit": 20, "Account": _NAME_BYTES, "JobName": _NAME_BYTES}
_NAMES = "--format=" + ",".join(f"{name}%-{width}" for name, width in _NAME_WIDTHS.items())
_NOTHING = ("", "(null)", "None", "None assigned", "N/A", "Unknown")
_OPEN: Mapping[str, ClosedQueue] = {}
Row = TypeVar("Row")
Found = TypeVar("Found")
# Slurm's reasons why a job is pending, in plain words. Source: squeue(1), "JOB REASON CODES".
_REASONS: Mapping[str, str] = {
    "BeginTime": "its begin time has not come",
    "Dependency": "a job it depends on has not ended",
    "DependencyNeverSatisfied": "a job it depends on has failed",
    "JobHeldAdmin": "held by an administrator",
    "JobHeldUser": "held by its user",
    "PartitionDown": "its queue is stopped",
    "PartitionInactive": "its queue is stopped",
    "Priority": "jobs with a higher priority wait too",
    "ReqNodeNotAvail": "its nodes are not available now",
    "Resources": "no node is free",
}


def head_state(
    queues: Sequence[QueuePlan],
    nodes: Sequence[SlurmNode],
    autoscaler_state: AutoscalerState,
    now: float,
    autoscaler: AutoscalerStatus,
) -> HeadStatus:
    """The present state of the cluster. Raises SlurmError."""
    found, unreadable = active_jobs(closed_queues(queues, autoscaler_state.backoffs, now), now)
    return HeadStatus(
        at=int(now),
        jobs=found[:PAGE_SIZE],
        running=sum(not job.is_pending for job in found),
        waiting=sum(job.is_pending for job in found),
        backoffs=offers_backing_off(autoscaler_state, now),
        disabled_queues=not_open([queue.name for queue in queues]),
        nodes=node_groups(nodes),
        autoscaler=autoscaler,
        unreadable_jobs=unreadable,
    )


def active_jobs(closed: Mapping[str, ClosedQueue] = _OPEN, now: float = 0.0) -> tuple[tuple[HeadJob, ...], int]:
    """The jobs that have not ended, running ones first, then by number; and how many others are unreadable.

    `closed`: the queues that can get no machines now. Raises SlurmError.
    """
    rows = fixed_rows(query("squeue", "--noheader", "--all", _JOBS, environment=_SECONDS), [*_WIDTHS.values()])
    found, unreadable = _readable(rows, lambda row: read_active_job(row, closed, now))
    return tuple(sorted(found, key=lambda job: (job.is_pending, _number(job.job_id)))), unreadable


def read_active_job(row: Sequence[str], closed: Mapping[str, ClosedQueue] = _OPEN, now: float = 0.0) -> HeadJob:
    """A job from a row of squeue. Raises ValueError if its number of nodes is not one number."""
    cells = dict(zip(_WIDTHS, row, strict=True))
    waits = cells["State"] == "PENDING"
    reason, until = _waiting(cells, closed, now) if waits else ("", None)
    return HeadJob(
        job_id=cells["JobArrayID"],
        user=cells["UserName"],
        name=printable(cells["Name"]),
        queue=cells["Partition"],
        state=cells["State"].lower(),
        nodes="" if cells["NodeList"] in _NOTHING else cells["NodeList"],
        node_count=int(cells["NumNodes"]),
        since=_moment(cells["SubmitTime"] if waits else cells["StartTime"]) or 0,
        reason=printable(reason, _WIDTHS["admin_comment"]),
        until=until,
        account="" if cells["Account"] in _NOTHING else printable(cells["Account"]),
    )


def offers_backing_off(autoscaler_state: AutoscalerState, now: float) -> tuple[OfferBackoff, ...]:
    """The offers that are backing off now, by name."""
    return tuple(
        OfferBackoff(offer=key, until=int(one.until), kind=str(one.kind), reason=one.reason)
        for key, one in sorted(autoscaler_state.backoffs.items())
        if one.until > now
    )


def node_groups(nodes: Sequence[SlurmNode]) -> tuple[NodeGroup, ...]:
    """The nodes by queue and state."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        found[queue_of(node.name), "+".join(sorted(node.states - {"CLOUD"})).lower()].append(node.name)
    return tuple(
        NodeGroup(queue=queue, state=state, nodes=fold(names), count=len(names))
        for (queue, state), names in sorted(found.items())
    )


def event_page(since: float, start: int = 0, file: Path = EVENTS, limit: int = PAGE_SIZE) -> EventPage:
    """The events since this time, in the order of writing, from the `start`-th on."""
    found = [line for line in read_lines(file) if _is_since(line, since)]
    more = start + limit
    return EventPage(lines=tuple(found[start:more]), next=more if len(found) > more else None)


def job_run_page(since: float, now: float, start: int = 0, limit: int = PAGE_SIZE) -> JobRunPage:
    """The runs of jobs that had not ended at this time, from slurmdbd.

    If slurmdbd does not answer, from slurmctld, which forgets ended jobs. Raises SlurmError if neither answers.
    """
    begins = datetime.fromtimestamp(max(_EARLIEST, since)).strftime("%Y-%m-%dT%H:%M:%S")
    sacct = ("sacct", "--duplicates", "--allocations", "--noheader", "--allusers", f"--starttime={begins}")
    try:
        recorded = lines(query(*sacct, "--parsable2", _RUNS, environment=_SECONDS).decode(errors="replace"))
        names = _names(query(*sacct, _NAMES, environment=_SECONDS))
    except SlurmError as error:
        return JobRunPage(
            runs=tuple(_as_run(job, now) for job in active_jobs()[0]),
            next=None,
            problem=f"ended jobs are missing: {error}",
        )
    runs, unreadable = _readable(recorded, lambda line: parse_sacct_line(line, names))
    found = sorted(runs, key=lambda run: (run.submitted, run.job_id))
    more = start + limit
    if len(found) > more:
        return JobRunPage(runs=tuple(found[start:more]), next=more)
    try:
        present, not_present = active_jobs()
    except SlurmError as error:
        problem = f"waiting and just started jobs may be missing: {error}"
        return JobRunPage(runs=tuple(found[start:more]), next=None, problem=problem)
    missing = unreadable + not_present
    return JobRunPage(
        runs=(*found[start:more], *_unrecorded(found, present, now)),
        next=None,
        problem=f"runs of jobs are missing: {missing}, which Slurm prints in an unknown form" if missing else "",
    )


class RunNames(NamedTuple):
    """What users write about a run."""

    account: str
    name: str


def _names(output: bytes) -> Mapping[tuple[str, str], RunNames]:
    """The accounts and names of runs by job id and time of submission. Raises SlurmError."""
    rows = fixed_rows(output, [width + 1 for width in _NAME_WIDTHS.values()])
    return {(job, submitted): RunNames(*map(printable, names)) for job, submitted, *names in rows}


def parse_sacct_line(line: str, names: Mapping[tuple[str, str], RunNames]) -> JobRun:
    """A run from a line of sacct, with its account and name, empty if unknown. Raises ValueError for another line."""
    raw, job, user, queue, state, submitted, started, ended, nodes, cpus, tres = line.split("|")
    account, name = names.get((raw, submitted), RunNames("", ""))
    return JobRun(
        job_id=job,
        user=user,
        name=name,
        queue=queue,
        state=state.partition(" ")[0].lower(),  # `CANCELLED by 1000`
        nodes="" if nodes in _NOTHING else nodes,
        submitted=_moment(submitted) or 0,
        started=_moment(started),
        ended=_moment(ended),
        account=account,
        cpus=_moment(cpus) or 0,
        gpus=gpus_in(tres),
    )


def _readable(rows: Iterable[Row], read: Callable[[Row], Found]) -> tuple[Sequence[Found], int]:
    """What `read` makes of the rows, and the number of those that it cannot read."""
    found, unreadable = list[Found](), 0
    for row in rows:
        try:
            found.append(read(row))
        except ValueError:
            unreadable += 1
    return found, unreadable


def _unrecorded(runs: Sequence[JobRun], present: Sequence[HeadJob], now: float) -> Iterator[JobRun]:
    """Present runs that slurmdbd does not list: some waiting ones, and those that started some seconds ago."""
    last = {run.job_id: run for run in runs}
    for job in present:
        before = last.get(job.job_id)
        if before is None:
            yield _as_run(job, now)
        elif before.ended is not None and (job.is_pending or job.since >= before.ended):
            started = None if job.is_pending else job.since
            yield replace(before, state=job.state, nodes=job.nodes, submitted=before.ended, started=started, ended=None)


def _as_run(job: HeadJob, now: float) -> JobRun:
    return JobRun(
        job_id=job.job_id,
        user=job.user,
        name=job.name,
        queue=job.queue,
        state=job.state,
        nodes=job.nodes,
        submitted=min(job.since, int(now)),
        started=None if job.is_pending else job.since,
        ended=None,
        account=job.account,
    )


def _waiting(cells: Mapping[str, str], closed: Mapping[str, ClosedQueue], now: float) -> tuple[str, int | None]:
    """Why a job waits, and its earliest start.

    A job that was just requeued waits for Slurm's own delay, and has no comment yet. If its queues can get no machines,
    it waits for them afterwards, and that is reported.
    """
    reason = _why(cells["Reason"], cells["admin_comment"])
    if cells["Reason"] != "BeginTime":
        return reason, None
    until = _moment(cells["StartTime"])
    is_delayed = cells["RestartCnt"] not in ("", "0") and (until or 0) - now <= LONGEST_DELAY.total_seconds()
    if cells["admin_comment"] not in _NOTHING or not is_delayed:
        return reason, until
    opened, because = opens_at(cells["Partition"].split(","), closed, datetime.fromtimestamp(now))
    return (reason, until) if opened is None else (because.removeprefix("corral: "), int(opened.timestamp()))


def _why(reason: str, comment: str) -> str:
    """The autoscaler's comment, or else Slurm's reason in plain words."""
    if comment not in _NOTHING:
        return comment.removeprefix("corral: ")
    known, _, rest = reason.partition(",")
    return "" if reason in _NOTHING else _REASONS.get(known, known) + (f" ({rest.strip()})" if rest else "")


def _is_since(line: str, since: float) -> bool:
    """False also for a truncated line."""
    try:
        return datetime.fromisoformat(json.loads(line)["at"].replace("Z", "+00:00")).timestamp() >= since
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _moment(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _number(job_id: str) -> int:
    """The number of a job id, without the `_3` of an array; 0 if it has none."""
    head = job_id.partition("_")[0].partition("+")[0]
    return int(head) if head.isdigit() else 0
