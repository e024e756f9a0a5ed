"""The forecast of a training run that an environment declares, as numbers for the head. In cluster.json.

A job is that run if it names it in the variable CORRAL_RUN, and runs on as many nodes of the same queue.
"""

from collections.abc import Iterable
from dataclasses import dataclass

RUN_VARIABLE = "CORRAL_RUN"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForecastNumbers:
    """What is forecast of a run on `nodes` nodes of `queue`, which have `gpus` GPUs together.

    `uncertainty`: of the speed, relative to it. `memory_gib`: of a GPU, which has `memory_limit_gib`. `fits`: whether a
    GPU and its host have enough; if not, the numbers are those of the nearest layout, and `change` is what to change.
    """

    name: str
    queue: str
    nodes: int
    gpus: int
    step_s: float
    tokens_per_s_per_gpu: float
    mfu: float
    communication_share: float
    memory_gib: float
    memory_limit_gib: float
    uncertainty: float
    fits: bool
    largest_micro_batch: int | None = None
    change: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundForecast:
    """The forecast of a job, or why it has none; both are empty if the job names no run."""

    numbers: RunForecastNumbers | None = None
    problem: str = ""


NO_FORECAST = FoundForecast()


def forecast_of_job(runs: Iterable[RunForecastNumbers], name: str, queue: str, nodes: int) -> FoundForecast:
    """The forecast of a job that names this run and has these nodes of this queue."""
    if not name:
        return NO_FORECAST
    found = next((run for run in runs if run.name == name), None)
    if found is None:
        return FoundForecast(problem=f"{RUN_VARIABLE}={name}: the environment declares no such run")
    if (found.queue, found.nodes) != (queue, nodes):
        count = "1 node" if found.nodes == 1 else f"{found.nodes} nodes"
        return FoundForecast(problem=f"that of {name} is for {count} of {found.queue}")
    return FoundForecast(numbers=found)
