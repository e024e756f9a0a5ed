"""The shipped run of an 8B model in the environment `train`, planned as by `corral plan --run`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from corral.cli.support.plan_service import PlanOptions, PlanResult, compute_plan
from corral.forecast.run.run_outlook import RunOutlook
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT


@cache
def shipped_plan() -> PlanResult:
    """The plan of `train`, with the run."""
    run = Path(PROJECT, "examples/runs/llama3-8b.yaml")
    return compute_plan(read_environment(PROJECT, "train"), PlanOptions(run=run, compare=None, buy=None, live=False))


def shipped_run() -> RunOutlook:
    """The run alone."""
    whole = shipped_plan().run
    assert whole is not None
    return whole
