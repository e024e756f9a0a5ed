"""What the head says of itself when `corral status` and `corral down` ask: read from Slurm and the keeper's memory.

Nothing is changed here. What is printed can be read as a record of `model.head` by any corral of the same version.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from corral.agent.events import EVENTS, written
from corral.agent.memory import Memory
from corral.agent.partitions import not_open
from corral.agent.requeued import LONGEST_DELAY, Closed, closed, opens
from corral.agent.slurm import SlurmError, ask
from corral.agent.world import SlurmNode
from corral.model.cluster import QueuePlan
from corral.model.head import Events, HeadJob, HeadState, History, JobRun, Keeping, NodeGroup, RestingOffer
from corral.model.node_names import fold, queue_of

MOST = 400  # jobs, runs or events of one answer: Session Manager shows 24,000 characters of what a command prints
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}
_WIDTHS = (
    ("JobArrayID", 48), ("UserName", 64), ("Partition", 200), ("State", 24), ("NumNodes", 10), ("NodeList", 400),
    ("StartTime", 20), ("SubmitTime", 20), ("Reason", 60), ("admin_comment", 1000), ("Name", 80),
    ("RestartCnt", 12),
)  # fmt: skip
_JOBS = "--Format=" + ",".join(f"{name}:{width}" for name, width in _WIDTHS)
_RUNS = "JobID,User,Partition,State,Submit,Start,End,NodeList,JobName"
_NOTHING = ("", "(null)", "None", "None assigned", "N/A", "Unknown")
_OPEN: Mapping[str, Closed] = {}
# Slurm's own words for why a job waits, in plainer ones. Source: squeue(1), "JOB REASON CODES".
_WORDS: Mapping[str, str] = {
    "BeginTime": "its time has not come",
    "Dependency": "a job that it depends on has not ended",
    "DependencyNeverSatisfied": "a job that it depends on has failed",
    "JobHeldAdmin": "held by an administrator",
    "JobHeldUser": "held by its user",
    "PartitionDown": "its queue is stopped",
    "PartitionInactive": "its queue is stopped",
    "Priority": "jobs before it wait too",
    "ReqNodeNotAvail": "nodes that it asks for cannot be had now",
    "Resources": "no node is free",
}


def state(
    queues: Sequence[QueuePlan], nodes: Sequence[SlurmNode], memory: Memory, now: float, keeper: Keeping
) -> HeadState:
    """What is so now. Raises SlurmError."""
    found = jobs(closed(queues, memory.cold, now), now)
    return HeadState(
        at=int(now),
        jobs=found[:MOST],
        running=sum(not job.waits for job in found),
        waiting=sum(job.waits for job in found),
        resting=resting(memory, now),
        stopped=not_open([queue.name for queue in queues]),
        nodes=groups(nodes),
        keeper=keeper,
    )


def jobs(shut: Mapping[str, Closed] = _OPEN, now: float = 0.0) -> tuple[HeadJob, ...]:
    """Those that have not ended, running ones first, then by their numbers. Raises SlurmError.

    `shut`: the queues that can have no machines now.
    """
    lines = ask("squeue", "--noheader", "--all", _JOBS, more=_SECONDS).splitlines()
    return tuple(
        sorted((read_job(line, shut, now) for line in lines), key=lambda job: (job.waits, _number(job.job_id)))
    )


def read_job(line: str, shut: Mapping[str, Closed] = _OPEN, now: float = 0.0) -> HeadJob:
    """A job by squeue's line about it: columns of fixed widths, since names hold any character."""
    cells, start = dict[str, str](), 0
    for name, width in _WIDTHS:
        cells[name] = line[start : start + width].strip()
        start += width
    waits = cells["State"] == "PENDING"
    why, until = _waiting(cells, shut, now) if waits else ("", None)
    return HeadJob(
        job_id=cells["JobArrayID"],
        user=cells["UserName"],
        name=cells["Name"],
        queue=cells["Partition"],
        state=cells["State"].lower(),
        nodes="" if cells["NodeList"] in _NOTHING else cells["NodeList"],
        node_count=int(cells["NumNodes"]),
        since=_moment(cells["SubmitTime"] if waits else cells["StartTime"]) or 0,
        why=why,
        until=until,
    )


def resting(memory: Memory, now: float) -> tuple[RestingOffer, ...]:
    """The offers that are not asked now, by name."""
    return tuple(
        RestingOffer(offer=key, until=int(one.until), kind=str(one.kind), why=one.why)
        for key, one in sorted(memory.cold.items())
        if one.until > now
    )


