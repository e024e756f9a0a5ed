"""The head fails under jobs: its autoscaler at every step, slurmctld, the machine. Nothing is lost, nothing is doubled.

The scenarios share a cluster; each begins where all nodes of `wide` are cold.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import AUTOSCALER, QUICK, RESULT, UP_IN_S, Cluster, hurt_cluster, settled, tag

from corral.box import control
from corral.cli.support.remote import BoxHead, HeadUnreachable, fetch_state
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
# The steps of a resume: query, record the intent, launch, record the launch, name the node, set its address, remove the
# request. Those of a suspend: query, terminate, record, remove the request.
OF_RESUME, OF_SUSPEND = range(1, 8), range(1, 5)
DYING = "home/dying_autoscaler"
SAVED_S = 6  # slurmctld saves what has changed after five seconds at most
PATIENT_S = 600.0
# Longer than it takes until the head is lost.
PATIENT = "SuspendTimeout=120\\nKillWait=60\\n"
# Asks for as many nodes as were idle as soon as there is a head: before its slurmctld has asked nodes what they do.
NEXT = "sbatch --parsable --chdir=/home --partition=wide --nodes=2 --exclusive --wrap=true"
WAITS = f"""until [ -e /home/lost ]; do sleep 0.2; done
until {NEXT} >/home/asked && mv /home/asked /home/next; do sleep 0.1; done
until [ -e /home/go-on ]; do sleep 0.2; done"""
# Its processes are there until they are killed, which is after KillWait.
STUBBORN = "trap '' TERM; touch /home/stubborn; while true; do sleep 0.2; done"
IDLE, ALLOCATED, COMPLETING, COMING, GOING, DRAINED = ("wide-[1-2]", "wide-3", "wide-4", "wide-5", "wide-6", "wide-7")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with hurt_cluster(tmp_path_factory.mktemp("head"), suspend_after="10m") as (cluster,):
        shutil.copy(Path(__file__).parent / "programs/dying_autoscaler.py", cluster.home())
        yield cluster


@pytest.fixture
def cluster(up: Cluster) -> Cluster:
    """The cluster, where no node of `wide` has a machine, with an autoscaler that does not die."""
    if up.pid(DYING) or not up.pid(AUTOSCALER):  # a scenario before this one ended half-way
        up.on_head("pkill", "-9", "-f", DYING)
        up.restart_autoscaler(*QUICK)
    up.cool("wide")
    return up


def on(node: str) -> tuple[str, ...]:
    return ("--partition=wide", f"--nodelist={node}", "--exclusive")


def dying_autoscaler(cluster: Cluster, number: int) -> None:
    """From now on the autoscaler is one that dies before this step of its next answer."""
    cluster.on_head("pkill", "-f", AUTOSCALER)
    cluster.until(lambda: not cluster.pid(AUTOSCALER))
    before = starts(cluster)
    words = f"/usr/bin/python3 /home/dying_autoscaler.py {number} autoscaler --interval 30"
    script = f"export PYTHONPATH=/opt/corral/agent:/opt/corral/library; exec setsid {words}"
    cluster.on_head("sh", "-c", f"({script}) </dev/null >>/var/log/corral/dying.log 2>&1 &")
    cluster.until(lambda: cluster.pid(DYING))
    # Not the last event: it may at once tell what happened while there was none.
    cluster.until(lambda: starts(cluster) > before)


def starts(cluster: Cluster) -> int:
    """How many autoscalers have started."""
    return sum(one["event"] == "autoscaler-started" for one in cluster.events())


def is_dead(cluster: Cluster) -> bool:
    return not cluster.pid(DYING)


def machines_of(cluster: Cluster, node: str) -> int:
    """How many machines were launched for the node and have not ended."""
    return sum(tag(one, "corral:nodes") == node for one in cluster.machines())


def done_on(cluster: Cluster, node: str) -> int:
    """How many results came from a node."""
    file = cluster.home() / "results"
    return [line.split()[-1] for line in file.read_text().splitlines()].count(node) if file.exists() else 0


def test_an_autoscaler_that_dies_at_any_step_is_continued_by_the_next(cluster: Cluster) -> None:
    die_in_resumes(cluster)
    die_in_suspends(cluster)
    with step("nothing is left of autoscalers that died"):
        assert settled(cluster) == []


def die_in_resumes(cluster: Cluster) -> None:
    """One job for each step, each on a cold node of its own."""
    for number in OF_RESUME:
        with step(f"a resume is continued whose autoscaler dies before its step {number}"):
            dying_autoscaler(cluster, number)
            node = f"wide-{number}"
            # srun begins as soon as its node is up; a batch job waits for slurmctld's next look, up to 30 s.
            command = f"srun --partition=wide --nodelist={node} --chdir=/ sh -c '{RESULT}' &"
            cluster.on_head("sh", "-c", f"exec </dev/null >>/var/log/corral/srun.log 2>&1; {command}")
            cluster.until(lambda: is_dead(cluster))
            cluster.start_autoscaler(*QUICK)
            cluster.until(lambda node=node: done_on(cluster, node))
            assert (done_on(cluster, node), machines_of(cluster, node)) == (1, 1)


def die_in_suspends(cluster: Cluster) -> None:
    """One node powered down for each step, each the last that was used."""
    nodes = {number: f"wide-{10 + number}" for number in OF_SUSPEND}
    for job in [cluster.submit("true", *on(node)) for node in nodes.values()]:
        cluster.end(job)
    for number, node in nodes.items():
        with step(f"a suspend is continued whose autoscaler dies before its step {number}"):
            cluster.runs(cluster.submit("sleep 5", *on(node)))  # it may have been idle for too long
            dying_autoscaler(cluster, number)
            cluster.on_head("scontrol", "update", f"nodename={node}", "state=power_down")
            cluster.until(lambda: is_dead(cluster))
            cluster.start_autoscaler(*QUICK)
            cluster.until(lambda node=node: not machines_of(cluster, node))


def test_a_slurmctld_that_dies_or_stands_still_costs_no_job(cluster: Cluster) -> None:
    die_in_a_launch(cluster)
    die_after_a_registration(cluster)
    stand_still(cluster)


def die_in_a_launch(cluster: Cluster) -> None:
    """While a node is launched, and while a job runs; the head starts slurmctld again by itself."""
    control.inject_fault(cluster.life.box.dir, "slow-boot", target="wide", hits_left="1", after="20s")
    launched = cluster.submit("sleep 5", *on("wide-20"))
    time.sleep(10)  # what was accepted so long ago is kept: slurmctld saves within five seconds
    cluster.kill_slurmctld()
    with step("a slurmctld that dies while a node is launched gets the node"):
        cluster.runs(launched)
        machines = machines_of(cluster, "wide-20")
        assert (cluster.end(launched), len(cluster.results(launched)), machines) == (("COMPLETED", "0"), 1, 1)
    running = cluster.submit("sleep 30", *on("wide-20"))
    cluster.runs(running)
    time.sleep(10)
    cluster.kill_slurmctld()
    with step("a job does not notice that slurmctld died"):
        assert (cluster.end(running), len(cluster.results(running))) == (("COMPLETED", "0"), 1)


def die_after_a_registration(cluster: Cluster) -> None:
    """After a node has registered and nothing else has changed."""
    cluster.cool("wide")
    script = "touch /home/began-on-21; until [ -e /home/end-on-21 ]; do sleep 0.2; done"
    running = cluster.submit(script, *on("wide-21"))
    cluster.until(lambda: (cluster.home() / "began-on-21").exists())
    cluster.until(lambda: ups(cluster, "wide-21"))
    time.sleep(6)  # of its job it saves within five seconds that it began
    cluster.kill_slurmctld()
    with step("a slurmctld that starts again knows a node that has registered"):
        assert cluster.node("wide-21")["State"] == "ALLOCATED+CLOUD"
        (cluster.home() / "end-on-21").touch()
        # Otherwise it would take its job away when ResumeTimeout is over.
        assert cluster.end(running) == ("COMPLETED", "0")
    with step("a slurmctld that starts again makes no node up again"):
        assert ups(cluster, "wide-21") == 1


def ups(cluster: Cluster, node: str) -> int:
    """How often this node came up."""
    return sum(one["event"] == "up" and one["nodes"] == node for one in cluster.events())


def stand_still(cluster: Cluster) -> None:
    """slurmctld does not answer; then what `corral status` says is done."""
    time.sleep(6)  # it saves within five seconds that the last job ended; else it would wait minutes for its node
    cluster.on_head("pkill", "-STOP", "slurmctld")
    head = BoxHead(instance_id=cluster.head() or "", box_dir=Path(cluster.life.box.dir))
    with step("a slurmctld that does not answer is reported as such"):
        with pytest.raises(HeadUnreachable) as raised:
            fetch_state(head, 60.0)  # the head gives up after 3 s, and a busy machine is slow to start its agent
        assert str(raised.value).startswith("slurmctld on the head does not answer - run `pkill -9 ")
    with step("the command reported for a silent slurmctld restarts it"):
        cluster.on_head("sh", "-c", str(raised.value).split("`")[1])
        cluster.until(lambda: cluster.on_head("sinfo", "--noheader"))
        restarted = fetch_state(head, 240.0).nodes
        assert sum(group.count for group in restarted if group.queue == "wide") == 32


def test_a_head_that_is_replaced_finds_a_node_in_each_state_and_launches_none_again(cluster: Cluster) -> None:
    """The next head has what the one before it saved.

    Where that is older than what it knew, it may take a node that is free for one that is not, and launch another; or
    take one that comes for one that does not.
    """
    before = launched(cluster)
    jobs = prepare(cluster)
    with step("there is a node in each state"):
        states = {name: set(state.split("+")) - {"CLOUD"} for name, state in cluster.states().items()}
        assert {name: states[name] for name in (f"wide-{number}" for number in range(1, 8))} == {
            "wide-1": {"IDLE"},
            "wide-2": {"IDLE"},
            "wide-3": {"ALLOCATED"},
            "wide-4": {"COMPLETING", "IDLE"},
            "wide-5": {"ALLOCATED", "NOT_RESPONDING", "POWERING_UP"},
            "wide-6": {"IDLE", "POWERING_DOWN"},
            "wide-7": {"DRAIN", "IDLE"},
        }
    with step("each of them had one machine"):
        known = launched(cluster)
        assert len(known.keys() - before.keys()) == 7
    replace_the_head(cluster)
    with step("the next job has the nodes that were idle"):
        next_job = cluster.home() / "next"
        jobs["next"] = int(cluster.until(lambda: next_job.exists() and next_job.read_text()))
        assert cluster.end(jobs["next"], PATIENT_S) == ("COMPLETED", "0")
        assert cluster.job(jobs["next"])["NodeList"] == IDLE
    with step("each job ended and none began again"):
        (cluster.home() / "go-on").touch()
        ends = {name: cluster.end(job, PATIENT_S) for name, job in jobs.items()}
        assert ends == dict.fromkeys(("allocated", "coming", "next"), ("COMPLETED", "0"))
    with step("none of them costs another machine"):
        cluster.until(lambda: "COMPLETING" not in cluster.states()[COMPLETING])
        cluster.until(lambda: cluster.states()[GOING] == "IDLE+CLOUD+POWERED_DOWN")
        assert sorted(launched(cluster).keys() - known.keys()) == []
    with step("what was drained by hand is so still"):
        assert cluster.node(DRAINED)["State"] == "IDLE+CLOUD+DRAIN"


def prepare(cluster: Cluster) -> dict[str, int]:
    """A node in each state, and all of it saved; the jobs that run on."""
    cluster.on_head("sh", "-c", f"printf '{PATIENT}' >> /etc/slurm/own.conf; scontrol reconfigure")
    warm = [cluster.submit("true", *on(node)) for node in (COMPLETING, GOING, DRAINED)]
    warm.append(cluster.submit("true", *on(IDLE), "--nodes=2"))
    jobs = {"allocated": cluster.submit(WAITS, *on(ALLOCATED))}
    for job in warm:
        cluster.end(job)
    cluster.runs(jobs["allocated"])
    control.inject_fault(cluster.life.box.dir, "slow-boot", target=COMING, hits_left="1", after="90s")
    jobs["coming"] = cluster.submit("true", *on(COMING))
    cluster.until(lambda: machines_of(cluster, COMING))
    cluster.on_head("scontrol", "update", f"nodename={DRAINED}", "state=drain", "reason=by hand")
    stubborn = cluster.submit(STUBBORN, *on(COMPLETING))
    cluster.until(lambda: (cluster.home() / "stubborn").exists())
    cluster.on_head("scancel", str(stubborn))
    cluster.on_head("scontrol", "update", f"nodename={GOING}", "state=power_down")
    cluster.until(lambda: "POWERING_DOWN" in cluster.states()[GOING])
    # Last, since another change of nodes saves this one: an end of which no slurmd has anything to tell but an answer.
    output = cluster.on_head("sh", "-c", f"salloc --no-shell --nodes=2 {' '.join(on(IDLE))} 2>&1")
    time.sleep(SAVED_S)
    cluster.on_head("scancel", *re.findall(r"allocation (\d+)", output)[:1])
    time.sleep(SAVED_S)
    return jobs


def replace_the_head(cluster: Cluster) -> None:
    """Another head comes, and a job as soon as it answers."""
    cluster.life.client("ec2").terminate_instances(InstanceIds=[cluster.head()])
    cluster.until(lambda: cluster.head() is None)
    (cluster.home() / "lost").touch()
    cluster.life.done("up", cluster.name)
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)


def launched(cluster: Cluster) -> dict[str, str]:
    """Every instance that was ever launched for nodes, those that have ended too, with what it was launched for."""
    pages = cluster.life.client("ec2").get_paginator("describe_instances").paginate()
    found = (one for page in pages for held in page["Reservations"] for one in held["Instances"])
    return {one["InstanceId"]: tag(one, "corral:nodes") for one in found if tag(one, "corral:nodes")}
