"""The time of instances, divided among jobs that run side by side, and what is left."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from corral.model.head_report import JobRun
from corral.report.timeline.event_lines import read_events
from small_history import LINES, event, history_usage, run


def job(number: str, begins: int, ended: int, *, cpus: int = 0, gpus: int = 0, nodes: str = "train-2") -> JobRun:
    return replace(run(begins, begins, ended, "completed", nodes=nodes), job_id=number, cpus=cpus, gpus=gpus)


def seconds(*runs: JobRun, node: str = "train-2") -> dict[str, float]:
    """The seconds of a node by job, or by use without a job."""
    found: dict[str, float] = defaultdict(float)
    for one in history_usage(runs=runs).slices:
        if one.machine.node == node:
            found[one.run.job_id if one.run else str(one.use)] += (one.ended - one.begins).total_seconds() * one.share
    return dict(found)


def test_a_job_alone_has_the_whole_node() -> None:
    assert seconds(job("7", 400, 1400, cpus=1)) == {"booting": 300.0, "7": 1000.0, "idle": 7280.0}


def test_jobs_side_by_side_divide_a_node_by_their_gpus() -> None:
    found = seconds(job("7", 400, 1400, cpus=24, gpus=6), job("8", 400, 1400, cpus=24, gpus=2))
    assert (found["7"], found["8"]) == (750.0, 250.0)


def test_a_job_with_more_of_the_cpus_than_of_the_gpus_counts_by_cpus() -> None:
    found = seconds(job("7", 400, 1400, cpus=72, gpus=2), job("8", 400, 1400, cpus=8, gpus=2))
    assert (found["7"], found["8"]) == (750.0, 250.0)  # three quarters of 96 CPUs, a quarter of 8 GPUs


def test_a_job_has_the_node_alone_before_and_after_another() -> None:
    found = seconds(job("7", 400, 1400, cpus=48, gpus=4), job("8", 900, 1100, cpus=48, gpus=4))
    assert (found["7"], found["8"]) == (900.0, 100.0)


def test_a_job_of_two_nodes_has_half_of_its_gpus_on_each() -> None:
    both = job("7", 400, 1400, cpus=192, gpus=8, nodes="train-[1-2]")
    found = seconds(both, job("8", 400, 1400, cpus=48, gpus=4))
    assert (found["7"], found["8"]) == (2000 / 3, 1000 / 3)  # all of the CPUs, half of the GPUs


def test_runs_of_older_heads_divide_a_node_in_equal_parts() -> None:
    found = seconds(job("7", 400, 1400), job("8", 400, 1400))
    assert (found["7"], found["8"]) == (500.0, 500.0)


def test_the_parts_of_all_machines_add_up_to_their_time() -> None:
    jobs = [job(str(number), 400 + 90 * number, 900 + 370 * number, cpus=1 + number) for number in range(20)]
    usage = history_usage(runs=tuple(jobs))
    parts = sum((one.ended - one.begins).total_seconds() * one.share for one in usage.slices)
    assert round(parts, 6) == usage.node_s == 600 + 1200 + 10_800 + 400 + 500 + 3600


def test_a_machine_that_never_came_up_only_boots() -> None:
    lost = read_events([*LINES[:2], event(900, "marked-down", nodes="train-2")])
    assert {str(one.use) for one in history_usage(lost, ()).slices} == {"booting"}


def test_gpus_of_a_job_are_those_that_it_allocated() -> None:
    slices = history_usage(runs=(job("7", 400, 1400, cpus=1, gpus=2),)).slices
    assert {(str(one.use), one.gpus) for one in slices if one.machine.node == "train-2"} == {
        ("booting", 8.0),
        ("jobs", 2.0),
        ("idle", 8.0),
    }
