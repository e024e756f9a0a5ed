"""The steps that benchmarks/gpu_step.py measured on one H100, against the forecast; docs/forecast.md shows both."""

from __future__ import annotations

import csv
import re

import pytest

from corral.forecast.published.published_runs import parse_runs
from corral.forecast.published.speed_validation import SpeedComparison, compare_speeds
from corral.forecast.training.fit import job_memory
from corral.forecast.training.flops import model_flops_per_token
from corral.forecast.training.memory import GIB
from corral.forecast.training.optimizer_state import FSDP2
from environments import PROJECT

TEXT = (PROJECT / "benchmarks/gpu_step.csv").read_text(encoding="utf-8")
CELLS = {row["run_id"]: row for row in csv.DictReader(line for line in TEXT.splitlines() if not line.startswith("#"))}
COMPARISONS = {one.run.run_id: one for one in compare_speeds(parse_runs(TEXT, "gpu_step.csv"))}


def used_gib(comparison: SpeedComparison) -> float:
    """The forecast of the memory in use at the peak, without the reserve."""
    memory = job_memory(comparison.run.job, FSDP2)
    return (memory.total - memory.reserve) / GIB


@pytest.mark.parametrize(
    ("run_id", "error"),
    [
        ("gpu-step-1.4b-mb4-flash", -0.136),
        ("gpu-step-1.4b-mb4-cudnn", -0.223),
        ("gpu-step-1.4b-mb4-flash-eager", 0.179),
        ("gpu-step-1.4b-mb8-flash-full", -0.147),
        ("gpu-step-2.7b-mb3-flash", -0.104),
    ],
)
def test_measured_steps_are_forecast_within_the_documented_error(run_id: str, error: float) -> None:
    assert COMPARISONS[run_id].error == pytest.approx(error, abs=0.001)


def test_the_page_shows_every_measured_run_with_its_forecast() -> None:
    page = (PROJECT / "docs/forecast.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d\.\db-mb.*) \|$", page, re.MULTILINE)
    assert rows == [
        " | ".join(
            (
                name.removeprefix("gpu-step-"),
                f"{one.run.reported:,.0f}",
                f"{one.predicted:,.0f}",
                f"{one.error:+.1%}",
                f"{CELLS[name]['mfu_pct']} %",
                CELLS[name]["peak_memory_gib"],
                f"{used_gib(one):.1f}",
            )
        )
        for name, one in COMPARISONS.items()
    ]


def test_the_benchmark_counts_flops_as_the_forecast_does() -> None:
    percent = {
        name: 100 * (one.run.reported or 0) * model_flops_per_token(one.run.job.shape, one.run.job.seq_len) / 989e12
        for name, one in COMPARISONS.items()
    }
    assert percent == pytest.approx({name: float(cells["mfu_pct"]) for name, cells in CELLS.items()}, abs=0.06)


def test_compiled_steps_use_less_memory_than_forecast() -> None:
    excess = {name: used_gib(one) / float(CELLS[name]["peak_memory_gib"]) - 1 for name, one in COMPARISONS.items()}
    assert [name for name, one in excess.items() if one < 0] == ["gpu-step-1.4b-mb4-flash-eager"]
