"""The jobs that a node's agent sees, with a squeue that filters by state as Slurm's does."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.node_jobs import NodeJob, Phase, jobs_on, running_jobs
from corral.agent.slurm import SlurmError, request_checkpoints, requeue_jobs

# squeue compares the whole state with the words of --states.
SQUEUE = """#!/bin/sh
for word; do case "$word" in --states=*) states=${word#*=}; esac; done
while read -r job batch state; do
    case ",$states," in *",$(echo "$state" | tr A-Z a-z),"*) echo "$job $batch $state";; esac
done <"$HERE/jobs"
"""
SCONTROL = """#!/bin/sh
if [ "$1" = requeue ]; then
    echo "$*" >>"$HERE/calls"
    if [ "$2" = 7 ]; then echo "Requested operation is presently disabled for job 7" >&2; exit 1; fi
fi
echo "trap save USR1"
"""
SCANCEL = """#!/bin/sh
echo "$*" >>"$HERE/calls"
"""
JOBS = """6 1 PENDING
12 1 RUNNING
7 1 STOPPED
8 0 CONFIGURING
9 1 COMPLETING
10 1 SUSPENDED
11 1 COMPLETED
"""
SEEN = (
    NodeJob(job_id="7", batch=True, phase=Phase.RUNNING),
    NodeJob(job_id="8", batch=False, phase=Phase.STARTING),
    NodeJob(job_id="9", batch=True, phase=Phase.ENDING),
    NodeJob(job_id="10", batch=True, phase=Phase.RUNNING),
    NodeJob(job_id="12", batch=True, phase=Phase.RUNNING),
)


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Slurm with a job of each state. Where signals are written down."""
    for name, script in {"squeue": SQUEUE, "scontrol": SCONTROL, "scancel": SCANCEL}.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "jobs").write_text(JOBS)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    return tmp_path / "calls"


def test_a_node_has_every_job_that_has_nodes() -> None:
    assert jobs_on("train-1") == SEEN


def test_a_cluster_has_the_same() -> None:
    assert running_jobs() == SEEN


def test_ending_and_starting_jobs_are_not_signalled(slurm: Path) -> None:
    request_checkpoints(["train-1"])
    assert slurm.read_text() == "".join(f"--batch --signal=USR1 {job}\n" for job in (7, 10, 12))


def test_a_script_that_cannot_be_read_keeps_no_other_job_from_its_signal(slurm: Path, tmp_path: Path) -> None:
    refusal = '[ "$3" != 7 ] || { echo "Invalid job id specified" >&2; exit 1; }\n'
    (tmp_path / "scontrol").write_text(SCONTROL.replace('echo "trap', f'{refusal}echo "trap'))
    request_checkpoints(["train-1"])
    assert slurm.read_text() == "--batch --signal=USR1 10\n--batch --signal=USR1 12\n"


def test_a_script_that_is_not_utf_8_is_signalled(slurm: Path, tmp_path: Path) -> None:
    (tmp_path / "scontrol").write_text("#!/bin/sh\nprintf 'caf\\351\\ntrap save USR1\\n'\n")
    request_checkpoints(["train-1"])
    assert slurm.read_text().splitlines()[0] == "--batch --signal=USR1 7"


def test_a_job_that_slurm_refuses_to_requeue_blocks_no_other(slurm: Path) -> None:
    with pytest.raises(SlurmError, match="disabled for job 7"):
        requeue_jobs(["train-1"])
    assert slurm.read_text() == "requeue 7\n8\nrequeue 10\nrequeue 12\n"
