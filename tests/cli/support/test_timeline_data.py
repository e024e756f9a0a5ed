"""The runs of a recorded history, as an earlier agent wrote them."""

from __future__ import annotations

from corral.cli.support.timeline_data import printable_runs
from corral.model.head_report import JobRun


def test_texts_of_a_recorded_run_are_printable() -> None:
    run = JobRun(
        job_id="1\x1b", user="ada\x1b[2J", name="a\u202eb", queue="train\r", state="x\x07", nodes="a-[1-2]\x1b",
        submitted=1, started=None, ended=None,
    )  # fmt: skip
    assert printable_runs([run]) == (
        JobRun(
            job_id=r"1\x1b", user=r"ada\x1b[2J", name=r"a\u202eb", queue=r"train\r", state=r"x\x07",
            nodes=r"a-[1-2]\x1b", submitted=1, started=None, ended=None,
        ),
    )  # fmt: skip


def test_a_long_list_of_nodes_stays_whole() -> None:
    nodes = f"a-[{','.join(str(number) for number in range(0, 1000, 2))}]"
    run = JobRun(job_id="1", user="", name="", queue="", state="", nodes=nodes, submitted=1, started=None, ended=None)
    assert printable_runs([run])[0].nodes == nodes
