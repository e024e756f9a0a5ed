"""The jobs on a node, found among real processes, and what their users may and may not make of that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.waiting import until
from corral.agent.job_evidence.user_reader import JobReadError, read_recent_as_user
from corral.agent.metrics.job_steps import JobSteps, NodeJob, node_jobs, read_steps
from corral.model.job_evidence import RankSteps, StepPage

ADA, EVE = 65534, 1  # users that every machine has
ROOTS = 20417  # a group that root alone is in
# What slurmstepd does: a process of root's with this title, and processes of the job's user below it.
STEPD = """
import json, os, subprocess, sys, time
uid, variables, programs = int(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
for number in range(programs):
    own = {name: value.replace("%", str(number)) for name, value in variables.items()}
    user = {"user": uid, "group": uid, "extra_groups": ()} if os.geteuid() == 0 else {}
    subprocess.Popen(["/bin/sleep", "600"], env=own, **user)
print("started", flush=True)
sys.stdin.read()
"""


@contextmanager
def step(
    job: str, variables: Mapping[str, str], *, uid: int = ADA, programs: int = 1, stepd_uid: int = 0
) -> Iterator[None]:
    """A step of a job with processes of this user; in variables, % is the number of the process."""
    command = [f"slurmstepd: [{job}]", "-c", STEPD, str(uid), json.dumps(variables), str(programs)]
    process = subprocess.Popen(
        command,
        executable="/usr/bin/python3",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        user=stepd_uid,
        start_new_session=True,
    )
    assert process.stdout and process.stdin
    try:
        assert process.stdout.readline() == b"started\n"
        yield
    finally:
        os.killpg(process.pid, 9)
        process.wait(30)
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory of ada's, which other users may enter."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        own = Path(made) / "steps"
        own.mkdir(mode=0o700)
        os.chown(own, ADA, ADA)
        yield own


@pytest.fixture
def system_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of machines, which every user may run."""
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")


def write_steps(directory: Path, rank: int, node: str = "train-1", uid: int = ADA) -> None:
    """What `corral_step` leaves."""
    header = {"corral_step": 1, "at": 1.0, "rank": rank, "size": 2, "node": node, "restarts": 0, "variables": {}}
    line = {"at": time.time(), "step": 9, "steps": 1, "seconds": 2.0, "data_s": 0.2, "checkpoint_s": 0.0, "tokens": 10}
    file = directory / f"rank-{rank:05}.jsonl"
    file.write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    os.chown(file, uid, uid)


def test_a_job_is_found_by_its_step_with_the_ranks_of_its_processes(directory: Path) -> None:
    with step("17.0", {"CORRAL_STEP_DIR": str(directory), "SLURM_PROCID": "%"}, programs=2):
        assert node_jobs() == (NodeJob(job_id="17", uid=ADA, directory=directory, ranks=(0, 1)),)


def test_a_job_names_its_run_in_printable_and_bounded_words(directory: Path) -> None:
    run = "llama\n" + "x" * 100
    with step("17.0", {"CORRAL_STEP_DIR": str(directory), "CORRAL_RUN": run}):
        assert [(len(job.run), job.run.startswith("llama"), "\n" in job.run) for job in node_jobs()] == [
            (64, True, False)
        ]


def test_torchruns_rank_comes_before_slurms(directory: Path) -> None:
    variables = {"CORRAL_STEP_DIR": str(directory), "SLURM_PROCID": "1", "RANK": "8"}
    with step("17.0", variables):
        assert [job.ranks for job in node_jobs()] == [(8,)]


def test_a_job_that_records_nothing_is_none(directory: Path) -> None:
    with step("17.0", {"SLURM_PROCID": "0"}):
        assert node_jobs() == ()


def test_a_user_who_names_a_process_like_a_step_has_no_job_by_it(directory: Path) -> None:
    """Else somebody's numbers would become those of another's job."""
    with step("99.0", {"CORRAL_STEP_DIR": str(directory)}, uid=EVE, stepd_uid=EVE):
        assert node_jobs() == ()


def test_a_step_within_a_step_is_of_the_job_that_slurm_started(directory: Path) -> None:
    """A user of job 17 cannot have a process below another job's slurmstepd."""
    with step("17.0", {"CORRAL_STEP_DIR": str(directory), "SLURM_JOB_ID": "99"}):
        assert [job.job_id for job in node_jobs()] == ["17"]


def test_a_process_with_roots_rights_is_read_by_nobody(directory: Path) -> None:
    """sudo and the like run with an environment of the user who started them."""
    with step("17.0", {"CORRAL_STEP_DIR": str(directory)}, uid=0):
        assert node_jobs() == ()


def test_the_steps_are_read_as_the_jobs_user(directory: Path, system_python: None) -> None:
    write_steps(directory, 0)
    page = read_recent_as_user(ADA, directory, [0])
    assert [(rank.rank, rank.step_s) for rank in page.ranks] == [(0, 2.0)]


def test_a_user_reads_no_steps_of_another(directory: Path, system_python: None) -> None:
    write_steps(directory, 0)
    assert read_recent_as_user(EVE, directory, [0]).ranks == ()


def test_the_reader_of_steps_has_no_group_of_roots(directory: Path, system_python: None) -> None:
    write_steps(directory, 0)
    held = os.getgroups()
    os.chown(directory.parent, 0, ROOTS)
    directory.parent.chmod(0o750)
    os.setgroups([*held, ROOTS])
    try:
        page = read_recent_as_user(ADA, directory, [0])
    finally:
        os.setgroups(held)
    assert page.ranks == ()


def test_a_file_of_another_in_an_own_directory_is_none(directory: Path, system_python: None) -> None:
    write_steps(directory, 0, uid=EVE)
    (directory / "rank-00000.jsonl").chmod(0o644)
    assert read_recent_as_user(ADA, directory, [0]).ranks == ()


def test_a_rank_of_another_node_is_left_out(directory: Path, system_python: None) -> None:
    write_steps(directory, 0, node="train-1")
    write_steps(directory, 1, node="train-2")
    with step("17.0", {"CORRAL_STEP_DIR": str(directory), "SLURM_PROCID": "%"}, programs=2):
        found = read_steps("train-2", read_recent_as_user)
    assert [(job.job_id, [rank.rank for rank in job.ranks]) for job in found] == [("17", [1])]


def answering(*ranks: int) -> StepPage:
    steps = tuple(RankSteps(rank=rank, node="train-1", size=2, restarts=0, steps=1) for rank in ranks)
    return StepPage(ranks=steps, next=None, variables={})


def test_a_job_that_cannot_be_read_hides_no_other(directory: Path) -> None:
    def read(uid: int, _: Path, ranks: Sequence[int]) -> StepPage:
        if uid == EVE:
            raise JobReadError("its process was killed")
        return answering(*ranks)

    variables = {"CORRAL_STEP_DIR": str(directory), "RANK": "3"}
    with step("17.0", variables, uid=EVE), step("18.batch", variables):
        found = read_steps("train-1", read)
    assert found == (JobSteps(job_id="18", user="nobody", ranks=answering(3).ranks),)


def reader_that_prints(page: StepPage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A reader that its user has replaced."""
    from corral.agent import entry_point
    from corral.model.serialization import to_line

    program = tmp_path / "entry_point.py"
    program.write_text(f"print({to_line(page)!r}, end='')")
    monkeypatch.setattr(entry_point, "__file__", str(program))


@pytest.mark.parametrize("ranks", [pytest.param((4,), id="another"), pytest.param((0, 0), id="one twice")])
def test_a_user_answers_only_about_the_ranks_of_the_job(
    ranks: Sequence[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same series twice would make Prometheus refuse the node's others."""
    reader_that_prints(answering(*ranks), monkeypatch, tmp_path)
    with pytest.raises(JobReadError, match="other processes"):
        read_recent_as_user(os.geteuid(), tmp_path, [0])


def test_a_job_that_ends_is_gone(directory: Path) -> None:
    with step("17.0", {"CORRAL_STEP_DIR": str(directory)}):
        pass
    until(lambda: node_jobs() == ())
