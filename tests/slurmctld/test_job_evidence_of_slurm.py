"""A user's job on a real node records its steps; the agent on the head reads them as that user, from slurmdbd's record.

The launcher is a stand-in, since torch is not installed; the job script, Slurm and the agent's files are the real ones.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller

import slurms
from corral.model.job_evidence import JobEvidencePage
from corral.model.serialization import from_json
from corral.render import agent_bundle
from corral.report.diagnosis.diagnose import diagnose
from corral.report.diagnosis.evidence import joined
from render.plans import cpu, dev

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="a user's job needs root: run the tests as root"),
]
PATIENCE_S = 90
GAMES = 5  # a user of Debian's base system
PLAN = dev(cpu(), slurm_version="22.05")
AGENT = ("/usr/bin/python3", "-I", "/opt/corral/agent/corral/agent/entry_point.py")
# Half of each step is a wait for data; a line covers a hundredth of a second here, not a second.
TRAIN = """
import time
import corral_step
corral_step._RECORD_S = 0.01
print("train-1:1:2 [0] NCCL INFO Using network Socket", flush=True)
def loader():
    for batch in range(60):
        time.sleep(0.02)
        yield batch
with corral_step.StepRecorder() as steps:
    for batch in steps.batches(loader()):
        time.sleep(0.02)
        steps.end_step(tokens=1024, loss=2.5)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A head, and a job of games that has ended there; `work`: the job's directory."""

    controller: Controller
    work: Path
    job: str

    def agent(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the agent as root of the head."""
        return self.controller.run(*AGENT, *arguments)

    def evidence(self) -> JobEvidencePage:
        """What the agent says about the job."""
        return from_json(JobEvidencePage, slurms.must(self.agent("job-evidence", self.job)))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    directory = tmp_path_factory.mktemp("evidence")
    with slurms.running_cluster_with_nodes(PLAN, directory, accounting=True) as controller:
        with tarfile.open(fileobj=io.BytesIO(agent_bundle())) as archive:
            archive.extractall(directory / "opt/corral/agent", filter="data")
        work, programs = directory / "work", directory / "bin"
        work.mkdir()
        os.chown(work, GAMES, 60)
        programs.mkdir()
        (work / "train.py").write_text(TRAIN)
        (programs / "torchrun").write_text("#!/bin/sh\nexec /usr/bin/python3 /mnt/work/train.py\n")
        (programs / "torchrun").chmod(0o755)
        options = ("--parsable", "--chdir=/mnt/work", "--output=/mnt/work/job.out", "--nodes=1", "--time=10")
        environment = "--export=ALL,PATH=/mnt/bin:/usr/bin:/bin"
        script = ("/opt/corral/jobs/cpu/torchrun.sbatch", "train.py")
        user = ("setpriv", f"--reuid={GAMES}", "--regid=60", "--clear-groups")
        job = slurms.must(controller.run(*user, "sbatch", *options, environment, *script)).strip()
        deadline = time.monotonic() + PATIENCE_S
        ended = ("sacct", "--allusers", "-nXP", f"--jobs={job}", "--format=state")
        while slurms.must(controller.run(*ended)).strip() not in ("COMPLETED", "FAILED"):
            assert time.monotonic() < deadline, controller.run("sh", "-c", "squeue; cat /mnt/work/job.out").stdout
            time.sleep(0.5)
        yield Finished(controller=controller, work=work, job=job)


def test_the_job_itself_does_not_notice(finished: Finished) -> None:
    assert "corral: ended with 0" in (finished.work / "job.out").read_text()


def test_slurms_record_of_an_ended_job_is_complete(finished: Finished) -> None:
    job = finished.evidence().job
    shown = (job.user, job.name, job.queue, job.state, job.exit_code, job.nodes, job.runs)
    assert shown == ("games", "torchrun", "cpu", "completed", "0:0", "cpu-1", 1)


def test_its_steps_are_those_of_its_processes(finished: Finished) -> None:
    (rank,) = finished.evidence().steps.ranks
    assert (rank.node, rank.last_step, rank.loss, rank.data_share > 0.3) == ("cpu-1", 60, 2.5, True)


def test_nccls_lines_of_its_output_are_found(finished: Finished) -> None:
    assert finished.evidence().steps.output == ("train-1:1:2 [0] NCCL INFO Using network Socket",)


def test_the_diagnosis_is_that_it_waits_for_data(finished: Finished) -> None:
    assert [one.kind.value for one in diagnose(joined([finished.evidence()])).findings] == ["data-loader"]


def test_the_recorded_files_are_the_users_alone(finished: Finished) -> None:
    directory = finished.work / ".corral/steps" / finished.job
    found = {(path.stat().st_uid, path.stat().st_mode & 0o077) for path in (directory, *directory.glob("rank-*"))}
    assert found == {(GAMES, 0)}


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("999", "Slurm knows no job 999 - `sacct --allusers` lists those of this cluster"),
        ("x;id", "'x;id' is not a job id - expected one such as 17, or 17_3 for a task of an array"),
    ],
)
def test_a_job_that_does_not_exist_is_a_sentence(finished: Finished, job: str, message: str) -> None:
    done = finished.agent("job-evidence", job)
    assert (done.returncode, done.stderr.strip().splitlines()[-1].endswith(f"job-evidence: {message}")) == (1, True)


def test_a_job_that_slurmdbd_has_not_recorded_yet_is_another_sentence(finished: Finished) -> None:
    options = ("--parsable", "--partition=cpu", "--hold", "--wrap=true")
    held = slurms.must(finished.controller.run("sbatch", *options)).strip()
    empty = finished.work.parent / "empty"
    empty.mkdir()
    (empty / "sacct").symlink_to("/bin/true")  # a slurmdbd without the job
    done = finished.controller.run("env", "PATH=/mnt/empty:/usr/bin:/bin", *AGENT, "job-evidence", held)
    message = f"job-evidence: slurmdbd has no record of job {held} yet - try again in a few seconds"
    assert (done.returncode, done.stderr.strip().splitlines()[-1].endswith(message)) == (1, True)


def test_a_directory_that_the_user_replaced_by_a_link_gives_no_file_of_root(finished: Finished) -> None:
    directory = finished.work / ".corral/steps" / finished.job
    (finished.work / "secret").write_text("a:1:2 [0] NCCL WARN root's\n")
    (finished.work / "secret").chmod(0o600)
    before = (directory / "output").read_text()
    (directory / "output").write_text("/mnt/work/secret\n")
    steps = finished.evidence().steps
    (directory / "output").write_text(before)
    assert (steps.output, steps.problem) == ((), "no output: /mnt/work/secret: Permission denied")
