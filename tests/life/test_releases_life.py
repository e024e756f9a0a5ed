"""The life of a cluster with the real daemons of each newer Slurm that Debian has: what `make slurm-matrix` adds.

The machines of the box are Debian roots of that release, its munge, MariaDB and Python as well. The system's own
release runs in the other files. One scenario for each release; a failure names its step.
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest
from clusters import LONG_THEN_SHORT, Cluster, hurt_cluster, settled
from tools.slurm_matrix.roots import slurm_roots

from corral.box import control
from steps import step

pytestmark = [pytest.mark.slurm, pytest.mark.slurm_matrix, pytest.mark.pulumi, pytest.mark.box]
STEPS = 150  # of a tenth of a second; the notice is seen within five seconds
WIDE = ("--partition=wide", "--nodes=1", "--exclusive")


@pytest.mark.parametrize("release", ["24.11", "26.05"])
def test_a_cluster_of_each_release_runs_jobs_through_failures(
    release: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = slurm_roots().get(release)
    assert root, f"there is no root with Slurm {release} - `make slurm-matrix` makes it"
    with hurt_cluster(tmp_path_factory.mktemp("release"), system=root) as (cluster,):
        with step("the machines run the Slurm of their root"):
            assert cluster.on_head("slurmctld", "-V").split()[-1].startswith(f"{release}.")
        run_on_cold_nodes(cluster)
        lose_a_spot_machine(cluster)
        lose_a_machine(cluster)
        lose_slurmctld(cluster)
        stand_idle(cluster)
        with step("down leaves no machine and no data of one"):
            cluster.life.done("down", cluster.name)
            cluster.until(lambda: not control.machines(cluster.life.box.dir))
            held = Path(cluster.life.box.dir) / "machines"
            assert [sorted(path.name for path in (held / kind).iterdir()) for kind in ("disks", "volumes")] == [[], []]


def run_on_cold_nodes(cluster: Cluster) -> None:
    """A job on two nodes that did not exist when it was submitted."""
    job = cluster.submit("srun printenv SLURMD_NODENAME", "--partition=train", "--nodes=2")
    with step("a job on two cold nodes ends once"):
        assert (cluster.end(job), cluster.results(job)) == (("COMPLETED", "0"), ["0"])
    with step("it ran on both"):
        assert sorted((cluster.home() / f"{job}.out").read_text().split()) == ["train-1", "train-2"]
    with step("the accounting knows it"):
        assert cluster.until(lambda: record(cluster, job)) == "1|COMPLETED|2"


def record(cluster: Cluster, job: int) -> str:
    """What sacct knows of a job that has ended."""
    words = ("--allocations", "--noheader", "--parsable2", "--format=JobID,State,NNodes", f"--jobs={job}")
    known = cluster.on_head("sacct", "--allusers", *words)
    return "" if "RUNNING" in known else known


def lose_a_spot_machine(cluster: Cluster) -> None:
    """A training job loses its machine to the spot market, after a notice."""
    home = cluster.home()
    shutil.copy(Path(__file__).parent / "programs/steps.py", home)
    python = "--export=ALL,PYTHON=/usr/bin/python3"
    submit = ("sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", "--nodes=1", python)
    job = int(cluster.on_head(*submit, "/opt/corral/jobs/train/jax.sbatch", "/home/steps.py", str(STEPS)))
    cluster.until(lambda: (home / "checkpoints/losses-0").exists())
    before = cluster.instance_of(node := cluster.job(job)["NodeList"])
    control.inject_fault(cluster.life.box.dir, "spot-notice", target=node, after="100s")
    with step("it runs again on a fresh machine"):
        cluster.until(lambda: cluster.job(job)["Restarts"] == "1" and cluster.runs(job))
        assert cluster.instance_of(cluster.job(job)["NodeList"]) not in ("", before)
        assert cluster.end(job) == ("COMPLETED", "1")
    with step("a job that is warned of its machine's end writes its checkpoint and is requeued"):
        output = (home / f"jax-{job}.out").read_text()
        assert "corral: requeue, the checkpoint is written and a machine is being reclaimed" in output
    with step("no step is lost and none is done twice"):
        value, expected = 1, []
        for number in range(1, STEPS + 1):
            value = value * 31 % 1_000_003
            expected.append(f"{number} {value}")
        assert (home / "checkpoints/losses-0").read_text().splitlines() == expected


def lose_a_machine(cluster: Cluster) -> None:
    """The machine of a job is killed without a word."""
    job = cluster.submit(LONG_THEN_SHORT, *WIDE)
    before = cluster.instance_of(cluster.runs(job))
    control.inject_fault(cluster.life.box.dir, "kill", target=before)
    with step("a job whose machine dies starts again and ends once"):
        assert (cluster.end(job), cluster.results(job)) == (("COMPLETED", "1"), ["1"])


def lose_slurmctld(cluster: Cluster) -> None:
    """slurmctld is killed while a job runs, and the head starts it again by itself."""
    job = cluster.submit("sleep 30", *WIDE)
    cluster.runs(job)
    time.sleep(10)  # what was accepted so long ago is kept: slurmctld saves within five seconds
    cluster.kill_slurmctld()
    with step("a job does not notice that slurmctld died"):
        assert (cluster.end(job), cluster.results(job)) == (("COMPLETED", "0"), ["0"])


def stand_idle(cluster: Cluster) -> None:
    """Nobody wants anything for longer than nodes wait."""
    with step("idle machines go"):
        cluster.until(lambda: not cluster.nodes())
        assert settled(cluster) == []
    with step("slurmdbd complains of nothing that could end it"):
        # Of a small pool it does, as all machines of the box share one memory; and of a slurmctld that was killed.
        lines = re.findall("error: (.*)|fatal: (.*)", cluster.on_head("cat", "/var/log/slurm/slurmdbd.log"))
        assert [line for line in lines if "innodb_snapshot_isolation" in line[0] or line[1]] == []
