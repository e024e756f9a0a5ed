"""All that a diagnosis is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corral.catalog.aws.instance_types import InstanceType
from corral.forecast.training.run_forecast import RunForecast
from corral.model.job_evidence import NO_CURVES, JobCurves, JobEvidencePage, JobNodes, JobRecord, RankSteps, StepPoint
from corral.model.run_forecast import RunForecastNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRun:
    """What a forecast says about the run. `change`: what makes it fit, if it does not.

    `name`: of the declared run that the job names; empty for a run file of the command line.
    """

    tokens_per_s_per_accelerator: float
    mfu: float
    communication_share: float
    memory_gib: float
    memory_limit_gib: float
    largest_micro_batch: int | None
    change: str | None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machines of the job's queue. `efa_devices`: of one node, 0 without EFA."""

    instance_type: InstanceType
    efa_devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvidence:
    """The evidence. `machine`: None if the environment has no such queue now; `expected`: None without a run file.

    `problem`: why something may be missing, empty if complete. `curve`: the newest steps of the first process.
    `nodes`: what GPUs and EFA did in the last minutes; `curves`: what Prometheus has of the run. `forecast_problem`:
    why the run that the job names has no forecast for it; empty otherwise.
    """

    job: JobRecord
    ranks: tuple[RankSteps, ...]
    variables: Mapping[str, str]
    output: tuple[str, ...]
    node_reasons: Mapping[str, str]
    nodes: JobNodes
    forecast_problem: str
    machine: Machine | None
    expected: ExpectedRun | None
    problem: str = ""
    curve: tuple[StepPoint, ...] = ()
    curves: JobCurves = NO_CURVES

    @property
    def size(self) -> int:
        """How many processes the job has, as they report; 0 if none does."""
        return max((one.size for one in self.ranks), default=0)

    @property
    def training(self) -> tuple[RankSteps, ...]:
        """The processes that have recorded steps."""
        return tuple(one for one in self.ranks if one.lines)

    @property
    def tokens_per_s_per_accelerator(self) -> float | None:
        """Of all processes, for each GPU of the job; for each process if the job has none. None if not recorded."""
        total = sum(one.tokens_per_s for one in self.training)
        size = max((one.size for one in self.training), default=0)
        if not total or size > len(self.training):  # of a part of the processes, it would be too low
            return None
        return total / (self.job.gpus or len(self.training))

    @property
    def forecast_share(self) -> float | None:
        """The speed as a share of the forecast's."""
        speed = self.tokens_per_s_per_accelerator
        return speed / self.expected.tokens_per_s_per_accelerator if speed and self.expected else None

    @property
    def mfu(self) -> float | None:
        """The share of the peak of 6 N FLOPs per token, as the forecast counts it."""
        share = self.forecast_share
        return share * self.expected.mfu if share is not None and self.expected else None


def joined(
    pages: Sequence[JobEvidencePage], machine: Machine | None = None, expected: ExpectedRun | None = None
) -> JobEvidence:
    """The evidence of all pages of a job; there is at least one. Without `expected`, the job's declared run counts."""
    first = pages[0]
    problems = dict.fromkeys(page.steps.problem for page in pages if page.steps.problem)
    return JobEvidence(
        job=first.job,
        ranks=tuple(rank for page in pages for rank in page.steps.ranks),
        variables=first.steps.variables,
        output=first.steps.output,
        node_reasons=first.node_reasons,
        nodes=first.nodes,
        forecast_problem=first.forecast.problem,
        machine=machine,
        expected=expected or declared_run(first.forecast.numbers),
        problem="; ".join(problems),
        curve=first.steps.curve,
        curves=first.curves,
    )


def expected_run(forecast: RunForecast) -> ExpectedRun:
    """What this forecast says about the run."""
    return ExpectedRun(
        tokens_per_s_per_accelerator=forecast.speed.tokens_per_s_per_accelerator,
        mfu=forecast.mfu,
        communication_share=forecast.speed.communication_share,
        memory_gib=forecast.memory.total_gib,
        memory_limit_gib=forecast.memory_gib,
        largest_micro_batch=forecast.largest_micro_batch,
        change=forecast.change,
    )


def declared_run(numbers: RunForecastNumbers | None) -> ExpectedRun | None:
    """What the head knows of the forecast of the job's run."""
    if numbers is None:
        return None
    return ExpectedRun(
        name=numbers.name,
        tokens_per_s_per_accelerator=numbers.tokens_per_s_per_gpu,
        mfu=numbers.mfu,
        communication_share=numbers.communication_share,
        memory_gib=numbers.memory_gib,
        memory_limit_gib=numbers.memory_limit_gib,
        largest_micro_batch=numbers.largest_micro_batch,
        change=numbers.change,
    )
