"""The computed table of docs/reliability.md matches the formulas."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.forecast.checkpoint_policy import Checkpointing, CheckpointPolicy, Recovery
from corral.forecast.goodput import RunProgress, progress_range
from corral.forecast.interruptions import machine_interruptions

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
DAY_S, HOUR_S, MINUTE_S = 86400, 3600, 60
RECOVERY = Recovery(detect_s=60, restart_s=540)
AT_ONCE = CheckpointPolicy(checkpointing=Checkpointing(stall_s=30, durable_s=30), recovery=RECOVERY)
BEHIND = CheckpointPolicy(checkpointing=Checkpointing(stall_s=1, durable_s=61), recovery=RECOVERY)
HEAD = "| accelerators | between interruptions |"


def shown() -> list[str]:
    lines = PAGE.read_text().split(HEAD)[1].split("\n\n")[0].splitlines()
    return lines[2:]


def span(seconds: float) -> str:
    for unit, size_s in (("d", DAY_S), ("h", HOUR_S)):
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.1f} {unit}"
    return f"{seconds / MINUTE_S:.0f} min"


def runs(accelerators: int, policy: CheckpointPolicy) -> tuple[RunProgress, RunProgress]:
    found = progress_range(30 * DAY_S, policy, machine_interruptions(accelerators))
    return found.worst, found.best


def row(accelerators: int) -> str:
    expected = machine_interruptions(accelerators)
    at_once, behind = runs(accelerators, AT_ONCE), runs(accelerators, BEHIND)
    cells = [
        f"{accelerators:,}",
        f"{span(expected.shortest_mtbf_s or 0)} to {span(expected.longest_mtbf_s)}",
        " to ".join(span(run.interval_s) for run in at_once),
        " to ".join(f"{run.shares.progress:.1%}" for run in at_once),
        " to ".join(f"{run.shares.progress:.1%}" for run in behind),
    ]
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("line", shown(), ids=lambda line: line.split("|")[1].strip())
def test_rows_of_the_table_are_the_computed_ones(line: str) -> None:
    assert line == row(int(line.split("|")[1].replace(",", "")))


def test_a_million_accelerators_make_no_progress_in_the_worst_case() -> None:
    assert runs(10**6, AT_ONCE)[0].no_progress is not None
