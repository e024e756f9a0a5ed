"""What a cluster's head says of itself: jobs, offers that rest, stopped queues, what happened.

The agent on the head makes these records, and the command line reads them. Times are whole seconds since 1970.
"""

from dataclasses import dataclass

REFUSED = 4  # the exit code of a drain that found jobs and may not touch them
# How a drain begins to complain of what is not in the bucket.
NOT_DUMPED = "the records of jobs are not written to the bucket"
NOT_KEPT = "what `corral timeline` shows is not written to the bucket"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadJob:
    """A job that has not ended. `state`: Slurm's, in small letters. `nodes`: folded, empty while it has none.

    `since`: when it began to run, or was submitted. `why`: why it waits, empty for one that runs; `until`: when it can
    begin at the earliest, None where nobody has said.
    """

    job_id: str
    user: str
    name: str
    queue: str
    state: str
    nodes: str
    node_count: int
    since: int
    why: str
    until: int | None

    @property
    def waits(self) -> bool:
        """Whether it has no nodes yet."""
        return self.state == "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestingOffer:
    """An offer that is not asked before `until`, and what it refused with."""

    offer: str
    until: int
    kind: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The nodes of a queue that are in the same state: Slurm's base state and flags, in small letters."""

    queue: str
    state: str
    nodes: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """Whether the keeper runs, without which no machine is launched or ended.

    `turned`: when it last had done what was due; None: not since the head booted. `start`: the command that starts it
    again on the head; `log`: the one that says why it ended.
    """

    runs: bool
    turned: int | None
    start: str
    log: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadState:
    """What is so at a moment. `jobs`: the first of them, running ones before those that wait; the counts are of all."""

    at: int
    jobs: tuple[HeadJob, ...]
    running: int
    waiting: int
    resting: tuple[RestingOffer, ...]
    stopped: tuple[str, ...]
    nodes: tuple[NodeGroup, ...]
    keeper: Keeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What a drain did, by ids of jobs. `refused`: jobs run, and nothing was done. `waiting`: how many had no nodes."""

    refused: bool
    asked: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    requeued: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job: a requeued one has several. `ended`, `started`: None where it has not yet."""

    job_id: str
    user: str
    name: str
    queue: str
    state: str
    nodes: str
    submitted: int
    started: int | None
    ended: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Some events, each the line of JSON as it was written; `next`: the place of the rest, None where there is none."""

    lines: tuple[str, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Some runs of jobs, in the order of their submission. `next`: as for events.

    `problem`: why runs may be missing, empty where all are there.
    """

    runs: tuple[JobRun, ...]
    next: int | None
    problem: str = ""
