"""The search for a layout: the fastest that fits, the runners-up, and what is missing if none fits.

Best-first search: every layout has a lower bound of its step time, and the lowest bound is examined first. The search
ends when no bound is below the times found, so it misses no faster layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from corral.forecast.training.communication import context_s, expert_s, tensor_s
from corral.forecast.training.compute import attention_s, head_s, memory_bound_s, products_s, recompute_s
from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Layout, Recompute
from corral.forecast.training.memory import Memory
from corral.forecast.training.search_space import RECOMPUTES, OpenJob, meshes, variants
from corral.forecast.training.speed import StepParts, step_parts, straggling

_MAX_GROWTH = 1024  # maximum factor on the nodes that a hint suggests


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A layout with its step time, its memory, and the missing GiB (0: it fits)."""

    layout: Layout
    parts: StepParts
    memory: Memory
    missing_gib: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """If none fits: the layout that lacks the least, and changes of the run with which one would fit, best first."""

    layout: Layout
    missing_gib: float
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The result of the search. `others`: runners-up that fit, each the best of another mesh, the fastest first.

    `too_large`: of the layouts faster than the best, the one that lacks the least memory. One of `best` and `nearest`
    is None; both are if the batch cannot be divided among so many accelerators. `examined`: the number of layouts.
    """

    best: Candidate | None
    others: tuple[Candidate, ...]
    too_large: Candidate | None
    nearest: Nearest | None
    examined: int


class _Bounded(NamedTuple):
    """A layout and the lower bound of its step time."""

    bound_s: float
    mesh: Layout
    size: int
    recompute: Recompute
    virtual: int

    @property
    def layout(self) -> Layout:
        return replace(self.mesh, micro_batch=self.size, recompute=self.recompute, virtual_stages=self.virtual)


class _Pace(NamedTuple):
    """Seconds of a layer by recomputation mode, and of the output layer, per micro-batch."""

    layer_s: Mapping[Recompute, float]
    head_s: float


def choose(job: OpenJob, *, others: int = 4) -> Choice:
    """The fastest layout that fits and so many others; if none fits, the nearest one."""
    roomy = [mesh for mesh in meshes(job) if job.missing_gib(job.memory(mesh)) <= 0]
    if not roomy:
        return Choice(best=None, others=(), too_large=None, nearest=_nearest(job), examined=0)
    ranked = sorted(_bounded(job, roomy), key=lambda one: one.bound_s)
    found, large = _search(job, ranked, others + 1)
    best, *rest = sorted(found, key=lambda one: one.parts.total)
    faster = large if large is not None and large.parts.total < best.parts.total else None
    return Choice(best=best, others=tuple(rest[:others]), too_large=faster, nearest=None, examined=len(ranked))


def fits_somehow(job: OpenJob) -> bool:
    """True if any layout fits."""
    return any(job.missing_gib(job.memory(mesh)) <= 0 for mesh in meshes(job))


def _search(job: OpenJob, ranked: list[_Bounded], wanted: int) -> tuple[list[Candidate], Candidate | None]:
    """The best of each mesh, at least as many as requested; and the too large layout that lacks the least."""
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
    """Every layout of these meshes with the time of its layers and its bubble, a lower bound of the step."""
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
    return Nearest(layout=layout, missing_gib=job.missing_gib(memory), changes=tuple(_changes(job)))


def _changes(job: OpenJob) -> Iterator[str]:
    """Changes of the run with which a layout fits: number format, offload, nodes."""
    if job.precision is Precision.FP32 and fits_somehow(replace(job, precision=Precision.BF16)):
        yield "use bf16 instead of fp32"
    if not job.offload_optimizer and fits_somehow(replace(job, offload_optimizer=True)):
        yield "keep the optimizer's state in host memory (offload: optimizer)"
    times = 2
    while times <= _MAX_GROWTH:
        if fits_somehow(replace(job, nodes=job.nodes * times)):
            yield f"use {job.nodes * times} nodes instead of {job.nodes}"
            return
        times *= 2
