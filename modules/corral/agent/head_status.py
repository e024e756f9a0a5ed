"""The reports of the head for `corral status`, `timeline` and `down`, read from Slurm and the autoscaler's state.

Read-only. The reports are records of `model.head_report`, readable by any corral of the same version.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from corral.agent.autoscaler.requeue_release import LONGEST_DELAY, ClosedQueue, closed_queues, opens_at
from corral.agent.cluster.models import SlurmNode
from corral.agent.cluster.partition_state import not_open
from corral.agent.cluster.state import AutoscalerState
from corral.agent.events import EVENTS, read_lines
from corral.agent.slurm import SlurmError, query
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

PAGE_SIZE = 400  # jobs, runs or events per report: Session Manager returns 24,000 characters of a command's output
_EARLIEST = 1.0  # sacct takes the second before, 0, for no start time, and starts at the last midnight
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_WIDTHS = (
    ("JobArrayID", 48), ("UserName", 64), ("Partition", 200), ("State", 24), ("NumNodes", 10), ("NodeList", 400),
    ("StartTime", 20), ("SubmitTime", 20), ("Reason", 60), ("admin_comment", 1000), ("Name", 80),
    ("RestartCnt", 12),
)  # fmt: skip
_JOBS = "--Format=" + ",".join(f"{name}:{width}" for name, width in _WIDTHS)
_RUNS = "JobID,User,Partition,State,Submit,Start,End,NodeList,JobName"
_NOTHING = ("", "(null)", "None", "None assigned", "N/A", "Unknown")
_OPEN: Mapping[str, ClosedQueue] = {}
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
    found = active_jobs(closed_queues(queues, autoscaler_state.backoffs, now), now)
    return HeadStatus(
        at=int(now),
        jobs=found[:PAGE_SIZE],
        running=sum(not job.is_pending for job in found),
        waiting=sum(job.is_pending for job in found),
        backoffs=offers_backing_off(autoscaler_state, now),
        disabled_queues=not_open([queue.name for queue in queues]),
        nodes=node_groups(nodes),
        autoscaler=autoscaler,
    )


def active_jobs(closed: Mapping[str, ClosedQueue] = _OPEN, now: float = 0.0) -> tuple[HeadJob, ...]:
    """The jobs that have not ended, running ones first, then by number. Raises SlurmError.

    `closed`: the queues that can get no machines now.
    """
    lines = query("squeue", "--noheader", "--all", _JOBS, environment=_SECONDS).splitlines()
    return tuple(
        sorted(
            (parse_squeue_line(line, closed, now) for line in lines),
            key=lambda job: (job.is_pending, _number(job.job_id)),
        )
    )


def parse_squeue_line(line: str, closed: Mapping[str, ClosedQueue] = _OPEN, now: float = 0.0) -> HeadJob:
    """A job from a line of squeue: columns of fixed widths, because names may contain any character."""
    cells, start = dict[str, str](), 0
    for name, width in _WIDTHS:
        cells[name] = line[start : start + width].strip()
        start += width
    waits = cells["State"] == "PENDING"
    reason, until = _waiting(cells, closed, now) if waits else ("", None)
    return HeadJob(
        job_id=cells["JobArrayID"],
        user=cells["UserName"],
        name=cells["Name"],
        queue=cells["Partition"],
        state=cells["State"].lower(),
        nodes="" if cells["NodeList"] in _NOTHING else cells["NodeList"],
        node_count=int(cells["NumNodes"]),
        since=_moment(cells["SubmitTime"] if waits else cells["StartTime"]) or 0,
        reason=reason,
        until=until,
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
    options = ("--duplicates", "--allocations", "--parsable2", "--noheader", "--allusers", f"--starttime={begins}")
    try:
        text = query("sacct", *options, f"--format={_RUNS}", environment=_SECONDS)
    except SlurmError as error:
        return JobRunPage(
            runs=tuple(_as_run(job, now) for job in active_jobs()),
            next=None,
            problem=f"ended jobs are missing: {error}",
        )
    found = sorted((parse_sacct_line(line) for line in text.splitlines()), key=lambda run: (run.submitted, run.job_id))
    more = start + limit
    if len(found) > more:
        return JobRunPage(runs=tuple(found[start:more]), next=more)
    try:
        unrecorded = tuple(_unrecorded(found, active_jobs(), now))
    except SlurmError as error:
        problem = f"waiting and just started jobs may be missing: {error}"
        return JobRunPage(runs=tuple(found[start:more]), next=None, problem=problem)
    return JobRunPage(runs=(*found[start:more], *unrecorded), next=None)


def parse_sacct_line(line: str) -> JobRun:
    """A run from a line of sacct. The name is last, because it may contain the separator."""
    job, user, queue, state, submitted, started, ended, nodes, name = line.split("|", 8)
    return JobRun(
        job_id=job,
        user=user,
        name=name,
        queue=queue,
        state=state.split()[0].lower(),  # `CANCELLED by 1000`
        nodes="" if nodes in _NOTHING else nodes,
        submitted=_moment(submitted) or 0,
        started=_moment(started),
        ended=_moment(ended),
    )


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
