"""The head's report of jobs, queues, offers and nodes, from outputs recorded with Slurm 22.05.

`recorded_names` has what squeue and sacct print of fourteen jobs whose names and accounts are an attacker's; MariaDB
has replaced some of their characters by question marks. Slurm keeps any account of a user without associations.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from corral.agent.autoscaler.requeue_release import ClosedQueue
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import SlurmNode
from corral.agent.cluster.state import AutoscalerState, Backoff
from corral.agent.head_status import (
    RunNames,
    active_jobs,
    job_run_page,
    node_groups,
    offers_backing_off,
    parse_sacct_line,
    read_active_job,
)
from corral.agent.slurm import SlurmError
from corral.model.head_report import JobRun, JobRunPage, NodeGroup, OfferBackoff

RECORDED = Path(__file__).with_name("recorded_names")
WIDTHS = (48, 64, 200, 24, 10, 400, 20, 20, 60, 1000, 12, 321, 321)
RUNNING = (
    "1",
    "root",
    "train",
    "RUNNING",
    "2",
    "train-[1-2]",
    "1795300820",
    "1795300797",
    "None",
    "(null)",
    "0",
    "ml",
    "wrap",
)
DELAYED = ("2", "ada", "train", "PENDING", "1", "", "1795304415", "1795300815", "BeginTime", "(null)", "0", "", "a|b c")
RUN = (
    "1|1|root|train|REQUEUED|1795300797|1795300820|1795300845|train-[1-2]|192"
    "|billing=192,cpu=192,gres/gpu:a100=16,gres/gpu=16,mem=2T,node=2"
)
# The name of job 2 of the recorded ones, and what sacct prints between separators if the name is among the fields.
FORGED = r"a\n999|victim|train|COMPLETED|1795300797|1795300820|1795300845|train-1|forged"
BETWEEN_SEPARATORS = """2|root|cpu|COMPLETED|1795666041|1795666041|1795666046|cpu-1|a
999|victim|train|COMPLETED|1795300797|1795300820|1795300845|train-1|forged
"""


def row(cells: tuple[str, ...], changes: Mapping[int, str] | None = None) -> list[str]:
    return [(changes or {}).get(index, cell) for index, cell in enumerate(cells)]


def line(cells: tuple[str, ...], changes: Mapping[int, str] | None = None) -> str:
    return "".join(cell.ljust(width) for cell, width in zip(row(cells, changes), WIDTHS, strict=True))


def test_a_running_job_has_nodes_and_its_start() -> None:
    job = read_active_job(row(RUNNING))
    assert (job.state, job.nodes, job.since, job.reason, job.is_pending) == (
        "running",
        "train-[1-2]",
        1795300820,
        "",
        False,
    )


def test_a_waiting_job_has_its_submission_and_its_earliest_start() -> None:
    job = read_active_job(row(DELAYED))
    assert (job.name, job.nodes, job.since, job.until) == ("a|b c", "", 1795300815, 1795304415)


@pytest.mark.parametrize(
    ("reason", "comment", "why"),
    [
        ("BeginTime", "corral: train-spot: no room", "train-spot: no room"),
        ("Resources", "(null)", "no node is free"),
        ("ReqNodeNotAvail, Reserved", "", "its nodes are not available now (Reserved)"),
        ("SomethingNew", "", "SomethingNew"),
        ("None", "", ""),
    ],
)  # fmt: skip
def test_why_a_job_waits_is_in_plain_words(reason: str, comment: str, why: str) -> None:
    assert read_active_job(row(DELAYED, {8: reason, 9: comment})).reason == why


OPENS = 1795301400
SHUT = {"train": ClosedQueue(until=datetime.fromtimestamp(OPENS), reason="a, b: InsufficientInstanceCapacity")}
JUST_REQUEUED = {6: "1795300935", 10: "1"}


def waits(changes: Mapping[int, str]) -> tuple[str, int | None]:
    """Why and until when a job waits, 20 s after it was requeued, while no offer of train has capacity."""
    job = read_active_job(row(DELAYED, changes), SHUT, 1795300835.0)
    return job.reason, job.until


def test_a_job_that_was_just_requeued_waits_for_what_the_offers_of_its_queue_wait_for() -> None:
    assert waits(JUST_REQUEUED) == ("a, b: InsufficientInstanceCapacity", OPENS)


@pytest.mark.parametrize(
    "changes",
    [
        {**JUST_REQUEUED, 10: "0"},  # submitted with --begin
        {**JUST_REQUEUED, 6: "1795304415"},  # its user set a begin time
        {**JUST_REQUEUED, 2: "train,cpu"},  # cpu can have machines
    ],
)
def test_a_job_that_waits_for_its_begin_time_has_that_reason(changes: Mapping[int, str]) -> None:
    assert waits(changes)[0] == "its begin time has not come"


def test_the_autoscalers_comment_on_a_requeued_job_is_shown() -> None:
    assert waits({**JUST_REQUEUED, 9: "corral: c: VcpuLimitExceeded"}) == ("c: VcpuLimitExceeded", 1795300935)


def test_a_run_is_read_from_saccts_line() -> None:
    assert parse_sacct_line(RUN, {("1", "1795300797"): RunNames("ml", "a|b")}) == JobRun(
        job_id="1",
        user="root",
        name="a|b",
        queue="train",
        state="requeued",
        nodes="train-[1-2]",
        submitted=1795300797,
        started=1795300820,
        ended=1795300845,
        account="ml",
        cpus=192,
        gpus=16,
    )


def test_a_run_that_was_cancelled_before_it_began_has_no_start() -> None:
    run = parse_sacct_line("7|7|ada|train|CANCELLED by 1000|1795300797|None|1795300845|None assigned|0|", {})
    assert (run.state, run.nodes, run.started, run.cpus, run.gpus) == ("cancelled", "", None, 0, 0)


def test_only_present_backoffs_are_listed() -> None:
    cold = {
        "spot": Backoff(until=200.0, refusals=1, kind=LaunchErrorKind.CAPACITY, reason="InsufficientInstanceCapacity"),
        "on-demand": Backoff(until=100.0, refusals=1, kind=LaunchErrorKind.CAPACITY, reason="x"),
    }
    assert offers_backing_off(AutoscalerState(backoffs=cold), 150.0) == (
        OfferBackoff(offer="spot", until=200, kind="no capacity", reason="InsufficientInstanceCapacity"),
    )


def test_nodes_are_grouped_by_queue_and_state() -> None:
    nodes = [
        SlurmNode(name="train-2", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"})),
        SlurmNode(name="train-1", states=frozenset({"IDLE", "CLOUD", "POWERED_DOWN"})),
        SlurmNode(name="train-3", states=frozenset({"MIXED", "CLOUD"})),
    ]
    assert node_groups(nodes) == (
        NodeGroup(queue="train", state="idle+powered_down", nodes="train-[1-2]", count=2),
        NodeGroup(queue="train", state="mixed", nodes="train-3", count=1),
    )


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs that print the files next to them, sacct's names from another one; without a file they fail."""
    for name in ("sacct", "squeue"):
        (tmp_path / name).write_text(
            f'#!/bin/sh\ncase "$*" in *JobName*) cat {tmp_path}/names.out 2>/dev/null; exit;; esac\n'
            f'cat {tmp_path}/{name}.out 2>/dev/null || {{ echo "no {name}" >&2; exit 1; }}'
        )
        (tmp_path / name).chmod(0o755)
    (tmp_path / "names.out").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_a_requeued_job_that_waits_again_has_another_run(slurm: Path) -> None:
    (slurm / "sacct.out").write_text(RUN + "\n")
    (slurm / "squeue.out").write_text(line(DELAYED, {0: "1"}) + "\n")
    found = job_run_page(0, 1795300900).runs
    assert [(run.state, run.submitted, run.ended) for run in found] == [
        ("requeued", 1795300797, 1795300845),
        ("pending", 1795300845, None),
    ]


