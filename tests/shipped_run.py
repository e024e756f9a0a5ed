"""The run of 8B that the project ships, in its environment `train`, planned as `corral plan --run` plans it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from corral.cli.planning import Options, Planned, planned
from corral.forecast.whole.run import WholeRun
from corral.spec.files import read_environment
from environments import PROJECT


@cache
def shipped_plan() -> Planned:
    """The plan of `train`, with the run."""
    run = Path(PROJECT, "examples/runs/llama3-8b.yaml")
    return planned(read_environment(PROJECT, "train"), Options(run=run, compare=None, buy=None, live=False))


def shipped_run() -> WholeRun:
    """The run alone."""
    whole = shipped_plan().whole
    assert whole is not None
    return whole
