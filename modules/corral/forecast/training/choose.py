"""The search for a layout: the fastest of all that fit, those that come next, and what is missing where none fits.

Best first: of every layout a bound is known that its step cannot be below, and what has the lowest bound is looked at
first. The search ends where no bound is below what was found, so that nothing faster is overlooked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from corral.forecast.training.compute import attention_s, head_s, memory_bound_s, products_s, recompute_s
from corral.forecast.training.exchange import context_s, expert_s, tensor_s
from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Layout, Recompute
from corral.forecast.training.memory import Memory
from corral.forecast.training.open_job import RECOMPUTES, OpenJob, meshes, variants
from corral.forecast.training.speed import StepParts, step_parts, straggling

_MOST_GROWTH = 1024  # times as many nodes; beyond that more of them are no advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout, where the time of its step goes, what it needs, and how many GiB it lacks (0: it fits)."""

    layout: Layout
    parts: StepParts
    memory: Memory
    missing_gib: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """The layout that lacks least where none fits, and changes of the run with which one would, the first one first."""

    layout: Layout
    memory: Memory
    missing_gib: float
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the search found. `others` fit, too, each the best of another division, the fastest first.

    `too_large` would be faster than the best and lacks least memory of such. `best` and `nearest`: one is None, and
    both where the batch cannot be divided among so many accelerators. `examined`: how many layouts were possible.
    """

    best: Candidate | None
    others: tuple[Candidate, ...]
    too_large: Candidate | None
    nearest: Nearest | None
    examined: int


class _Bounded(NamedTuple):
    """A layout of a division, and the seconds that its step takes at least."""

    bound_s: float
    mesh: Layout
    size: int
    recompute: Recompute
    virtual: int

    @property
    def layout(self) -> Layout:
        return replace(self.mesh, micro_batch=self.size, recompute=self.recompute, virtual_stages=self.virtual)


class _Pace(NamedTuple):
    """Seconds of a layer, by what is computed again, and of the output, for a micro-batch."""

    layer_s: Mapping[Recompute, float]
    head_s: float


def choose(job: OpenJob, *, others: int = 4) -> Choice:
    """The fastest layout that fits, and so many others; where none fits, the nearest one."""
    roomy = [mesh for mesh in meshes(job) if job.missing_gib(job.memory(mesh)) <= 0]
    if not roomy:
        return Choice(best=None, others=(), too_large=None, nearest=_nearest(job), examined=0)
    ranked = sorted(_bounded(job, roomy), key=lambda one: one.bound_s)
    found, large = _search(job, ranked, others + 1)
    best, *rest = sorted(found, key=lambda one: one.parts.total)
    faster = large if large is not None and large.parts.total < best.parts.total else None
    return Choice(best=best, others=tuple(rest[:others]), too_large=faster, nearest=None, examined=len(ranked))


def fits_somehow(job: OpenJob) -> bool:
    """Whether any layout fits."""
    return any(job.missing_gib(job.memory(mesh)) <= 0 for mesh in meshes(job))


def _search(job: OpenJob, ranked: list[_Bounded], wanted: int) -> tuple[list[Candidate], Candidate | None]:
    """The best of each division, as many as are wanted at least; and what lacks least of all that was looked at."""
    best: dict[tuple[float, ...], Candidate] = {}
    limit, least, nearest = float("inf"), float("inf"), None
    for one in ranked:
        if one.bound_s >= limit:
            break
        layout = one.layout
        memory = job.memory(layout)
        missing = job.missing_gib(memory)
        if missing > 0:
            if not best and missing < least:
                least, nearest = missing, layout
            continue
        candidate = Candidate(layout=layout, parts=step_parts(job.laid_out(layout)), memory=memory)
        key = _division(layout)
        if key not in best or candidate.parts.total < best[key].parts.total:
            best[key] = candidate
            totals = sorted(known.parts.total for known in best.values())
            limit = totals[wanted - 1] if len(totals) >= wanted else limit
    return list(best.values()), None if nearest is None else _too_large(job, nearest)


def _too_large(job: OpenJob, layout: Layout) -> Candidate:
    memory, parts = job.memory(layout), step_parts(job.laid_out(layout))
    return Candidate(layout=layout, parts=parts, memory=memory, missing_gib=job.missing_gib(memory))


def _division(layout: Layout) -> tuple[float, ...]:
    return (layout.tp, layout.pp, layout.cp, layout.ep)


def _bounded(job: OpenJob, roomy: list[Layout]) -> Iterator[_Bounded]:
    """Every layout of these divisions, with the time of its layers and its bubble: a step takes that and more."""
    paces: dict[tuple[object, ...], _Pace] = {}
    slow = straggling(job.laid_out(roomy[0]))
    for mesh in roomy:
        for size, recompute, virtual in variants(job, mesh):
            key = (mesh.tp, mesh.cp, mesh.ep, mesh.sharding, size)
            if key not in paces:
                paces[key] = _pace(job, replace(mesh, micro_batch=size))
            pace = paces[key]
            count = job.global_batch // (int(mesh.dp) * size)
            stage = count * (job.shape.layers / mesh.pp * pace.layer_s[recompute] + pace.head_s)
            filling = stage * (mesh.pp - 1) / (virtual * count)
            yield _Bounded((stage + filling) * slow, mesh, size, recompute, virtual)


def _pace(job: OpenJob, layout: Layout) -> _Pace:
    first = job.laid_out(layout)
    always = sum(part(first) for part in (products_s, attention_s, memory_bound_s, context_s, expert_s))
    jobs = {recompute: job.laid_out(replace(layout, recompute=recompute)) for recompute in RECOMPUTES}
    layers = {recompute: always + recompute_s(one) + tensor_s(one) for recompute, one in jobs.items()}
    return _Pace(layer_s=layers, head_s=head_s(first))


def _nearest(job: OpenJob) -> Nearest | None:
    needs = [(memory, mesh) for mesh in meshes(job) for memory in (job.memory(mesh),)]
    if not needs:
        return None
    memory, layout = min(needs, key=lambda need: job.missing_gib(need[0]))
    return Nearest(layout=layout, memory=memory, missing_gib=job.missing_gib(memory), changes=tuple(_changes(job)))


def _changes(job: OpenJob) -> Iterator[str]:
    """What of the run could change so that a layout fits: its numbers, what the host has, its nodes."""
    if job.precision is Precision.FP32 and fits_somehow(replace(job, precision=Precision.BF16)):
        yield "use bf16 instead of fp32"
    if not job.offload_optimizer and fits_somehow(replace(job, offload_optimizer=True)):
        yield "keep the optimizer's state in the hosts' memory (offload: optimizer)"
    times = 2
    while times <= _MOST_GROWTH:
        if fits_somehow(replace(job, nodes=job.nodes * times)):
            yield f"use {job.nodes * times} nodes instead of {job.nodes}"
            return
        times *= 2