def test_a_job_before_its_begin_time_is_a_waiting_run(slurm: Path) -> None:
    (slurm / "sacct.out").write_text("")
    (slurm / "squeue.out").write_text(line(DELAYED) + "\n")
    assert [(run.job_id, run.submitted, run.started) for run in job_run_page(0, 1795300900).runs] == [
        ("2", 1795300815, None)
    ]


def test_all_runs_are_those_since_the_second_second(slurm: Path) -> None:
    """Of 1970: sacct takes the first for no start time, and lists the runs since the last midnight."""
    (slurm / "sacct").write_text(f'#!/bin/sh\necho "$@" > {slurm}/options')
    (slurm / "squeue.out").write_text("")
    job_run_page(0, 1795300900)
    start = datetime.fromtimestamp(1).strftime("%Y-%m-%dT%H:%M:%S")
    assert f"--starttime={start}" in (slurm / "options").read_text().split()


def test_a_job_that_slurmdbd_does_not_know_yet_is_a_run(slurm: Path) -> None:
    (slurm / "sacct.out").write_text("")
    (slurm / "squeue.out").write_text(line(RUNNING) + "\n")
    assert [(run.job_id, run.state, run.started) for run in job_run_page(0, 1795300900).runs] == [
        ("1", "running", 1795300820)
    ]


