"""The keeper killed at every step of a resume and of a suspend, and slurmctld killed: nothing is lost or doubled."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import KEEPER, QUICK, Cluster, hurt_cluster, settled

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
LONG_S = 240.0
WIDE = ("--partition=wide", "--nodes=1", "--exclusive")
# What the keeper does for a resume: asks what there is, writes the launch down, launches, writes that down, names the
# node, tells slurmctld its address, removes the note; for a suspend: asks, ends, writes it down, removes the note.
OF_RESUME, OF_SUSPEND = range(1, 8), range(1, 5)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with hurt_cluster(tmp_path_factory.mktemp("kills")) as (cluster,):
        shutil.copy(Path(__file__).parent / "programs/dying_keeper.py", cluster.home())
        yield cluster


def dying_keeper(cluster: Cluster, step: int) -> None:
    """From now on the keeper is one that dies before this step of its next answer."""
    cluster.on_head("pkill", "-f", KEEPER)
    cluster.until(lambda: not cluster.pid(KEEPER))
    words = f"/usr/bin/python3 /home/dying_keeper.py {step} keep --turn 30"
    script = f"export PYTHONPATH=/opt/corral/agent:/opt/corral/library; exec setsid {words}"
    cluster.on_head("sh", "-c", f"({script}) </dev/null >>/var/log/corral/dying.log 2>&1 &")
    cluster.until(lambda: cluster.pid(DYING))
    cluster.until(lambda: cluster.events()[-1]["event"] == "keeper-began")


DYING = "home/dying_keeper"


def is_dead(cluster: Cluster) -> bool:
    return not cluster.pid(DYING)


@pytest.fixture(scope="module")
def resumed(cluster: Cluster) -> Cluster:
    """One job for each step, on a node that was cold."""
    cluster.life.seen["resumed"] = {}
    for step in OF_RESUME:
        cluster.cool("wide")
        cluster.until(lambda: not cluster.nodes())
        dying_keeper(cluster, step)
        job = cluster.submit("true", *WIDE)
        cluster.until(lambda: is_dead(cluster))
        cluster.start_keeper(*QUICK)
        end = cluster.end(job, LONG_S), len(cluster.results(job)), len(cluster.nodes())
        cluster.life.seen["resumed"][step] = end
    return cluster


@pytest.fixture(scope="module")
def suspended(resumed: Cluster) -> Cluster:
    """One node powered down for each step."""
    resumed.life.seen["suspended"] = {}
    for step in OF_SUSPEND:
        resumed.end(resumed.submit("true", *WIDE))
        dying_keeper(resumed, step)
        resumed.on_head("scontrol", "update", "nodename=wide-1", "state=power_down")
        resumed.until(lambda: is_dead(resumed))
        resumed.start_keeper(*QUICK)
        resumed.until(lambda: not resumed.nodes())
        resumed.life.seen["suspended"][step] = settled(resumed)
    return resumed


@pytest.fixture(scope="module")
def controlled(suspended: Cluster) -> Cluster:
    """slurmctld killed while a node is launched, and while a job runs; started again as the head's boot does it."""
    seen = suspended.life.seen
    launched = suspended.submit("true", *WIDE)
    suspended.until(lambda: suspended.nodes())
    suspended.until(lambda: saved(suspended))
    restart_slurmctld(suspended)
    seen["launched"] = suspended.end(launched, LONG_S), len(suspended.results(launched)), len(suspended.nodes())
    running = suspended.submit("sleep 30", *WIDE)
    suspended.runs(running)
    suspended.until(lambda: saved(suspended))
    restart_slurmctld(suspended)
    seen["running"] = suspended.end(running, LONG_S), len(suspended.results(running))
    return suspended


SAVED = "/var/lib/corral/slurmctld/job_state"


def saved(cluster: Cluster) -> bool:
    """Whether slurmctld has written its jobs down since they changed; it does so within five seconds."""
    return bool(cluster.on_head("find", SAVED, "-newermt", "3 seconds ago"))


def restart_slurmctld(cluster: Cluster) -> None:
    cluster.on_head("pkill", "-9", "slurmctld")
    cluster.until(lambda: not cluster.pid("sbin/slurmctld"))
    cluster.on_head("/opt/corral/boot.sh")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"))


@pytest.mark.parametrize("step", OF_RESUME)
def test_a_keeper_that_dies_in_a_resume_is_continued_by_the_next(resumed: Cluster, step: int) -> None:
    """The job ends with its first run, which leaves one result and one machine."""
    assert resumed.life.seen["resumed"][step] == (("COMPLETED", "0"), 1, 1)


@pytest.mark.parametrize("step", OF_SUSPEND)
def test_a_keeper_that_dies_in_a_suspend_is_continued_by_the_next(suspended: Cluster, step: int) -> None:
    assert suspended.life.seen["suspended"][step] == []


def test_a_slurmctld_that_dies_while_a_node_is_launched_gets_the_node(controlled: Cluster) -> None:
    assert controlled.life.seen["launched"] == (("COMPLETED", "0"), 1, 1)


def test_a_job_does_not_notice_that_slurmctld_died(controlled: Cluster) -> None:
    assert controlled.life.seen["running"] == (("COMPLETED", "0"), 1)
