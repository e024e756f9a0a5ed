"""The forecasts of the runs that an environment declares, as numbers for its head."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from corral.model.cluster import ClusterPlan
from corral.model.run_forecast import RunForecastNumbers
from corral.spec.yaml.environment import Environment

if TYPE_CHECKING:
    from corral.forecast.training.run_forecast import RunForecast


def with_forecasts(plan: ClusterPlan, environment: Environment) -> ClusterPlan:
    """The plan with the forecasts of the declared runs, by name. Raises SpecErrors for a batch that fits no layout."""
    if not environment.runs:
        return plan
    from corral.forecast.training.run_forecast import forecast_run  # most environments declare no run

    runs = sorted(environment.runs.items())
    return replace(plan, runs=tuple(_numbers(name, forecast_run(run)) for name, run in runs))


def _numbers(name: str, forecast: RunForecast) -> RunForecastNumbers:
    """The numbers of this forecast; with four digits, so that a new release of Python changes no file."""
    return RunForecastNumbers(
        name=name,
        queue=forecast.run.queue,
        nodes=forecast.run.nodes,
        gpus=forecast.run.accelerators,
        step_s=_digits(forecast.speed.parts.total),
        tokens_per_s_per_gpu=_digits(forecast.speed.tokens_per_s_per_accelerator),
        mfu=_digits(forecast.mfu),
        communication_share=_digits(forecast.speed.communication_share),
        memory_gib=_digits(forecast.memory.total_gib),
        memory_limit_gib=_digits(forecast.memory_gib),
        uncertainty=forecast.certainty.off,
        fits=forecast.fits,
        largest_micro_batch=forecast.largest_micro_batch,
        change=forecast.change,
    )


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
