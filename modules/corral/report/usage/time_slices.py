"""Divides the time of each instance: booting, idle, and the part of each job. Pure.

The parts of an instance add up to its whole time. Jobs that run on it at the same moment divide that moment by their
dominant shares of the node, the larger of their shares of its CPUs and its GPUs. A job alone has all of it, whatever it
allocated, because nobody else could pay for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from corral.model.cluster import NodePlan
from corral.model.head_report import JobRun
from corral.report.timeline.event_nodes import expanded
from corral.report.usage.machine_usage import MachineUsage, run_period


class TimeUse(StrEnum):
    """How the time of an instance was spent."""

    JOBS = "jobs"
    IDLE = "idle"
    BOOTING = "booting"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSlice:
    """A part of an instance's time. `run`: the job's, None without one. `share`: of the node; `gpus`: what it has."""

    machine: MachineUsage
    begins: datetime
    ended: datetime
    use: TimeUse
    run: JobRun | None = None
    share: float = 1.0
    gpus: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allocation:
    """What a run has of each of its nodes. `weight`: its dominant share; `gpus`: None if unknown."""

    run: JobRun
    weight: float
    gpus: float | None


def time_slices(
    machines: Sequence[MachineUsage], runs: Sequence[JobRun], nodes: Mapping[str, NodePlan], end: datetime
) -> Iterator[TimeSlice]:
    """The parts of all instances, in order. `nodes`: the nodes of each queue. `end`: the end of the known history."""
    allocated: dict[str, list[_Allocation]] = {}
    for run in runs:
        names = expanded(run.nodes) if run.started is not None else ()
        one = _allocation(run, len(names), nodes.get(run.queue))
        for name in names:
            allocated.setdefault(name, []).append(one)
    for machine in machines:
        node = nodes.get(machine.rate.queue)
        yield from _machine_slices(machine, allocated.get(machine.node, ()), _gpus(node), end)


def _allocation(run: JobRun, count: int, node: NodePlan | None) -> _Allocation:
    """Runs of older heads have no CPUs recorded, and get equal parts."""
    if node is None or not count or not run.cpus:
        return _Allocation(run=run, weight=1.0, gpus=None)
    cpus = run.cpus / count / (node.sockets * node.cores_per_socket * node.threads_per_core)
    gpus = run.gpus / count / node.gres.count if node.gres else 0.0
    return _Allocation(run=run, weight=max(cpus, gpus), gpus=run.gpus / count)


def _machine_slices(
    machine: MachineUsage, allocations: Sequence[_Allocation], gpus: float, end: datetime
) -> Iterator[TimeSlice]:
    if machine.launched < machine.ready:
        yield TimeSlice(machine=machine, begins=machine.launched, ended=machine.ready, use=TimeUse.BOOTING, gpus=gpus)
    edges: dict[datetime, tuple[list[_Allocation], list[_Allocation]]] = {machine.ready: ([], [])}
    for one in allocations:
        first, last = run_period(one.run, end)
        begins, ended = max(first, machine.launched), min(last, machine.ended)
        if begins < ended:
            edges.setdefault(begins, ([], []))[0].append(one)
            edges.setdefault(ended, ([], []))[1].append(one)
    times = [*sorted(edges), machine.ended]
    active: list[_Allocation] = []
    for begins, ended in pairwise(times):
        started, finished = edges[begins]
        active = [*(one for one in active if one not in finished), *started]
        if begins < ended:
            yield from _moment_slices(machine, begins, ended, active, gpus)


def _moment_slices(
    machine: MachineUsage, begins: datetime, ended: datetime, active: Sequence[_Allocation], gpus: float
) -> Iterator[TimeSlice]:
    """The parts of a period in which the same jobs run."""
    if not active:
        yield TimeSlice(machine=machine, begins=begins, ended=ended, use=TimeUse.IDLE, gpus=gpus)
    whole = sum(one.weight for one in active)
    for one in active:
        share = one.weight / whole
        yield TimeSlice(
            machine=machine,
            begins=begins,
            ended=ended,
            use=TimeUse.JOBS,
            run=one.run,
            share=share,
            gpus=gpus * share if one.gpus is None else one.gpus,
        )


def _gpus(node: NodePlan | None) -> float:
    return node.gres.count if node and node.gres else 0.0
