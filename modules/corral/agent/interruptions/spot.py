"""Decide the steps between a spot interruption notice and the end of the machine. Pure: facts in, steps out.

A notice comes two minutes ahead. The node is drained at once, and its jobs are signalled to save a checkpoint. Job
scripts that save on request requeue their job after saving (templates/jobs/save.j2, which finds the notice in the
node's drain reason); the other jobs are requeued in the last safe second. The processes of a requeued
job have received SIGTERM, and still save. When no job is left, or the end is near, the node is powered down, and
launched again when a job needs it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from corral.agent.node_jobs import NodeJob, Phase

LAST_SAFE = timedelta(seconds=25)  # a requeue takes this long: SIGTERM, the end of all tasks, the message to slurmctld
RELEASE_BEFORE = timedelta(seconds=5)  # slurmctld then requeues the remaining jobs; otherwise it would take minutes


class SpotStep(StrEnum):
    """The steps, as the log names them."""

    DRAIN = "drain"
    REQUEST_CHECKPOINT = "request checkpoint"
    REQUEUE = "requeue"
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotProgress:
    """What was done since the notice. A restarted watcher starts empty, and repeats steps harmlessly.

    `released`: no more steps follow, because the node may soon have another machine.
    """

    drained: bool = False
    signalled: frozenset[str] = frozenset()
    requeued: frozenset[str] = frozenset()
    released: bool = False


def reclaimed_at(document: str | None) -> datetime | None:
    """When the machine ends, by the metadata document `spot/instance-action`; None without one.

    Raises ValueError for an invalid document.
    """
    if document is None:
        return None
    text = _field(document, "time", "a notice")
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def rebalance_at(document: str | None) -> str | None:
    """When AWS issued a rebalance recommendation, by the document `events/recommendations/rebalance`; None without one.

    Raises ValueError for an invalid document.
    """
    if document is None:
        return None
    return _field(document, "noticeTime", "a rebalance recommendation")


def is_new_hint(hint: str | None, handled: str | None) -> bool:
    """Whether this rebalance recommendation is new. Jobs are signalled once for each."""
    return hint is not None and hint != handled


def spot_steps(
    end: datetime, now: datetime, jobs: Sequence[NodeJob], progress: SpotProgress
) -> tuple[tuple[SpotStep, tuple[str, ...]], ...]:
    """The steps to take now, in order, each with its jobs; empty while waiting."""
    running = tuple(job.job_id for job in jobs if job.phase is Phase.RUNNING)
    if not progress.drained:
        return (SpotStep.DRAIN, ()), (SpotStep.REQUEST_CHECKPOINT, running)
    if progress.released:
        return ()
    if now >= end - RELEASE_BEFORE or not jobs:
        return ((SpotStep.RELEASE, ()),)
    requeuing = tuple(job.job_id for job in jobs if _must_move(job, end, now) and job.job_id not in progress.requeued)
    # Jobs that started while the node was being drained. Not after LAST_SAFE: a failing signal would delay the requeue.
    signalling = tuple(job for job in running if job not in progress.signalled and now < end - LAST_SAFE)
    return tuple(
        (step, jobs_of_step)
        for step, jobs_of_step in ((SpotStep.REQUEST_CHECKPOINT, signalling), (SpotStep.REQUEUE, requeuing))
        if jobs_of_step
    )


def _must_move(job: NodeJob, end: datetime, now: datetime) -> bool:
    """True also for a job that has not started: it has nothing to save."""
    return job.phase is Phase.STARTING or (job.phase is Phase.RUNNING and now >= end - LAST_SAFE)


def _field(document: str, name: str, what: str) -> str:
    held = json.loads(document)
    text = held.get(name) if isinstance(held, Mapping) else None
    if not isinstance(text, str):
        raise ValueError(f"{what} without '{name}': {document}")
    return text
