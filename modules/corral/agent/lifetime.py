"""The end of a cluster: at its hour, or when nobody has used it for long. Pure: facts in, the next steps out.

A quarter of an hour ahead everybody is told. Then no job starts, those that run are asked for a checkpoint and end,
machines end, the records of jobs are saved, and the head ends itself: what is left costs what its volumes cost.
What keeps the cluster alive meanwhile - `corral extend`, or a job where there was none - opens it again.
`corral up` makes a new head on the same volume; a cluster whose hour has passed needs `corral extend` first.

Where Slurm does not do its part for some minutes past the end, machines end by EC2's hand: what nobody runs costs as
much as what somebody uses.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from corral.model.timers import WARN_AHEAD_S

FIRST_LOOK_S = 300.0  # a head that was just made, for a cluster that has ended, can still be extended or looked at
SILENT_S = (
    300.0  # past the end without Slurm; slurmctld is restarted in a minute, and the nodes' own pulse waits longer
)


class Step(StrEnum):
    """What can be done."""

    WARN = "tell that the end is near"
    CLOSE = "start no more jobs"
    OPEN = "start jobs again"
    END_MACHINES = "end all machines"
    END_INSTANCES = "end all machines without Slurm"
    SAVE = "save the records of jobs"
    LEAVE = "end the head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What was declared: when the cluster ends, and after how long without a job. None: never."""

    ends_at: float | None
    idle_s: float | None
    first_look_s: float = FIRST_LOOK_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What is: `used_at` is when a job last ran or waited, `machines` how many there are beside the head.

    Times are seconds since 1970. `began_at`: of this head's agent. `silent_since`: from when on Slurm does not do what
    it is asked; None: it does. Then `jobs` is what it said last.
    """

    now: float
    began_at: float
    used_at: float
    jobs: int
    machines: int
    silent_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was done. An agent that was restarted repeats harmlessly, and knows only what was `begun`.

    `warned`: of the end that the cluster has now. `begun`: queues may be closed. `closed`: all are, and no job runs.
    """

    warned: bool = False
    begun: bool = False
    closed: bool = False
    saved: bool = False


def next_steps(life: Life, moment: Moment, progress: Progress) -> tuple[Step, ...]:
    """What to do now, in this order; nothing where waiting is right."""
    if why_over(life, moment):
        if not progress.closed:
            return (Step.CLOSE, Step.END_MACHINES)
        if moment.machines:
            return (Step.END_MACHINES,)
        return (Step.LEAVE,) if progress.saved else (Step.SAVE,)
    if progress.begun:
        return (Step.OPEN,)
    if life.ends_at is not None and moment.now >= life.ends_at - WARN_AHEAD_S and not progress.warned:
        return (Step.WARN,)
    return ()


def steps_without_slurm(life: Life, moment: Moment, progress: Progress) -> tuple[Step, ...]:
    """What to do now that Slurm cannot be asked; nothing before the cluster is over for SILENT_S, and Slurm silent."""
    ago = moment.now - SILENT_S
    if moment.silent_since is None or ago < moment.silent_since or not why_over(life, replace(moment, now=ago)):
        return ()
    if moment.machines:
        return (Step.END_INSTANCES,)
    return (Step.LEAVE,) if progress.saved else (Step.SAVE,)


def why_over(life: Life, moment: Moment) -> str:
    """Why the cluster is over; empty while it is not."""
    if life.ends_at is not None and moment.now >= max(life.ends_at, moment.began_at + life.first_look_s):
        return "its hour has come"
    if life.idle_s is not None and not moment.jobs and moment.now - moment.used_at >= life.idle_s:
        return f"no job for {life.idle_s:.0f} s"
    return ""
