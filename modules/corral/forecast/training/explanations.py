"""Layouts as text: a layout, why one loses to another, what limits a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corral.forecast.training.layout import Layout, Recompute
from corral.forecast.training.layout_search import Candidate
from corral.forecast.training.memory import GIB
from corral.forecast.training.speed import StepParts

PARTS: Mapping[str, str] = {
    "products": "matrix products",
    "attention": "attention",
    "memory_bound": "moving data in memory",
    "recompute": "recomputation",
    "tensor": "tensor-parallel exchange",
    "context": "exchange of keys and values",
    "expert": "exchange among experts",
    "pipeline": "sends between stages",
    "data": "exchange of gradients and weights",
    "bubble": "the pipeline's bubble",
    "optimizer": "the optimizer",
    "stragglers": "stragglers",
}
_LESS: Mapping[str, str] = {
    "tensor": "try less tensor parallelism, or larger matrices",
    "context": "try less context parallelism",
    "expert": "try experts spread over fewer accelerators",
    "pipeline": "try fewer virtual stages",
    "data": "try a larger batch, or fewer accelerators",
}
_WARNED = 0.2  # of a step; a usual threshold of monitoring
_FULL = 1 / 1.15  # of the memory; beyond it, the run may not fit
_EQUAL = 0.001  # of a step; a smaller difference counts as equal


def layout_words(layout: Layout) -> str:
    """The layout on one line, without unused degrees."""
    return ", ".join(_words(layout))


def why_it_loses(candidate: Candidate, best: Candidate) -> str:
    """How much slower it is and mainly in which part of the step; or how much memory it lacks."""
    slower = candidate.parts.total / best.parts.total - 1
    if candidate.missing_gib:
        return f"{-slower:.1%} faster, but {candidate.missing_gib:.1f} GiB too large"
    if slower < _EQUAL:
        more = (candidate.memory.total - best.memory.total) / GIB
        return f"equally fast, with {abs(more):.1f} GiB {'more' if more > 0 else 'less'}"
    name = max(PARTS, key=lambda part: _seconds(candidate.parts, part) - _seconds(best.parts, part))
    gain = _seconds(candidate.parts, name) - _seconds(best.parts, name)
    return f"{slower:.1%} slower: {gain:.2g} s more per step in {PARTS[name]}"


def communication_warning(parts: StepParts) -> str | None:
    """The warning that more than a fifth of a step is communication; otherwise None."""
    share = parts.communication / parts.total
    if share <= _WARNED:
        return None
    name = max(_LESS, key=lambda part: _seconds(parts, part))
    return f"{share:.0%} of a step is exposed communication, mainly {PARTS[name]} - {_LESS[name]}"


def memory_warning(used: float, available: float) -> str | None:
    """The warning that the free memory is within the error of the formulas; None if it fits with margin, or not at all.

    The formulas are within 15 % of most measured peaks (docs/forecast.md).
    """
    if not _FULL * available < used <= available:
        return None
    full = f"{used / available:.0%} of the memory is used, by formulas that are often 15% off"
    return f"{full} - run a few steps first, or recompute more"


def bound_by(parts: StepParts) -> str:
    """The largest part of a step: compute, memory, network or bubble."""
    kinds = {
        "compute": parts.products + parts.attention + parts.recompute,
        "memory": parts.memory_bound + parts.optimizer,
        "network": parts.communication,
        "bubble": parts.bubble,
    }
    return max(kinds, key=lambda kind: kinds[kind])


def _words(layout: Layout) -> Iterator[str]:
    degrees = {"TP": layout.tp, "PP": layout.pp, "CP": layout.cp, "EP": layout.ep}
    yield from (f"{name} {degree:g}" for name, degree in degrees.items() if degree > 1)
    yield f"DP {layout.dp}"
    if layout.virtual_stages > 1:
        yield f"{layout.virtual_stages} virtual stages"
    yield f"{layout.sharding}"
    yield f"micro-batch {layout.micro_batch:g}"
    if layout.recompute is not Recompute.NONE:
        yield f"recomputing {layout.recompute}"


def _seconds(parts: StepParts, name: str) -> float:
    return float(getattr(parts, name))
