"""The life of a cluster with the real daemons of each newer Slurm that Debian has: what `make slurm-matrix` adds.

The machines of the box are Debian roots of that release, its munge, MariaDB and Python as well. The system's own
release lives in the other files. The stations are fixtures that follow each other.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import Cluster, hurt_cluster, settled
from tools.slurm_matrix.roots import slurm_roots

from corral.box import control

pytestmark = [pytest.mark.slurm, pytest.mark.slurm_matrix, pytest.mark.pulumi, pytest.mark.box]
LONG_S = 240.0
STEPS = 150  # of a tenth of a second; the notice is seen within five seconds
WIDE = ("--partition=wide", "--nodes=1", "--exclusive")


@pytest.fixture(scope="module", params=["24.11", "26.05"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root = slurm_roots().get(request.param)
    assert root, f"there is no root with Slurm {request.param} - `make slurm-matrix` makes it"
    with hurt_cluster(tmp_path_factory.mktemp("release"), system=root) as (cluster,):
        cluster.life.seen["release"] = request.param
        yield cluster


@pytest.fixture(scope="module")
def worked(cluster: Cluster) -> Cluster:
    """A job on two nodes that did not exist when it was submitted."""
    seen = cluster.life.seen
    seen["slurmctld"] = cluster.on_head("slurmctld", "-V").split()[-1]
    job = cluster.submit("srun printenv SLURMD_NODENAME", "--partition=train", "--nodes=2")
    seen["cold"] = cluster.end(job), cluster.results(job)
    seen["its nodes"] = sorted((cluster.home() / f"{job}.out").read_text().split())
    seen["record"] = cluster.until(lambda: record(cluster, job))
    return cluster


def record(cluster: Cluster, job: int) -> str:
    """What sacct knows of a job that has ended."""
    words = ("--allocations", "--noheader", "--parsable2", "--format=JobID,State,NNodes", f"--jobs={job}")
    told = cluster.on_head("sacct", "--allusers", *words)
    return "" if "RUNNING" in told else told


@pytest.fixture(scope="module")
def warned(worked: Cluster) -> Cluster:
    """A training job lost its machine to the spot market, after a notice."""
    seen, home = worked.life.seen, worked.home()
    shutil.copy(Path(__file__).parent / "programs/steps.py", home)
    options = (
        "--parsable",
        "--chdir=/home",
        "--ntasks-per-node=1",
        "--nodes=1",
        "--export=ALL,PYTHON=/usr/bin/python3",
    )
    program = ("/opt/corral/jobs/train/jax.sbatch", "/home/steps.py", str(STEPS))
    job = int(worked.on_head("sbatch", *options, *program))
    worked.until(lambda: (home / "checkpoints/losses-0").exists())
    before = worked.instance_of(node := worked.job(job)["NodeList"])
    control.give_spot_notice(worked.life.box.dir, node, "100s")
    worked.until(lambda: worked.job(job)["Restarts"] == "1" and worked.runs(job))
    seen["fresh"] = worked.instance_of(worked.job(job)["NodeList"]) not in ("", before)
    seen["warned"] = worked.end(job)
    seen["output"] = (home / f"jax-{job}.out").read_text()
    seen["losses"] = (home / "checkpoints/losses-0").read_text().splitlines()
    return worked


@pytest.fixture(scope="module")
def lost(warned: Cluster) -> Cluster:
    """The machine of a job was killed without a word."""
    job = warned.submit("sleep 20", *WIDE)
    before = warned.instance_of(warned.runs(job))
    control.make_fault(warned.life.box.dir, "kill", of=before)
    warned.life.seen["lost"] = warned.end(job, LONG_S), warned.results(job)
    return warned


@pytest.fixture(scope="module")
def controlled(lost: Cluster) -> Cluster:
    """slurmctld was killed while a job ran, and the head has started it again by itself."""
    job = lost.submit("sleep 30", *WIDE)
    lost.runs(job)
    time.sleep(10)  # what was accepted so long ago is kept: slurmctld saves within five seconds
    lost.kill_slurmctld()
    lost.life.seen["controlled"] = lost.end(job, LONG_S), lost.results(job)
    return lost


@pytest.fixture(scope="module")
def idle(controlled: Cluster) -> Cluster:
    """Nobody wanted anything for longer than nodes wait."""
    controlled.until(lambda: not controlled.nodes(), LONG_S)
    controlled.life.seen["settled"] = settled(controlled)
    controlled.life.seen["slurmdbd"] = controlled.on_head("cat", "/var/log/slurm/slurmdbd.log")
    return controlled


@pytest.fixture(scope="module")
def ended(idle: Cluster) -> Cluster:
    """The cluster is down."""
    idle.life.done("down", idle.name)
    idle.until(lambda: not control.machines(idle.life.box.dir))
    return idle


def test_the_machines_run_the_slurm_of_their_root(worked: Cluster) -> None:
    assert worked.life.seen["slurmctld"].startswith(f"{worked.life.seen['release']}.")


def test_a_job_on_two_cold_nodes_ends_once(worked: Cluster) -> None:
    assert worked.life.seen["cold"] == (("COMPLETED", "0"), ["0"])


def test_it_ran_on_both(worked: Cluster) -> None:
    assert worked.life.seen["its nodes"] == ["train-1", "train-2"]


def test_the_accounting_knows_it(worked: Cluster) -> None:
    assert worked.life.seen["record"] == "1|COMPLETED|2"


def test_a_job_that_is_warned_of_its_machines_end_writes_its_checkpoint_and_is_requeued(warned: Cluster) -> None:
    assert "corral: requeue, the checkpoint is written and a machine is taken away" in warned.life.seen["output"]


def test_it_runs_again_on_a_fresh_machine(warned: Cluster) -> None:
    assert (warned.life.seen["fresh"], warned.life.seen["warned"]) == (True, ("COMPLETED", "1"))


def test_no_step_is_lost_and_none_is_done_twice(warned: Cluster) -> None:
    value, expected = 1, []
    for step in range(1, STEPS + 1):
        value = value * 31 % 1_000_003
        expected.append(f"{step} {value}")
    assert warned.life.seen["losses"] == expected


def test_a_job_whose_machine_dies_starts_again_and_ends_once(lost: Cluster) -> None:
    assert lost.life.seen["lost"] == (("COMPLETED", "1"), ["1"])


def test_a_job_does_not_notice_that_slurmctld_died(controlled: Cluster) -> None:
    assert controlled.life.seen["controlled"] == (("COMPLETED", "0"), ["0"])


def test_idle_machines_go(idle: Cluster) -> None:
    assert idle.life.seen["settled"] == []


def test_slurmdbd_complains_of_nothing_that_could_end_it(idle: Cluster) -> None:
    """Of a small pool it does, as all machines of the box share one memory; and of a slurmctld that was killed."""
    lines = re.findall("error: (.*)|fatal: (.*)", idle.life.seen["slurmdbd"])
    assert [line for line in lines if "innodb_snapshot_isolation" in line[0] or line[1]] == []


def test_down_leaves_no_machine_and_no_data_of_one(ended: Cluster) -> None:
    places = Path(ended.life.box.dir) / "machines"
    assert [sorted(path.name for path in (places / kind).iterdir()) for kind in ("disks", "volumes")] == [[], []]
