"""The steps that benchmarks/gpu_step.py measured on an H100 and an H200, against the forecast in docs/forecast.md."""

from __future__ import annotations

import csv
import re

import pytest

from corral.forecast.published.published_runs import parse_runs
from corral.forecast.published.speed_validation import SpeedComparison, compare_speeds
from corral.forecast.training.fit import fits, job_memory
from corral.forecast.training.flops import model_flops_per_token
from corral.forecast.training.memory import GIB
from corral.forecast.training.optimizer_state import FSDP2
from environments import PROJECT

TEXTS = {
    gpu: (PROJECT / "benchmarks" / file).read_text(encoding="utf-8")
    for gpu, file in (("H100-80", "gpu_step.csv"), ("H200", "gpu_step_h200.csv"))
}
CELLS = {
    (gpu, row["run_id"]): row
    for gpu, text in TEXTS.items()
    for row in csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
}
COMPARISONS = {
    (one.run.job.machine.accelerator.name, one.run.run_id): one
    for gpu, text in TEXTS.items()
    for one in compare_speeds(parse_runs(text, gpu))
}


def test_the_forecast_knows_the_gpu_of_every_row() -> None:
    assert COMPARISONS.keys() == CELLS.keys()


def used_gib(comparison: SpeedComparison) -> float:
    """The forecast of the memory in use at the peak, without the reserve."""
    memory = job_memory(comparison.run.job, FSDP2)
    return (memory.total - memory.reserve) / GIB


@pytest.mark.parametrize(
    ("gpu", "run_id", "error"),
    [
        ("H100-80", "gpu-step-1.4b-mb4-flash", -0.136),
        ("H100-80", "gpu-step-1.4b-mb4-cudnn", -0.223),
        ("H100-80", "gpu-step-1.4b-mb4-flash-eager", 0.179),
        ("H100-80", "gpu-step-1.4b-mb8-flash-full", -0.147),
        ("H100-80", "gpu-step-2.7b-mb3-flash", -0.104),
        ("H200", "gpu-step-1.4b-mb1-flash", -0.008),
        ("H200", "gpu-step-1.4b-mb12-flash", -0.096),
        ("H200", "gpu-step-1.4b-mb4-cudnn", -0.163),
        ("H200", "gpu-step-1.4b-mb4-flash-eager", 0.208),
        ("H200", "gpu-step-6.7b-mb2-flash", -0.042),
    ],
)
def test_measured_steps_are_forecast_within_the_documented_error(gpu: str, run_id: str, error: float) -> None:
    assert COMPARISONS[gpu, run_id].error == pytest.approx(error, abs=0.001)


def test_an_h200_gains_less_than_forecast_in_every_step() -> None:
    names = [name for gpu, name in COMPARISONS if gpu == "H100-80"]
    steps = {name: (COMPARISONS["H100-80", name], COMPARISONS["H200", name]) for name in names}
    gains = {
        name: ((h200.run.reported or 0) / (h100.run.reported or 1), h200.predicted / h100.predicted)
        for name, (h100, h200) in steps.items()
    }
    assert [name for name, (measured, forecast) in gains.items() if measured >= forecast] == []


def test_a_step_that_ran_is_forecast_not_to_fit() -> None:
    refused = [name for name, one in COMPARISONS.items() if not fits(one.run.job, FSDP2)]
    assert refused == [("H200", "gpu-step-6.7b-mb2-flash")]


def test_the_page_shows_every_measured_run_with_its_forecast() -> None:
    page = (PROJECT / "docs/forecast.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d\.\db-mb.*) \|$", page, re.MULTILINE)
    assert rows == [
        " | ".join(
            (
                one.run.run_id.removeprefix("gpu-step-"),
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
    assert [name for name, one in excess.items() if one < 0] == [
        ("H100-80", "gpu-step-1.4b-mb4-flash-eager"),
        ("H200", "gpu-step-1.4b-mb4-flash-eager"),
    ]
