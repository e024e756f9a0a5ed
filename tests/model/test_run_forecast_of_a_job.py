"""Which job a forecast is about: the one that names its run, on as many nodes of its queue."""

from __future__ import annotations

import pytest

from corral.model.run_forecast import FoundForecast, forecast_of_job
from render.plans import LLAMA


def test_a_job_that_names_the_run_on_its_nodes_has_its_forecast() -> None:
    assert forecast_of_job((LLAMA,), "llama", "train", 4) == FoundForecast(numbers=LLAMA)


def test_a_job_that_names_no_run_has_none_and_that_is_no_problem() -> None:
    assert forecast_of_job((LLAMA,), "", "train", 4) == FoundForecast()


@pytest.mark.parametrize(
    ("name", "queue", "nodes", "problem"),
    [
        ("lama", "train", 4, "CORRAL_RUN=lama: the environment declares no such run"),
        ("llama", "train", 2, "that of llama is for 4 nodes of train"),
        ("llama", "other", 4, "that of llama is for 4 nodes of train"),
    ],
)
def test_another_run_or_other_nodes_are_a_problem(name: str, queue: str, nodes: int, problem: str) -> None:
    assert forecast_of_job((LLAMA,), name, queue, nodes) == FoundForecast(problem=problem)
