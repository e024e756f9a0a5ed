"""The training forecast of a declared run: memory, step time, speed, utilisation, days and accelerator hours.

Without interruptions, checkpoints and data loading, which `forecast.run` adds. The uncertainty of the speed is that of
forecasts of published runs (docs/forecast.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.catalog.accelerators.accelerators import published_runs
from corral.forecast.training.explanations import bound_by, communication_warning, memory_warning
from corral.forecast.training.fit import first_change
from corral.forecast.training.flops import hardware_flops_per_token
from corral.forecast.training.from_spec import assumptions, declared_layout, open_job_of
from corral.forecast.training.job import Job
from corral.forecast.training.layout import Layout
from corral.forecast.training.layout_search import Choice, choose
from corral.forecast.training.memory import Memory
from corral.forecast.training.optimizer_state import usual_state
from corral.forecast.training.scaling import on_the_fewest
from corral.forecast.training.search_space import OpenJob, largest_dividing_micro_batch
from corral.forecast.training.speed import Speed, accelerator_hours, forecast_speed, parallel_efficiency
from corral.spec.models.run import RunSpec
from corral.spec.spec_errors import SpecError, SpecErrors

# Relative to the speed. Of the held-out runs, 84 % of the dense ones and 79 % of the mixtures were within it, and all
# dense ones of accelerators with few rows.
_DENSE, _MIXTURES, _OTHERS = 0.15, 0.40, 0.30
_LONG = 32_768  # tokens per sequence; few rows have more, and the error of half of them is large
_FEW = 3  # runs of an accelerator; with fewer, its constants are fitted to them


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """T1/(n Tn): the speed per accelerator relative to the fewest nodes on which the run fits.

    Above 1 if the fewest nodes must recompute what more nodes can store.
    """

    nodes: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """The relative uncertainty of the speed, and its reason."""

    off: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForecast:
    """A run's forecast. `choice`: the search result, None for a declared layout. `layout`: the found or declared one.

    If nothing fits, `layout` is the nearest one, and all else describes it. `missing_gib`: of an accelerator or its
    host; `change`: what to change first. `mfu` counts six FLOPs per active parameter and token, `mfu_with_attention`
    also attention, `hfu` also recomputation; all relative to the 16-bit peak. `days` and `accelerator_hours`: of
    uninterrupted training, with the uncertainty `certainty`.
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
        """The layout."""
        return self.job.layout

    @property
    def fits(self) -> bool:
        """True if accelerators and hosts have enough memory."""
        return self.missing_gib <= 0

    @property
    def mfu(self) -> float:
        """The share of the peak of 6 N FLOPs per token."""
        return self.speed.mfu_6n

    @property
    def mfu_with_attention(self) -> float:
        """The share of the peak of 6 W + 12 L a d s FLOPs per token."""
        return self.speed.mfu

    @property
    def days_range(self) -> tuple[float, float]:
        """The minimum and maximum days."""
        return self.days / (1 + self.certainty.off), self.days / (1 - self.certainty.off)


def forecast_run(run: RunSpec) -> RunForecast:
    """The forecast of this run. Raises SpecErrors if no layout divides its batch among its accelerators."""
    open_job = open_job_of(run)
    choice = None if run.layout else choose(open_job)
    layout = _layout(run, choice)
    job, memory = open_job.laid_out(layout), open_job.memory(layout)
    speed, missing = forecast_speed(job), open_job.missing_gib(memory)
    hours = accelerator_hours(speed, run.tokens)
    each, peak = speed.tokens_per_s_per_accelerator, job.machine.accelerator.peak_flops(16)
    limit = job.machine.accelerator.memory_gib
    slow = communication_warning(speed.parts) if missing <= 0 else None  # useless if the run does not fit
    warnings = (slow, memory_warning(memory.total_gib, limit))
    return RunForecast(
        run=run,
        job=job,
        choice=choice,
        memory=memory,
        memory_gib=limit,
        missing_gib=missing,
        largest_micro_batch=largest_dividing_micro_batch(open_job, layout),
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


def certainty_of(job: OpenJob) -> Certainty:
    """The uncertainty of this job's speed in any layout."""
    accelerator = job.machine.accelerator
    if job.shape.is_moe:
        return Certainty(off=_MIXTURES, why="four of five published runs of mixtures of experts were within it")
    if not accelerator.calibrated or published_runs(accelerator.name, min(16, job.precision.bits)) < _FEW:
        return Certainty(off=_OTHERS, why=f"few or no similar runs on {accelerator.name} are published")
    if job.seq_len > _LONG:
        return Certainty(off=_OTHERS, why=f"few runs with sequences of more than {_LONG:,} tokens are published")
    if job.nodes > 1 and not job.efa:
        return Certainty(off=_OTHERS, why="no runs without EFA between nodes are published")
    if job.precision.bits > 16 or job.offload_optimizer:
        return Certainty(off=_OTHERS, why="no runs with fp32 or offload are published")
    return Certainty(off=_DENSE, why="five of six published runs of dense models were within it")


def _layout(run: RunSpec, choice: Choice | None) -> Layout:
    if run.layout:
        return declared_layout(run.layout, run.accelerators)
    if choice and (found := choice.best or choice.nearest):
        return found.layout
    message = f"{run.batch_sequences} sequences cannot be divided among {run.accelerators} accelerators in any layout"
    fix = "use a multiple of the accelerators, or other nodes"
    raise SpecErrors([SpecError(file=run.file, path="batch_sequences", message=message, fix=fix)])


def _change(job: Job, choice: Choice | None) -> str | None:
    """What to change first: in the run after a search, otherwise in its declared layout."""
    if choice is not None:
        return next(iter(choice.nearest.changes), None) if choice.nearest else None
    change = first_change(job, usual_state(job.precision, job.layout.sharding))
    if change is None:
        return None
    return (
        change.words if change.fits else f"{change.words}, which alone is not enough; or let corral choose the layout"
    )


def _efficiency(job: OpenJob, speed: Speed) -> Efficiency | None:
    """The efficiency relative to the fastest layout on the fewest nodes, of 1, 2, 4 and so on."""
    fewest = on_the_fewest(job, speed)
    if fewest:
        nodes, alone = fewest
        return Efficiency(nodes=nodes, share=parallel_efficiency(alone, speed))
    return Efficiency(nodes=job.nodes, share=1.0)