def test_a_restart_that_slurmdbd_does_not_know_yet_is_a_run(slurm: Path) -> None:
    (slurm / "sacct.out").write_text(RUN + "\n")
    (slurm / "squeue.out").write_text(line(RUNNING, {6: "1795300890", 10: "1"}) + "\n")
    assert [(run.state, run.started, run.ended) for run in job_run_page(0, 1795300900).runs] == [
        ("requeued", 1795300820, 1795300845),
        ("running", 1795300890, None),
    ]


def test_a_job_that_completes_is_one_run(slurm: Path) -> None:
    (slurm / "sacct.out").write_text(RUN.replace("REQUEUED", "COMPLETED") + "\n")
    (slurm / "squeue.out").write_text(line(RUNNING, {3: "COMPLETING"}) + "\n")
    assert [run.state for run in job_run_page(0, 1795300900).runs] == ["completed"]


def test_without_slurmdbd_present_jobs_are_listed_with_a_problem(slurm: Path) -> None:
    (slurm / "squeue.out").write_text(line(RUNNING) + "\n")
    found: JobRunPage = job_run_page(0, 1795300900)
    assert ([run.job_id for run in found.runs], found.problem.partition(":")[0]) == (
        ["1"],
        "ended jobs are missing",
    )


def test_pages_of_runs_follow_each_other(slurm: Path) -> None:
    (slurm / "sacct.out").write_text("".join(f"{number}|{number}{RUN[3:]}\n" for number in (1, 2, 3)))
    (slurm / "squeue.out").write_text("")
    pages = [job_run_page(0, 1795300900, start, limit=2) for start in (0, 2)]
    assert [([run.job_id for run in page.runs], page.next) for page in pages] == [(["1", "2"], 2), (["3"], None)]


def test_without_slurmctld_the_runs_of_slurmdbd_are_listed_with_a_problem(slurm: Path) -> None:
    (slurm / "sacct.out").write_text(RUN + "\n")
    found: JobRunPage = job_run_page(0, 1795300900)
    assert ([run.job_id for run in found.runs], found.problem.partition(":")[0]) == (
        ["1"],
        "waiting and just started jobs may be missing",
    )


