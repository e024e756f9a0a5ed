"""Interruptions of jobs and their cost: machines, waiting time, lost work. Pure.

Checkpoints are not recorded. So an interrupted run loses at least nothing, and at most all its work, or that of one
checkpoint interval if the interval is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from corral.forecast.cost.cost_range import Sum, Usd
from corral.model.head_report import JobRun
from corral.model.node_names import fold
from corral.report.timeline.event_lines import ClusterEvent
from corral.report.timeline.event_nodes import expanded
from corral.report.usage.machine_usage import MachineUsage, at_work, of_node, run_period, utc_time

# Slurm states of an interrupted run; other runs finished or were cancelled.
STOPPED = frozenset({"requeued", "node_fail", "preempted"})
# The autoscaler cycles every 30 s, and slurmctld marks a silent node down later: event and end may be this far apart.
_APART = timedelta(seconds=120)
# Instances reclaimed together are reported within one cycle of the autoscaler.
_TOGETHER = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """Machines that the same jobs, or none, lost at about the same time. `kinds`: the kinds of their events.

    `waited_s`: until the last of the jobs ran again, or until now if one has not (`resumed` is False).
    `lost_node_s`: the maximum of lost work in node seconds; `lost_usd`: its cost, from nothing to the maximum.
    """

    at: datetime
    kinds: tuple[str, ...]
    nodes: str
    machines: int
    jobs: tuple[str, ...]
    waited_s: float
    resumed: bool
    lost_node_s: float
    lost_usd: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class _MachineLoss:
    machine: MachineUsage
    event: ClusterEvent


def find_interruptions(
    machines: Sequence[MachineUsage], runs: Sequence[JobRun], *, end: datetime, interval_s: float | None = None
) -> tuple[Interruption, ...]:
    """All interruptions, the oldest first. `interval_s`: the checkpoint interval of the jobs, if known."""
    there = of_node(machines)
    groups: list[tuple[list[_MachineLoss], list[JobRun]]] = []
    for loss, interrupted in _interrupting_losses(machines, runs):
        same = [group for group in groups if any(run in group[1] for run in interrupted)]
        joined = ([one for group in same for one in group[0]] + [loss], [one for group in same for one in group[1]])
        joined[1].extend(run for run in interrupted if run not in joined[1])
        groups = [*(group for group in groups if group not in same), joined]
    found = (_interruption(group[0], group[1], there, runs, end, interval_s) for group in groups)
    return tuple(sorted(found, key=lambda one: (one.at, one.nodes)))


def _interrupting_losses(
    machines: Sequence[MachineUsage], runs: Sequence[JobRun]
) -> Iterator[tuple[_MachineLoss, list[JobRun]]]:
    """The events that interrupted jobs, the oldest first, each with these runs."""
    losses = sorted((loss for machine in machines for loss in _losses(machine)), key=lambda loss: loss.event.at)
    began, first = _began(runs), dict[JobRun, datetime]()
    for loss in losses:
        own = began.get(loss.machine.node, ())
        interrupted = [run for run in own if _interrupted(loss, run) and not _worked_on(loss, run, own)]
        interrupted = [run for run in interrupted if not _was_over(loss, run, first.setdefault(run, loss.event.at))]
        yield loss, interrupted


def _losses(machine: MachineUsage) -> Iterator[_MachineLoss]:
    """The first loss of a machine, and its reboots: a reclaimed machine is later also marked down."""
    gone = [one for one in machine.interruption_events if one.kind != "rebooted"]
    yield from (_MachineLoss(machine=machine, event=one) for one in (*gone[:1], *_rebooted(machine)))


def _rebooted(machine: MachineUsage) -> Iterator[ClusterEvent]:
    yield from (one for one in machine.interruption_events if one.kind == "rebooted")


def _began(runs: Iterable[JobRun]) -> Mapping[str, Sequence[JobRun]]:
    """The started runs by node."""
    found: dict[str, list[JobRun]] = {}
    for run in runs:
        for node in expanded(run.nodes) if run.started is not None else ():
            found.setdefault(node, []).append(run)
    return found


def _interrupted(loss: _MachineLoss, run: JobRun) -> bool:
    """True if the run was interrupted at about the time of this machine's event."""
    if run.started is None or run.ended is None or run.state not in STOPPED:
        return False
    last = loss.event.at if loss.event.kind == "rebooted" else loss.machine.ended
    in_time = loss.event.at - _APART <= utc_time(run.ended) <= last + _APART
    return in_time and utc_time(run.started) <= loss.event.at


def _worked_on(loss: _MachineLoss, run: JobRun, own: Iterable[JobRun]) -> bool:
    """True if another of the node's `own` runs started in between: the machine was not gone."""
    later = (other for other in own if other is not run and (other.started or 0) >= (run.ended or 0))
    return loss.event.kind != "rebooted" and any(utc_time(other.started or 0) < loss.event.at for other in later)


def _was_over(loss: _MachineLoss, run: JobRun, first: datetime) -> bool:
    """True if the run had already ended because another of its machines was lost at `first`."""
    return loss.event.at > max(utc_time(run.ended or 0), first + _TOGETHER)


def _interruption(
    losses: Sequence[_MachineLoss],
    interrupted: Sequence[JobRun],
    there: Mapping[str, Sequence[MachineUsage]],
    runs: Sequence[JobRun],
    end: datetime,
    interval_s: float | None,
) -> Interruption:
    resumed = [_again(run, runs) for run in interrupted]
    waits = [(again or end) - utc_time(run.ended or 0) for run, again in zip(interrupted, resumed, strict=True)]
    lost = [part for run in interrupted for part in _lost(run, there, end, interval_s)]
    return Interruption(
        at=losses[0].event.at,
        kinds=tuple(dict.fromkeys(loss.event.kind for loss in losses)),
        nodes=fold(loss.machine.node for loss in losses),
        machines=len(losses),
        jobs=tuple(dict.fromkeys(run.job_id for run in interrupted)),
        waited_s=max((wait.total_seconds() for wait in waits), default=0.0),
        resumed=None not in resumed,
        lost_node_s=sum(seconds for _, seconds in lost),
        lost_usd=Sum.of((machine.rate.named, _up_to(machine.usd(seconds))) for machine, seconds in lost),
    )


def _again(run: JobRun, runs: Iterable[JobRun]) -> datetime | None:
    """When the job ran again; None if not yet."""
    later = [other.started for other in runs if other.job_id == run.job_id and (other.started or 0) >= (run.ended or 0)]
    return min((utc_time(one) for one in later if one is not None), default=None)


def _lost(
    run: JobRun, there: Mapping[str, Sequence[MachineUsage]], end: datetime, interval_s: float | None
) -> Iterator[tuple[MachineUsage, float]]:
    """The seconds of each machine of the run that may be lost."""
    begins, ended = run_period(run, end)
    since = begins if interval_s is None else max(begins, ended - timedelta(seconds=interval_s))
    yield from at_work(run, there, since, ended)


def _up_to(usd: Usd | None) -> Usd | None:
    return Usd(0.0, usd.high) if usd else None
