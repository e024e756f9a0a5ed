"""Decide when a cluster ends, at a set time or after idling, and the steps of its shutdown. Pure: facts in, steps out.

Users are warned a quarter of an hour ahead. At the end queues are closed, running jobs are signalled to save a
checkpoint and end, machines are terminated, job records are saved, and the head powers itself off; the volumes remain.
`corral extend`, or a new job on an idle cluster, opens the queues again. `corral up` creates a new head on the same
volume; after the set time it requires `corral extend` first.

If Slurm does not answer for some minutes after the end, machines are terminated through EC2: idle machines cost as much
as used ones.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from corral.model.timeouts import EXPIRY_WARNING_S

MIN_UPTIME_S = 300.0  # how long a new head of an expired cluster stays, to be extended or inspected
SILENT_S = 300.0  # after the end without Slurm; slurmctld restarts within a minute, nodes wait longer (PAST_END_S)


class ShutdownStep(StrEnum):
    """What a head does at the end of its cluster, by the text of its log line."""

    WARN = "warn of the end"
    CLOSE = "close queues"
    OPEN = "open queues"
    POWER_DOWN_NODES = "power down all nodes"
    TERMINATE_INSTANCES = "terminate all instances"
    SAVE = "save the records of jobs"
    POWER_OFF_HEAD = "power off the head"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """The declared lifetime: when the cluster ends, and after how long without a job. None: never."""

    ends_at: float | None
    idle_s: float | None
    min_uptime_s: float = MIN_UPTIME_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterActivity:
    """The cluster now. `used_at`: when a job last ran or waited. `machines`: their number, without the head.

    Times are seconds since 1970. `began_at`: when this head's agent started. `slurm_silent_since`: since when Slurm
    does not answer, None if it does; `jobs` is then its last answer.
    """

    now: float
    began_at: float
    used_at: float
    jobs: int
    machines: int
    slurm_silent_since: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownProgress:
    """What was done. A restarted agent knows only `begun`, and repeats steps harmlessly.

    `warned`: of the present end. `begun`: queues may be closed. `closed`: all queues are, and no job runs.
    """

    warned: bool = False
    begun: bool = False
    closed: bool = False
    saved: bool = False


def shutdown_steps(
    lifetime: Lifetime, activity: ClusterActivity, progress: ShutdownProgress
) -> tuple[ShutdownStep, ...]:
    """The steps to take now, in order; empty while waiting."""
    if why_over(lifetime, activity):
        if not progress.closed:
            return (ShutdownStep.CLOSE, ShutdownStep.POWER_DOWN_NODES)
        if activity.machines:
            return (ShutdownStep.POWER_DOWN_NODES,)
        return (ShutdownStep.POWER_OFF_HEAD,) if progress.saved else (ShutdownStep.SAVE,)
    if progress.begun:
        return (ShutdownStep.OPEN,)
    if lifetime.ends_at is not None and activity.now >= lifetime.ends_at - EXPIRY_WARNING_S and not progress.warned:
        return (ShutdownStep.WARN,)
    return ()


def steps_without_slurm(
    lifetime: Lifetime, activity: ClusterActivity, progress: ShutdownProgress
) -> tuple[ShutdownStep, ...]:
    """The steps without Slurm; empty until both the end and Slurm's silence are SILENT_S ago."""
    ago = activity.now - SILENT_S
    if (
        activity.slurm_silent_since is None
        or ago < activity.slurm_silent_since
        or not why_over(lifetime, replace(activity, now=ago))
    ):
        return ()
    if activity.machines:
        return (ShutdownStep.TERMINATE_INSTANCES,)
    return (ShutdownStep.POWER_OFF_HEAD,) if progress.saved else (ShutdownStep.SAVE,)


def why_over(lifetime: Lifetime, activity: ClusterActivity) -> str:
    """Why the cluster is over; empty if it is not."""
    if lifetime.ends_at is not None and activity.now >= max(
        lifetime.ends_at, activity.began_at + lifetime.min_uptime_s
    ):
        return "its lifetime is over"
    if lifetime.idle_s is not None and not activity.jobs and activity.now - activity.used_at >= lifetime.idle_s:
        return f"no job for {lifetime.idle_s:.0f} s"
    return ""
