"""What was taken from jobs, and what that cost: machines, waiting, work that may have to be done again. Pure.

Nobody writes down when a job saved last. So of an interrupted run at least nothing is lost, and at most all that it had
done, or what lies between two checkpoints where that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from corral.forecast.money import Sum, Usd
from corral.model.head import JobRun
from corral.model.node_names import fold
from corral.report.concerned import expanded
from corral.report.events import Happened
from corral.report.spent.machines import Machine, at_work, moment, of_node, stretch

# How a run ends that was interrupted, in Slurm's words; the others ended by themselves or were ended by somebody.
STOPPED = frozenset({"requeued", "node_fail", "preempted"})
# The keeper looks every 30 s, and slurmctld gives a silent node up later still: so far may event and end be apart.
_APART = timedelta(seconds=120)
# What is taken at one moment is told of within one look of the keeper.
_TOGETHER = timedelta(seconds=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """Machines taken at about the same time from the same jobs, or from none. `kinds`: of the events that say so.

    `waited_s`: until the last of the jobs ran again, or until now where one has not (`resumed` is false then).
    `lost_node_s`: node seconds of work that may be lost, at most; `lost_usd`: what they cost, from nothing to that.
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
class _Hit:
    machine: Machine
    event: Happened


def interruptions(
    machines: Sequence[Machine], runs: Sequence[JobRun], *, end: datetime, interval_s: float | None = None
) -> tuple[Interruption, ...]:
    """All of them, the oldest first. `interval_s`: how often the jobs save, where that is known."""
    there = of_node(machines)
    groups: list[tuple[list[_Hit], list[JobRun]]] = []
    for hit, struck in _strikes(machines, runs):
        same = [group for group in groups if any(run in group[1] for run in struck)]
        joined = ([one for group in same for one in group[0]] + [hit], [one for group in same for one in group[1]])
        joined[1].extend(run for run in struck if run not in joined[1])
        groups = [*(group for group in groups if group not in same), joined]
    found = (_interruption(group[0], group[1], there, runs, end, interval_s) for group in groups)
    return tuple(sorted(found, key=lambda one: (one.at, one.nodes)))


def _strikes(machines: Sequence[Machine], runs: Sequence[JobRun]) -> Iterator[tuple[_Hit, list[JobRun]]]:
    """What happened to machines, the oldest first, each with the runs that were cut short by it."""
    hits = sorted((hit for machine in machines for hit in _hits(machine)), key=lambda hit: hit.event.at)
    began, first = _began(runs), dict[JobRun, datetime]()
    for hit in hits:
        own = began.get(hit.machine.node, ())
        struck = [run for run in own if _struck(hit, run) and not _worked_on(hit, run, own)]
        struck = [run for run in struck if not _was_over(hit, run, first.setdefault(run, hit.event.at))]
        yield hit, struck


def _hits(machine: Machine) -> Iterator[_Hit]:
    """A machine that is taken back is also forgotten in the end: that is one and the same."""
    gone = [one for one in machine.taken if one.kind != "rebooted"]
    yield from (_Hit(machine=machine, event=one) for one in (*gone[:1], *_rebooted(machine)))


def _rebooted(machine: Machine) -> Iterator[Happened]:
    yield from (one for one in machine.taken if one.kind == "rebooted")


def _began(runs: Iterable[JobRun]) -> Mapping[str, Sequence[JobRun]]:
    """The runs that have begun, by their nodes."""
    found: dict[str, list[JobRun]] = {}
    for run in runs:
        for node in expanded(run.nodes) if run.started is not None else ():
            found.setdefault(node, []).append(run)
    return found


def _struck(hit: _Hit, run: JobRun) -> bool:
    """Whether the run was cut short at about the time of what happened to this machine of it."""
    if run.started is None or run.ended is None or run.state not in STOPPED:
        return False
    last = hit.event.at if hit.event.kind == "rebooted" else hit.machine.over
    in_time = hit.event.at - _APART <= moment(run.ended) <= last + _APART
    return in_time and moment(run.started) <= hit.event.at


def _worked_on(hit: _Hit, run: JobRun, own: Iterable[JobRun]) -> bool:
    """Whether another of the node's `own` runs began between the two: a machine that takes new work was not gone."""
    later = (other for other in own if other is not run and (other.started or 0) >= (run.ended or 0))
    return hit.event.kind != "rebooted" and any(moment(other.started or 0) < hit.event.at for other in later)


def _was_over(hit: _Hit, run: JobRun, first: datetime) -> bool:
    """Whether the run had ended before, by what happened to another machine of it at `first`."""
    return hit.event.at > max(moment(run.ended or 0), first + _TOGETHER)


def _interruption(
    hits: Sequence[_Hit],
    struck: Sequence[JobRun],
    there: Mapping[str, Sequence[Machine]],
    runs: Sequence[JobRun],
    end: datetime,
    interval_s: float | None,
) -> Interruption:
    resumed = [_again(run, runs) for run in struck]
    waits = [(again or end) - moment(run.ended or 0) for run, again in zip(struck, resumed, strict=True)]
    lost = [part for run in struck for part in _lost(run, there, end, interval_s)]
    return Interruption(
        at=hits[0].event.at,
        kinds=tuple(dict.fromkeys(hit.event.kind for hit in hits)),
        nodes=fold(hit.machine.node for hit in hits),
        machines=len(hits),
        jobs=tuple(dict.fromkeys(run.job_id for run in struck)),
        waited_s=max((wait.total_seconds() for wait in waits), default=0.0),
        resumed=None not in resumed,
        lost_node_s=sum(seconds for _, seconds in lost),
        lost_usd=Sum.of((machine.sold.named, _up_to(machine.usd(seconds))) for machine, seconds in lost),
    )


def _again(run: JobRun, runs: Iterable[JobRun]) -> datetime | None:
    """When the job ran again."""
    later = [other.started for other in runs if other.job_id == run.job_id and (other.started or 0) >= (run.ended or 0)]
    return min((moment(one) for one in later if one is not None), default=None)


def _lost(
    run: JobRun, there: Mapping[str, Sequence[Machine]], end: datetime, interval_s: float | None
) -> Iterator[tuple[Machine, float]]:
    """What each machine of the run did at the end of it, as far back as may be lost."""
    begins, over = stretch(run, end)
    since = begins if interval_s is None else max(begins, over - timedelta(seconds=interval_s))
    yield from at_work(run, there, since, over)


def _up_to(usd: Usd | None) -> Usd | None:
    return Usd(0.0, usd.high) if usd else None
