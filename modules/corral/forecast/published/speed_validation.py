"""The error of speed forecasts: predicted against reported speed of published runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from corral.catalog.loader.data_files import read_text
from corral.forecast.published.published_runs import PublishedRun, parse_runs
from corral.forecast.training.job import Precision
from corral.forecast.training.speed import Speed, forecast_speed


class PublishedTable(StrEnum):
    """The tables of published runs that corral ships. The constants of the forecast were chosen on the first two."""

    FIRST = "first"
    SECOND = "second"
    HELD_OUT = "held-out"

    @property
    def file(self) -> str:
        """The file name in the catalog's data."""
        return {PublishedTable.FIRST: "training_runs.csv", PublishedTable.SECOND: "training_runs_second.csv"}.get(
            self, "training_runs_held_out.csv"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedComparison:
    """A run with its predicted and reported speed."""

    run: PublishedRun
    speed: Speed

    @property
    def predicted(self) -> float:
        """Tokens per second and accelerator."""
        return self.speed.tokens_per_s_per_accelerator

    @property
    def error(self) -> float | None:
        """Predicted over reported, minus 1; None if nothing was reported."""
        return None if self.run.reported is None else self.predicted / self.run.reported - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Absolute errors of a group of runs; None if the group is empty."""

    name: str
    runs: int
    median: float | None
    worst: float | None
    worst_run: str | None


def shipped_runs(table: PublishedTable = PublishedTable.FIRST) -> tuple[PublishedRun, ...]:
    """The runs of a table that corral ships."""
    return parse_runs(read_text(table.file), table.file)


def compare_speeds(runs: Iterable[PublishedRun]) -> tuple[SpeedComparison, ...]:
    """Every run with its forecast, in order."""
    return tuple(SpeedComparison(run=run, speed=forecast_speed(run.job)) for run in runs)


def errors_of(name: str, comparisons: Sequence[SpeedComparison]) -> Errors:
    """The absolute errors of the runs with a reported speed."""
    known = [(abs(one.error), one.run.run_id) for one in comparisons if one.error is not None]
    worst, run_id = max(known, default=(None, None))
    return Errors(
        name=name,
        runs=len(known),
        median=median(size for size, _ in known) if known else None,
        worst=worst,
        worst_run=run_id,
    )


def grouped_errors(comparisons: Sequence[SpeedComparison]) -> tuple[Errors, ...]:
    """Errors of all runs; of dense ones in 16 bits, in bf16, in fewer bits; of mixtures; of each accelerator."""
    dense = [one for one in comparisons if not one.run.job.shape.is_moe]
    names = dict.fromkeys(one.run.job.machine.accelerator.name for one in comparisons)
    return (
        errors_of("all", comparisons),
        errors_of("dense, 16 bits", [one for one in comparisons if one.run.is_dense_16_bit]),
        errors_of("dense, bf16", [one for one in comparisons if one.run.is_dense_16_bit and _is_bf16(one)]),
        errors_of("dense, fewer bits", [one for one in dense if not one.run.is_dense_16_bit]),
        errors_of("mixtures of experts", [one for one in comparisons if one.run.job.shape.is_moe]),
        *(
            errors_of(name, [one for one in comparisons if one.run.job.machine.accelerator.name == name])
            for name in names
        ),
    )


def _is_bf16(one: SpeedComparison) -> bool:
    return one.run.job.precision is Precision.BF16
