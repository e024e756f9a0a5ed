"""A job whose script a power cut or a full disk has emptied, in a real slurmctld of each release that is installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller
from tools.slurm_matrix.roots import slurm_roots

import slurms
from render.plans import cpu, dev

pytestmark = [pytest.mark.slurm, pytest.mark.long]
PATIENCE_S = 60
RESTORE = "/opt/corral/bin/restore-scripts"
ROOTS = slurm_roots()


@pytest.fixture(params=ROOTS)
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Controller]:
    plan = dev(cpu(), slurm_version=request.param)
    with slurms.running_cluster_with_nodes(plan, tmp_path, ROOTS[request.param]) as controller:
        yield controller


def submit(cluster: Controller, *options: str) -> str:
    words = ("--partition=cpu", "--time=5", "--output=/mnt/out-%j", "--chdir=/", "--wrap=echo started", *options)
    return slurms.must(cluster.run("sbatch", "--parsable", *words)).strip()


def lose_script(cluster: Controller, job: str) -> None:
    """Empty what slurmctld has of a job, as ext4 leaves files that were not written before a power cut."""
    (directory,) = (cluster.directory / "var/lib/corral/slurmctld").glob(f"hash.*/job.{job}")
    for file in directory.iterdir():
        file.write_bytes(b"")


def until(cluster: Controller, text: str, *files: Path) -> str:
    """The text of these files, once it contains this."""
    deadline = time.monotonic() + PATIENCE_S
    while text not in (found := "".join(file.read_text() for file in files if file.exists())):
        assert time.monotonic() < deadline, cluster.log()
        time.sleep(0.1)
    return found


def test_slurmctld_ends_over_it(cluster: Controller) -> None:
    job = submit(cluster, "--hold")
    lose_script(cluster, job)
    slurms.must(cluster.run("scontrol", "release", job))
    until(
        cluster,
        f"fatal: _build_launch_job_msg: Unable to load job batch script for JobId={job}",
        cluster.directory / "slurmctld.out",
    )


def test_such_a_job_fails_with_the_reason_and_others_run(cluster: Controller) -> None:
    lost, held = submit(cluster, "--hold"), submit(cluster, "--hold")
    lose_script(cluster, lost)
    slurms.must(cluster.run(RESTORE))
    slurms.must(cluster.run("scontrol", "release", f"{lost},{held}"))
    out = [cluster.directory / f"out-{job}" for job in (lost, held)]
    assert until(cluster, "again", out[0]) == (
        "corral: a full disk or a power cut took the script of this job - submit it again\n"
    )
    assert until(cluster, "started", out[1]) == "started\n"
    until(cluster, f"JobId={lost} WEXITSTATUS 1", cluster.directory / "slurmctld.out")


def test_nothing_else_is_touched(cluster: Controller) -> None:
    submit(cluster, "--hold")
    state = cluster.directory / "var/lib/corral/slurmctld"
    before = {file: file.read_bytes() for file in state.glob("hash.*/job.*/*")}
    assert (cluster.run(RESTORE).stderr, {file: file.read_bytes() for file in before}) == ("", before)
