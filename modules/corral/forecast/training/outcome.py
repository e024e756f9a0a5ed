"""What a declared run comes to: memory, the parts of a step, speed, utilisation, days and hours of accelerators.

Interruptions, checkpoints and loading are not in it: these are hours in which nothing goes wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.forecast.training.certainty import Certainty, certainty_of
from corral.forecast.training.choose import Choice, choose
from corral.forecast.training.declared import assumptions, layout_of, open_job_of
from corral.forecast.training.fit import first_change
from corral.forecast.training.flops import hardware_flops_per_token
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Layout
from corral.forecast.training.memory import Memory
from corral.forecast.training.open_job import OpenJob, largest_micro_batch
from corral.forecast.training.reasons import bound_by, communication_warning, memory_warning
from corral.forecast.training.scaling import on_the_fewest
from corral.forecast.training.speed import Speed, accelerator_hours, forecast_speed, parallel_efficiency
from corral.forecast.training.state import usual_state
from corral.spec.errors import SpecError, SpecErrors
from corral.spec.run import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """T1/(n Tn): what an accelerator does, of what it does on so few nodes, the fewest that the run fits.

    It is more than 1 where those must compute again what many have the memory to keep.
    """

    nodes: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForecast:
    """A run's forecast. `choice`: the search, None for a declared layout; `layout` is what it found, or declared.

    Where nothing fits, `layout` is the nearest one, and everything else is said of that. `missing_gib` is what an
    accelerator or its host lacks, `change` what to change first. `mfu` counts six FLOPs for each active parameter and
    token, `mfu_with_attention` those of attention too, `hfu` what is recomputed as well; all of the peak in 16 bits.
    `days` and `accelerator_hours` are of uninterrupted training; they may be off by `certainty`.
    """

    run: RunSpec
    job: Job
    choice: Choice | None
    memory: Memory
    memory_gib: float
    missing_gib: float
    largest_micro_batch: int | None
    change: str | None
    speed: Speed
    hfu: float
    efficiency: Efficiency | None
    bound: str
    steps: int
    days: float
    accelerator_hours: float
    certainty: Certainty
    warnings: tuple[str, ...]
    assumed: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        """How it is laid out."""
        return self.job.layout

    @property
    def fits(self) -> bool:
        """Whether accelerators and hosts have what it needs."""
        return self.missing_gib <= 0

    @property
    def mfu(self) -> float:
        """The part of the peak that 6 N FLOPs a token are."""
        return self.speed.mfu_6n

    @property
    def mfu_with_attention(self) -> float:
        """The part of the peak that 6 W + 12 L a d s FLOPs a token are."""
        return self.speed.mfu

    @property
    def days_range(self) -> tuple[float, float]:
        """The fewest and the most days that it may be."""
        return self.days / (1 + self.certainty.off), self.days / (1 - self.certainty.off)


def forecast_run(run: RunSpec) -> RunForecast:
    """The forecast of this run. Raises SpecErrors where its batch cannot be divided among its accelerators at all."""
    open_job = open_job_of(run)
    choice = None if run.layout else choose(open_job)
    layout = _layout(run, choice)
    job, memory = open_job.laid_out(layout), open_job.memory(layout)
    speed, missing = forecast_speed(job), open_job.missing_gib(memory)
    hours = accelerator_hours(speed, run.tokens)
    each, peak = speed.tokens_per_s_per_accelerator, job.machine.accelerator.peak_flops(16)
    limit = job.machine.accelerator.memory_gib
    slow = communication_warning(speed.parts) if missing <= 0 else None  # of no use where it does not fit
    warnings = (slow, memory_warning(memory.total_gib, limit))
    return RunForecast(
        run=run,
        job=job,
        choice=choice,
        memory=memory,
        memory_gib=limit,
        missing_gib=missing,
        largest_micro_batch=largest_micro_batch(open_job, layout),
        change=_change(job, choice) if missing > 0 else None,
        speed=speed,
        hfu=each * hardware_flops_per_token(job.shape, job.seq_len, layout.recompute) / peak,
        efficiency=_efficiency(open_job, speed) if missing <= 0 else None,
        bound=bound_by(speed.parts),
        steps=math.ceil(run.tokens / (run.batch_sequences * run.sequence_length)),
        days=hours / open_job.accelerators / 24,
        accelerator_hours=hours,
        certainty=certainty_of(open_job),
        warnings=tuple(filter(None, warnings)),
        assumed=tuple(assumptions(run, job)),
    )


def _layout(run: RunSpec, choice: Choice | None) -> Layout:
    if run.layout:
        return layout_of(run.layout, run.accelerators)
    if choice and (found := choice.best or choice.nearest):
        return found.layout
    message = (
        f"{run.batch_sequences} sequences cannot be divided among {run.accelerators} accelerators in any layout"
        " - use a multiple of the accelerators, or other nodes"
    )
    raise SpecErrors([SpecError(file=run.file, path="batch_sequences", message=message)])


def _change(job: Job, choice: Choice | None) -> str | None:
    """What to change first: of the run where every layout was tried, else of its layout."""
    if choice is not None:
        return next(iter(choice.nearest.changes), None) if choice.nearest else None
    change = first_change(job, usual_state(job.precision, job.layout.sharding))
    if change is None:
        return None
    return change.words if change.fits else f"{change.words}, which is not enough alone; or let corral choose"


def _efficiency(job: OpenJob, speed: Speed) -> Efficiency | None:
    """Against the fastest layout on the fewest nodes, of 1, 2, 4 and so on, that the same batch fits well."""
    fewest = on_the_fewest(job, speed)
    if fewest:
        nodes, alone = fewest
        return Efficiency(nodes=nodes, share=parallel_efficiency(alone, speed))
    return Efficiency(nodes=job.nodes, share=1.0)
