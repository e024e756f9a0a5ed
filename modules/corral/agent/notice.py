"""What a spot machine does between the notice that it is taken back and its end. Pure: facts in, the next steps out.

A notice comes two minutes ahead. At once: no new job comes here, and those that run are asked for a checkpoint. A job
whose script requeues itself when it has saved moves on then; whatever is left is requeued at the last safe second. When
no job is left, Slurm lets the node go, and it is launched anew elsewhere when it is needed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

LAST_SAFE = timedelta(seconds=25)  # what a requeue needs: SIGTERM, the ends of all tasks, word to slurmctld


class Step(StrEnum):
    """What can be done."""

    DRAIN = "drain"
    ASK = "ask for a checkpoint"
    REQUEUE = "requeue"
    LET_GO = "let go"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done since the notice; a watch that was restarted begins with nothing, and repeats harmlessly."""

    drained: bool = False
    asked: frozenset[str] = frozenset()
    requeued: frozenset[str] = frozenset()


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
    end: datetime, now: datetime, jobs: Sequence[str], progress: Progress
) -> tuple[tuple[Step, tuple[str, ...]], ...]:
    """What to do now, in this order, each with the jobs that it concerns; nothing where waiting is right."""
    if not progress.drained:
        return (Step.DRAIN, ()), (Step.ASK, tuple(jobs))
    if new := tuple(job for job in jobs if job not in progress.asked):  # it started while the node was drained
        return ((Step.ASK, new),)
    if now >= end - LAST_SAFE and (late := tuple(job for job in jobs if job not in progress.requeued)):
        return ((Step.REQUEUE, late),)
    return () if jobs else ((Step.LET_GO, ()),)


def _field(document: str, name: str, what: str) -> str:
    held = json.loads(document)
    text = held.get(name) if isinstance(held, Mapping) else None
    if not isinstance(text, str):
        raise ValueError(f"{what} without its time: {document}")
    return text
