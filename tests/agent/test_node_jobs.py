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
    assert slurm.read_text() == "--batch --signal=USR1 7 10 12\n"


def test_a_job_that_slurm_refuses_to_requeue_blocks_no_other(slurm: Path) -> None:
    with pytest.raises(SlurmError, match="disabled for job 7"):
        requeue_jobs(["train-1"])
    assert slurm.read_text() == "requeue 7\n8\nrequeue 10\nrequeue 12\n"
