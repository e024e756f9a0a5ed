"""Jobs that the head could not read, in `corral status`."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from corral.model.head_report import AutoscalerStatus, HeadStatus
from corral.report.account.job_view import slurm_document, slurm_view


def status(unreadable_jobs: int) -> HeadStatus:
    autoscaler = AutoscalerStatus(is_running=True, last_cycle=None, start_command="start it", log_command="read why")
    return HeadStatus(
        at=1795300800,
        jobs=(),
        running=0,
        waiting=0,
        backoffs=(),
        disabled_queues=(),
        nodes=(),
        autoscaler=autoscaler,
        unreadable_jobs=unreadable_jobs,
    )


@pytest.mark.parametrize(
    ("unreadable_jobs", "words"),
    [
        (0, "jobs 0 running, 0 waiting"),
        (2, "jobs 0 running, 0 waiting not shown 2 jobs, which Slurm prints in an unknown form"),
    ],
)
def test_unreadable_jobs_are_counted_on_the_terminal(unreadable_jobs: int, words: str) -> None:
    out = io.StringIO()
    for part in slurm_view(status(unreadable_jobs)):
        Console(file=out, width=120).print(part)
    assert " ".join(out.getvalue().split()) == words


def test_unreadable_jobs_are_counted_in_the_document() -> None:
    document = slurm_document(status(2))
    assert document is not None and document["unreadable_jobs"] == 2
