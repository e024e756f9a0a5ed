"""What a cluster's head reports: jobs, offers in backoff, disabled queues, events.

The agent on the head writes these records, and the command line reads them. Times are whole seconds since 1970.
"""

from dataclasses import dataclass

DRAIN_REFUSED_EXIT = 4  # exit code of a drain that found running jobs and may not stop them
# First words of a drain's warnings about data that is not in the bucket.
ACCOUNTING_NOT_SAVED = "the records of jobs are not written to the bucket"
HISTORY_NOT_SAVED = "what `corral timeline` shows is not written to the bucket"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadJob:
    """A job that has not ended. `state`: Slurm's, in small letters. `nodes`: folded, empty while it has none.

    `since`: when it began to run, or was submitted. `reason`: why it is pending, empty for a running one. `until`:
    its earliest start, None if unknown. `account`: Slurm's, empty for none.
    """

    job_id: str
    user: str
    name: str
    queue: str
    state: str
    nodes: str
    node_count: int
    since: int
    reason: str
    until: int | None
    account: str = ""

    @property
    def is_pending(self) -> bool:
        """Whether it is pending, without nodes."""
        return self.state == "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferBackoff:
    """An offer that is not used before `until`, and the error that caused the backoff."""

    offer: str
    until: int
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """The nodes of a queue that are in the same state: Slurm's base state and flags, in small letters."""

    queue: str
    state: str
    nodes: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerStatus:
    """Whether the autoscaler runs; without it no machine is launched or terminated.

    `last_cycle`: when it last completed a cycle, None if not since the head booted. `start_command` restarts it on the
    head; `log_command` shows why it ended.
    """

    is_running: bool
    last_cycle: int | None
    start_command: str
    log_command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadStatus:
    """The state of a head at a time. `jobs`: the first ones, running before pending; the counts are of all.

    `unreadable_jobs`: number of jobs that are in none of them, because Slurm prints them in an unknown form.
    """

    at: int
    jobs: tuple[HeadJob, ...]
    running: int
    waiting: int
    backoffs: tuple[OfferBackoff, ...]
    disabled_queues: tuple[str, ...]
    nodes: tuple[NodeGroup, ...]
    autoscaler: AutoscalerStatus
    unreadable_jobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """The result of a drain, by job ids. `refused`: jobs run, nothing was done. `waiting`: number of pending jobs."""

    refused: bool
    signalled: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    requeued: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job: a requeued one has several. `started`, `ended`: None if not yet.

    `account`: Slurm's, empty for none. `cpus`, `gpus`: of all its nodes; without CPUs neither is known.
    """

    job_id: str
    user: str
    name: str
    queue: str
    state: str
    nodes: str
    submitted: int
    started: int | None
    ended: int | None
    account: str = ""
    cpus: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """A page of events, each a line of JSON as written. `next`: index of the next page, None after the last."""

    lines: tuple[str, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunPage:
    """A page of job runs in the order of submission. `next`: as for events.

    `problem`: why runs may be missing, empty if complete.
    """

    runs: tuple[JobRun, ...]
    next: int | None
    problem: str = ""
