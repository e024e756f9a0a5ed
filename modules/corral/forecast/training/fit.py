"""Whether a run fits its accelerators' memory, its largest micro-batch, and what to change first if not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from corral.forecast.training.job import Job
from corral.forecast.training.layout import Layout, Recompute, Sharding
from corral.forecast.training.memory import Memory, memory_of
from corral.forecast.training.optimizer_state import MIXED, StateBytes

_MAX_MICRO_BATCH = 64  # sequences; above any published run


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChange:
    """A change of a layout: its description, the new layout, its memory, and whether it fits."""

    words: str
    layout: Layout
    memory: Memory
    fits: bool


def job_memory(job: Job, state: StateBytes = MIXED) -> Memory:
    """The memory of the accelerator that needs the most."""
    return memory_of(
        job.shape,
        job.layout,
        job.seq_len,
        state=state,
        micro_batches=job.micro_batches,
        offload_optimizer=job.offload_optimizer,
    )


def fits(job: Job, state: StateBytes = MIXED) -> bool:
    """True if the job fits the accelerator's memory."""
    return job_memory(job, state).total_gib <= job.machine.accelerator.memory_gib


def largest_micro_batch(job: Job, state: StateBytes = MIXED, *, most: int = _MAX_MICRO_BATCH) -> int | None:
    """The largest power of two of sequences that fits, at most those of a rank; None if not even one fits."""
    best, size = None, 1
    while size <= min(most, job.global_batch / job.layout.dp):
        if not fits(_with(job, replace(job.layout, micro_batch=size)), state):
            break
        best, size = size, size * 2
    return best


def first_change(job: Job, state: StateBytes = MIXED) -> LayoutChange | None:
    """The first of the usual changes, ordered by their cost in speed, with which the run fits.

    If none is enough alone, the one that saves the most; None if the run fits, or nothing can change.
    """
    if fits(job, state):
        return None
    changes = [_change(job, words, layout, state) for words, layout in _usual(job)]
    enough = [change for change in changes if change.fits]
    return enough[0] if enough else min(changes, key=lambda change: change.memory.total, default=None)


def _usual(job: Job) -> Iterator[tuple[str, Layout]]:
    layout = job.layout
    if layout.sharding is Sharding.NONE and layout.dp > 1:
        yield "shard the optimizer over the data-parallel ranks (zero1)", replace(layout, sharding=Sharding.ZERO1)
    if layout.tp > 1 and not layout.sequence_parallel:
        yield "use sequence parallelism", replace(layout, sequence_parallel=True)
    if layout.micro_batch > 1:
        half = max(1, int(layout.micro_batch // 2))
        yield f"halve the micro-batch to {half}", replace(layout, micro_batch=half)
    if not layout.sharding.of_parameters and layout.dp > 1:
        yield "shard the parameters too (zero3, FSDP)", replace(layout, sharding=Sharding.ZERO3)
    if layout.recompute is not Recompute.FULL:
        yield "recompute each layer in full", replace(layout, recompute=Recompute.FULL)
    twice = layout.tp * 2
    if twice <= job.machine.accelerator.link_domain and layout.dp % 2 == 0:
        more = replace(layout, tp=twice, dp=layout.dp // 2, sequence_parallel=True)
        yield f"double tensor parallelism to {twice:g}", more
    if layout.dp % 2 == 0 and layout.pp * 2 <= job.shape.layers:
        yield f"double the pipeline to {layout.pp * 2} stages", replace(layout, pp=layout.pp * 2, dp=layout.dp // 2)


def _change(job: Job, words: str, layout: Layout, state: StateBytes) -> LayoutChange:
    changed = _with(job, layout)
    return LayoutChange(words=words, layout=layout, memory=job_memory(changed, state), fits=fits(changed, state))


def _with(job: Job, layout: Layout) -> Job:
    return replace(job, layout=layout)