def attack(slurm: Path) -> None:
    """Let the programs print what Slurm's do of names that an attacker chose, also between separators."""
    for name, recorded in {"squeue": "squeue", "sacct": "sacct-runs", "names": "sacct-names"}.items():
        (slurm / f"{name}.out").write_bytes((RECORDED / recorded).read_bytes())
    (slurm / "between.out").write_text(BETWEEN_SEPARATORS)
    script = (slurm / "sacct").read_text()
    between = f'case "$*" in *parsable2*JobName*) cat {slurm}/between.out; exit;; esac\n'
    (slurm / "sacct").write_text(script.replace("case", f"{between}case", 1))


def test_every_present_job_has_its_own_name_in_printable_characters(slurm: Path) -> None:
    attack(slurm)
    assert {job.job_id: job.name for job in active_jobs()[0]} == {
        "1": "train me",
        "2": FORGED,
        "3": r"a\x0bb",
        "4": r"a\u2028b",
        "5": "a\N{REPLACEMENT CHARACTER}b",
        "6": r"\x1b[31mred\x1b[0m",
        "7": r"a\u202eb",
        "8": "é" * 60,
        "9": "a|b",
        "10": r"a\tb",
        "11": r"a\rb",
        "12": r"a\n",
        "13": "x" * 79 + "…",
        "14_[1-35:2%2]": "wrap",
    }


def test_no_name_is_a_present_job_of_another_user(slurm: Path) -> None:
    attack(slurm)
    assert {job.user for job in active_jobs()[0]} == {"nobody"}


def test_every_run_has_its_own_name_in_printable_characters(slurm: Path) -> None:
    attack(slurm)
    assert {run.job_id: run.name for run in job_run_page(0, 1795300900).runs} == {
        "1": "train me",
        "2": FORGED,
        "3": r"a\x0bb",
        "4": "a?b",
        "5": "a?b",
        "6": r"\x1b[31mred\x1b[0m",
        "7": "a?b",
        "8": "é" * 60,
        "9": "a|b",
        "10": r"a\tb",
        "11": r"a\rb",
        "12": r"a\n",
        "13": "x" * 79 + "…",
        "14_1": "wrap",
        "14_[1-35:2%2]": "wrap",
    }


def test_every_run_has_its_own_account_in_printable_characters(slurm: Path) -> None:
    attack(slurm)
    assert {run.job_id: run.account for run in job_run_page(0, 1795300900).runs if run.account} == {
        "1": "ml",
        "2": FORGED.lower(),
        "3": r"a\x0bb",
        "4": "a?b",
        "5": "a?b",
        "6": r"\x1b[31mred\x1b[0m",
        "8": "é" * 60,
        "9": "a|b",
        "12": r"a\n",
        "13": "x" * 79 + "…",
    }


def test_a_recorded_run_has_its_gpus(slurm: Path) -> None:
    attack(slurm)
    assert [(run.cpus, run.gpus) for run in job_run_page(0, 1795300900).runs][:2] == [(1, 2), (1, 0)]


def test_no_name_is_a_run_of_another_user(slurm: Path) -> None:
    attack(slurm)
    assert {run.user for run in job_run_page(0, 1795300900).runs} == {"nobody"}


def test_present_jobs_that_cannot_be_read_are_counted(slurm: Path) -> None:
    (slurm / "squeue.out").write_text(line(RUNNING, {4: "1-2"}) + "\n" + line(DELAYED) + "\n")
    found, unreadable = active_jobs()
    assert ([job.job_id for job in found], unreadable) == (["2"], 1)


def test_runs_that_cannot_be_read_are_counted(slurm: Path) -> None:
    (slurm / "sacct.out").write_text(f"{RUN}\n{RUN}|more\n")
    (slurm / "squeue.out").write_text("")
    found = job_run_page(0, 1795300900)
    assert (len(found.runs), found.problem) == (1, "runs of jobs are missing: 1, which Slurm prints in an unknown form")


def test_rows_of_another_width_are_an_error(slurm: Path) -> None:
    (slurm / "squeue.out").write_text(line(RUNNING)[:-1] + "\n")
    with pytest.raises(SlurmError, match=r"^Slurm's output has no rows of 2501 bytes$"):
        active_jobs()
