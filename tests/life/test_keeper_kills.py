"""The keeper killed at every step of a resume and of a suspend, and slurmctld killed: nothing is lost or doubled."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import KEEPER, QUICK, RESULT, Cluster, hurt_cluster, settled, tag

from corral.box import control
from corral.cli.on_head import BoxHead, Unreachable, state_of
from corral.cli.status import ANSWERS_WITHIN_S

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
LONG_S = 240.0
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


def on(node: str) -> tuple[str, ...]:
    return ("--partition=wide", f"--nodelist={node}", "--exclusive")


def machines_of(cluster: Cluster, node: str) -> int:
    """How many machines were launched for the node and have not ended."""
    return sum(tag(one, "corral:nodes") == node for one in cluster.machines())


@pytest.fixture(scope="module")
def resumed(cluster: Cluster) -> Cluster:
    """One job for each step, each on a cold node of its own."""
    cluster.life.seen["resumed"] = {}
    for step in OF_RESUME:
        dying_keeper(cluster, step)
        node = f"wide-{step}"
        # srun begins as soon as its node is up; a batch job waits for slurmctld's next look, up to 30 s.
        command = f"srun --partition=wide --nodelist={node} --chdir=/ sh -c '{RESULT}' &"
        cluster.on_head("sh", "-c", f"exec </dev/null >>/var/log/corral/srun.log 2>&1; {command}")
        cluster.until(lambda: is_dead(cluster))
        cluster.start_keeper(*QUICK)
        cluster.until(lambda node=node: done_on(cluster, node))
        cluster.life.seen["resumed"][step] = done_on(cluster, node), machines_of(cluster, node)
    return cluster


def done_on(cluster: Cluster, node: str) -> int:
    """How many results came from a node."""
    file = cluster.home() / "results"
    return [line.split()[-1] for line in file.read_text().splitlines()].count(node) if file.exists() else 0


@pytest.fixture(scope="module")
def suspended(resumed: Cluster) -> Cluster:
    """One node powered down for each step, each the last that was used."""
    resumed.life.seen["suspended"] = {}
    nodes = {step: f"wide-{10 + step}" for step in OF_SUSPEND}
    for job in [resumed.submit("true", *on(node)) for node in nodes.values()]:
        resumed.end(job)
    for step, node in nodes.items():
        resumed.runs(resumed.submit("sleep 5", *on(node)))  # it may have been idle for too long
        dying_keeper(resumed, step)
        resumed.on_head("scontrol", "update", f"nodename={node}", "state=power_down")
        resumed.until(lambda: is_dead(resumed))
        resumed.start_keeper(*QUICK)
        resumed.until(lambda node=node: not machines_of(resumed, node))
        resumed.life.seen["suspended"][step] = node
    resumed.life.seen["settled"] = settled(resumed)
    return resumed


@pytest.fixture(scope="module")
def controlled(suspended: Cluster) -> Cluster:
    """slurmctld killed while a node is launched, and while a job runs; the head starts it again by itself."""
    seen = suspended.life.seen
    control.make_fault(suspended.life.box.dir, "slow-boot", of="wide", left="1", after="20s")
    launched = suspended.submit("sleep 5", *on("wide-20"))
    time.sleep(10)  # what was accepted so long ago is kept: slurmctld saves within five seconds
    suspended.kill_slurmctld()
    suspended.runs(launched)
    machines = machines_of(suspended, "wide-20")
    seen["launched"] = suspended.end(launched, LONG_S), len(suspended.results(launched)), machines
    running = suspended.submit("sleep 30", *on("wide-20"))
    suspended.runs(running)
    time.sleep(10)
    suspended.kill_slurmctld()
    seen["running"] = suspended.end(running, LONG_S), len(suspended.results(running))
    return suspended


@pytest.fixture(scope="module")
def registered(cluster: Cluster) -> Cluster:
    """slurmctld killed after a node has registered and nothing else has changed."""
    cluster.cool("wide")
    running = cluster.submit("touch /home/began-on-21; sleep 20", *on("wide-21"))
    cluster.until(lambda: (cluster.home() / "began-on-21").exists())
    cluster.until(lambda: any(one["event"] == "up" and one["nodes"] == "wide-21" for one in cluster.events()))
    time.sleep(6)  # of its job it saves within five seconds that it began
    cluster.kill_slurmctld()
    cluster.life.seen["registered"] = cluster.node("wide-21")["State"]
    cluster.life.seen["its job"] = cluster.end(running, LONG_S)
    cluster.life.seen["ups"] = sum(one["event"] == "up" and one["nodes"] == "wide-21" for one in cluster.events())
    return cluster


@pytest.fixture(scope="module")
def silent(registered: Cluster) -> Cluster:
    """slurmctld stands still; then what `corral status` says is done."""
    registered.on_head("pkill", "-STOP", "slurmctld")
    head = BoxHead(instance_id=registered.head() or "", place=Path(registered.life.box.dir))
    with pytest.raises(Unreachable) as said:
        state_of(head, ANSWERS_WITHIN_S)
    registered.life.seen["silent"] = str(said.value)
    registered.on_head("sh", "-c", str(said.value).split("`")[1])
    registered.until(lambda: registered.on_head("sinfo", "--noheader"))
    registered.life.seen["mended"] = state_of(head, ANSWERS_WITHIN_S).nodes
    return registered


@pytest.mark.parametrize("step", OF_RESUME)
def test_a_keeper_that_dies_in_a_resume_is_continued_by_the_next(resumed: Cluster, step: int) -> None:
    """One machine, and one result."""
    assert resumed.life.seen["resumed"][step] == (1, 1)


@pytest.mark.parametrize("step", OF_SUSPEND)
def test_a_keeper_that_dies_in_a_suspend_is_continued_by_the_next(suspended: Cluster, step: int) -> None:
    """The machine ends, or the station would not."""
    assert suspended.life.seen["suspended"][step] == f"wide-{10 + step}"


def test_nothing_is_left_of_keepers_that_died(suspended: Cluster) -> None:
    assert suspended.life.seen["settled"] == []


def test_a_slurmctld_that_dies_while_a_node_is_launched_gets_the_node(controlled: Cluster) -> None:
    assert controlled.life.seen["launched"] == (("COMPLETED", "0"), 1, 1)


def test_a_job_does_not_notice_that_slurmctld_died(controlled: Cluster) -> None:
    assert controlled.life.seen["running"] == (("COMPLETED", "0"), 1)


def test_a_slurmctld_that_starts_again_knows_a_node_that_has_registered(registered: Cluster) -> None:
    """Else it would take its job away when ResumeTimeout is over."""
    assert (registered.life.seen["registered"], registered.life.seen["its job"]) == (
        "ALLOCATED+CLOUD",
        ("COMPLETED", "0"),
    )


def test_a_slurmctld_that_starts_again_makes_no_node_up_again(registered: Cluster) -> None:
    assert registered.life.seen["ups"] == 1


def test_a_slurmctld_that_does_not_answer_is_told_as_such(silent: Cluster) -> None:
    assert silent.life.seen["silent"].startswith("slurmctld on the head does not answer - on the head `pkill -9 ")


def test_what_is_told_of_a_silent_slurmctld_mends_it(silent: Cluster) -> None:
    assert sum(group.count for group in silent.life.seen["mended"] if group.queue == "wide") == 32