def groups(nodes: Sequence[SlurmNode]) -> tuple[NodeGroup, ...]:
    """The nodes by queue and state."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for node in nodes:
        found[queue_of(node.name), "+".join(sorted(node.states - {"CLOUD"})).lower()].append(node.name)
    return tuple(
        NodeGroup(queue=queue, state=state, nodes=fold(names), count=len(names))
        for (queue, state), names in sorted(found.items())
    )


def events(since: float, start: int = 0, file: Path = EVENTS, most: int = MOST) -> Events:
    """The events from that time on, the `start`-th of them first. In the order in which they were written."""
    found = [line for line in written(file) if _is_since(line, since)]
    more = start + most
    return Events(lines=tuple(found[start:more]), next=more if len(found) > more else None)


def history(since: float, now: float, start: int = 0, most: int = MOST) -> History:
    """The runs of jobs that were not over at that time, by slurmdbd; by slurmctld's short memory where it is silent.

    Raises SlurmError where both are.
    """
    begins = datetime.fromtimestamp(max(0.0, since)).strftime("%Y-%m-%dT%H:%M:%S")
    options = ("--duplicates", "--allocations", "--parsable2", "--noheader", "--allusers", f"--starttime={begins}")
    try:
        text = ask("sacct", *options, f"--format={_RUNS}", more=_SECONDS)
    except SlurmError as error:
        return History(
            runs=tuple(_as_run(job, now) for job in jobs()),
            next=None,
            problem=f"jobs that have ended are missing: {error}",
        )
    found = sorted((read_run(line) for line in text.splitlines()), key=lambda run: (run.submitted, run.job_id))
    more = start + most
    if len(found) > more:
        return History(runs=tuple(found[start:more]), next=more)
    try:
        waiting = tuple(_again(found, jobs(), now))
    except SlurmError as error:
        return History(runs=tuple(found[start:more]), next=None, problem=f"jobs that wait may be missing: {error}")
    return History(runs=(*found[start:more], *waiting), next=None)


def read_run(line: str) -> JobRun:
    """A run by sacct's line about it; the name comes last, since it may hold what divides."""
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


def _again(runs: Sequence[JobRun], present: Sequence[HeadJob], now: float) -> Iterator[JobRun]:
    """Jobs that wait as slurmdbd does not tell them: to run once more, or for a time that has not come."""
    last = {run.job_id: run for run in runs}
    for job in present:
        before = last.get(job.job_id)
        if job.waits and before is None:
            yield _as_run(job, now)
        elif job.waits and before is not None and before.ended is not None:
            yield replace(before, state=job.state, nodes="", submitted=before.ended, started=None, ended=None)


def _as_run(job: HeadJob, now: float) -> JobRun:
    return JobRun(
        job_id=job.job_id,
        user=job.user,
        name=job.name,
        queue=job.queue,
        state=job.state,
        nodes=job.nodes,
        submitted=min(job.since, int(now)),
        started=None if job.waits else job.since,
        ended=None,
    )


def _waiting(cells: Mapping[str, str], shut: Mapping[str, Closed], now: float) -> tuple[str, int | None]:
    """Why a job waits, and until when at least.

    One that was just requeued waits for Slurm's own delay, and has no comment before that is over; where its queues can
    have no machines, it is these for which it waits then.
    """
    why = _why(cells["Reason"], cells["admin_comment"])
    if cells["Reason"] != "BeginTime":
        return why, None
    until = _moment(cells["StartTime"])
    is_delayed = cells["RestartCnt"] not in ("", "0") and (until or 0) - now <= LONGEST_DELAY.total_seconds()
    if cells["admin_comment"] not in _NOTHING or not is_delayed:
        return why, until
    opened, because = opens(cells["Partition"].split(","), shut, datetime.fromtimestamp(now))
    return (why, until) if opened is None else (because.removeprefix("corral: "), int(opened.timestamp()))


def _why(reason: str, comment: str) -> str:
    """The keeper's words where it has some, else Slurm's in plain ones."""
    if comment not in _NOTHING:
        return comment.removeprefix("corral: ")
    known, _, rest = reason.partition(",")
    return "" if reason in _NOTHING else _WORDS.get(known, known) + (f" ({rest.strip()})" if rest else "")


def _is_since(line: str, since: float) -> bool:
    """False also for a line that a full disk cut short."""
    try:
        return datetime.fromisoformat(json.loads(line)["at"].replace("Z", "+00:00")).timestamp() >= since
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def _moment(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _number(job_id: str) -> int:
    """The number before `_3` of an array's job; what has none goes first."""
    head = job_id.partition("_")[0].partition("+")[0]
    return int(head) if head.isdigit() else 0
