"""What a spot machine does between the notice that it is taken back and its end. Pure: facts in, the next steps out.

A notice comes two minutes ahead. At once: no new job comes here, and those that run are asked for a checkpoint. A job
whose script requeues itself when it has saved moves on then; whatever is left is requeued at the last safe second. A
job that was requeued is not over: its processes got SIGTERM, and save. When none is left, or the end is near, Slurm
lets the node go, and it is launched anew elsewhere when it is needed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from corral.agent.jobs import NodeJob, Phase

LAST_SAFE = timedelta(seconds=25)  # what a requeue needs: SIGTERM, the ends of all tasks, word to slurmctld
LET_GO_BEFORE = timedelta(seconds=5)  # slurmctld requeues what is left then; by itself it would take minutes


class Step(StrEnum):
    """What can be done."""

    DRAIN = "drain"
    ASK = "ask for a checkpoint"
    REQUEUE = "requeue"
    LET_GO = "let go"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done since the notice; a watch that was restarted begins with nothing, and repeats harmlessly.

    `let_go`: no more is done here, for the node may soon be that of another machine.
    """

    drained: bool = False
    asked: frozenset[str] = frozenset()
    requeued: frozenset[str] = frozenset()
    let_go: bool = False


def ends_at(document: str | None) -> datetime | None:
    """When the machine ends, by `spot/instance-action` of its metadata; None where there is no such document.

    Raises ValueError for one that says something else.
    """
    if document is None:
        return None
    text = _field(document, "time", "a notice")
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def hinted_at(document: str | None) -> str | None:
    """When AWS said that the machine is likelier to be taken back than others, by `events/recommendations/rebalance`.

    None where there is no such document. Raises ValueError for one that says something else.
    """
    if document is None:
        return None
    return _field(document, "noticeTime", "a rebalance recommendation")


def to_ask(hint: str | None, answered: str | None) -> bool:
    """Whether a hint is one that nobody has acted on: once for each, the jobs are asked for a checkpoint and stay."""
    return hint is not None and hint != answered


def next_steps(
    end: datetime, now: datetime, jobs: Sequence[NodeJob], progress: Progress
) -> tuple[tuple[Step, tuple[str, ...]], ...]:
    """What to do now, in this order, each with the jobs that it concerns; nothing where waiting is right."""
    running = tuple(job.job_id for job in jobs if job.phase is Phase.RUNS)
    if not progress.drained:
        return (Step.DRAIN, ()), (Step.ASK, running)
    if progress.let_go:
        return ()
    if now >= end - LET_GO_BEFORE or not jobs:
        return ((Step.LET_GO, ()),)
    moving = tuple(job.job_id for job in jobs if _moves(job, end, now) and job.job_id not in progress.requeued)
    # It started while the node was drained. What moves is asked no more, or an answer that fails would hold it here.
    asking = tuple(job for job in running if job not in progress.asked and now < end - LAST_SAFE)
    return tuple((step, concerned) for step, concerned in ((Step.ASK, asking), (Step.REQUEUE, moving)) if concerned)


def _moves(job: NodeJob, end: datetime, now: datetime) -> bool:
    """What has not begun has nothing to save, and would begin for nothing."""
    return job.phase is Phase.BEGINS or (job.phase is Phase.RUNS and now >= end - LAST_SAFE)


def _field(document: str, name: str, what: str) -> str:
    held = json.loads(document)
    text = held.get(name) if isinstance(held, Mapping) else None
    if not isinstance(text, str):
        raise ValueError(f"{what} without its time: {document}")
    return text
