"""What goes wrong on AWS, done to machines of a cluster with real slurmctld and slurmd: each job ends, and ends once.

One scenario; a failure names its step. It begins with two clusters in one box that have the same addresses and names of
nodes. What tools say on sick machines are recorded outputs (tests/agent/recorded), shown to them by the box.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from clusters import LONG_THEN_SHORT, QUICK, Cluster, hurt_cluster, left_over, settled, tag

from corral.box import control
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
PATIENT_S = 480.0
ALONE = ("--nodes=1", "--exclusive")
STEPS = 500  # of a tenth of a second: the autoscaler knows of the end of a block within 15 s
PROGRAMS = Path(__file__).parent / "programs"
RECORDED = Path(__file__).parents[1] / "agent/recorded"
# A job that notes when it is asked for a checkpoint, and goes on.
LISTENS = """trap 'date +%s.%N >> /home/asked-$SLURM_JOB_ID' USR1
touch /home/began-$SLURM_JOB_ID
for i in $(seq {}); do sleep 0.2; done"""


def test_jobs_outlive_what_happens_to_machines(tmp_path_factory: pytest.TempPathFactory) -> None:
    with hurt_cluster(tmp_path_factory.mktemp("hurt"), ("left", "right")) as (left, cluster):
        stand_side_by_side(left, cluster)
        fall_sick(cluster)
        boot_sick(cluster)
        bring_many_nodes(cluster)
        lose_machines(cluster)
        lack_capacity(cluster)
        refuse_launches(cluster)
        lose_launched_machines(cluster)
        warn_of_an_end(cluster)
        give_notice(cluster)
        go_down(cluster)


def fault(cluster: Cluster, kind: str, **words: str) -> Any:
    return control.inject_fault(cluster.life.box.dir, kind, **words)


def clear(cluster: Cluster) -> None:
    control.clear_faults(cluster.life.box.dir)


def ended(cluster: Cluster, job: int) -> tuple[tuple[str, str], int]:
    """How a job ended, how often it had started again, and how often it has done its work."""
    return cluster.end(job), len(cluster.results(job))


def stand_side_by_side(left: Cluster, right: Cluster) -> None:
    """Neither cluster knows of the other; then one goes down."""
    with step("each of two clusters runs its own job"):
        jobs = [one.submit("true", "--partition=wide") for one in (left, right)]
        ends = [(one.end(job), one.results(job)) for one, job in zip((left, right), jobs, strict=True)]
        assert ends == [(("COMPLETED", "0"), ["0"])] * 2
    with step("their machines have the same address"):
        assert (len(left.nodes()), [*left.nodes()]) == (1, [*right.nodes()])
    with step("one that goes leaves the other alone"):
        left.life.done("down", left.name, "--with-base")
        job = right.submit("true", "--partition=wide")
        assert (right.end(job), settled(right)) == (("COMPLETED", "0"), [])
        assert set(control.machines(right.life.box.dir)) == {str(right.head()), *right.nodes().values()}


def fall_sick(cluster: Cluster) -> None:
    """Two nodes have run a job; then a GPU of one is lost, and a batch job comes to both."""
    box = Path(cluster.life.box.dir)
    cluster.until(lambda: cluster.on_head("srun", "-N2", "--chdir=/", "hostname"))
    machine = cluster.instance_of("train-1")
    shutil.copytree(RECORDED / "gpu-missing", box / "machines/disks" / machine / "box/health")
    cluster.on_head("srun", "--chdir=/", "--nodelist=train-1", "rm", "-f", "/run/corral/healthy")
    command = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "-N2", "--wrap=srun hostname")
    job = int(cluster.on_head(*command))
    with step("the job of a sick machine is not held and ends elsewhere"):
        assert cluster.end(job, PATIENT_S) == ("COMPLETED", "1")
    with step("the prolog drains the node for its machine"):
        log = cluster.on_head("cat", "/var/log/slurm/slurmctld.log")
        reasons = re.findall(r"node train-1 reason set to: (.*)", log)
        assert reasons[0] == f"corral: {machine}: 7 of 8 GPUs answer: replace the machine"
    with step("the sick machine is ended"):
        cluster.until(lambda: machine not in control.machines(box))


def boot_sick(cluster: Cluster) -> None:
    """A machine lacks a GPU when it boots."""
    machines = Path(cluster.life.box.dir) / "machines"
    shutil.copytree(RECORDED / "gpu-missing", machines / "health")
    cluster.on_head("scontrol", "update", "nodename=train-4", "state=power_up")
    with step("a machine that is sick when it boots reports the reason and powers off"):
        console = cluster.until(lambda: console_with(machines / "consoles", "cannot boot", "powering off"))
        assert "the machine is not fit for jobs: 7 of 8 GPUs answer" in console
        assert "corral: powering off" in console
    shutil.rmtree(machines / "health")


def console_with(consoles: Path, *texts: str) -> str:
    """The console that holds all of these texts; nothing where none does yet."""
    shown = (file.read_text() for file in consoles.iterdir())
    return next((console for console in shown if all(text in console for text in texts)), "")


def bring_many_nodes(cluster: Cluster) -> None:
    """32 cold nodes run one command together."""
    cluster.cool("wide")
    began = len(launches(cluster))
    with step("32 nodes come at once"):
        srun = "srun --partition=wide --nodes=32 --chdir=/ printenv SLURMD_NODENAME 2>&1"
        found = cluster.on_head("timeout", "240", "sh", "-c", srun).split()
        assert sorted(found) == sorted(f"wide-{number}" for number in range(1, 33))
    with step("32 nodes are one launch"):
        assert [one["nodes"] for one in launches(cluster)[began:]] == ["wide-[1-32]"]


def launches(cluster: Cluster) -> list[Any]:
    """The events of launches."""
    return [one for one in cluster.events() if one["event"] == "launched"]


def lose_machines(cluster: Cluster) -> None:
    """Under three jobs a machine is killed, one stands still and one is cut off."""
    kinds = ("kill", "freeze", "network-cut")
    jobs = {kind: cluster.submit(LONG_THEN_SHORT, "--partition=wide", *ALONE) for kind in kinds}
    for kind, job in jobs.items():
        fault(cluster, kind, target=cluster.runs(job))
    with step("a job that loses its machine starts again and ends once"):
        assert {kind: ended(cluster, job) for kind, job in jobs.items()} == dict.fromkeys(
            kinds, (("COMPLETED", "1"), 1)
        )
    clear(cluster)


def lack_capacity(cluster: Cluster) -> None:
    """The first offer has no capacity for a job; then none has any, until the job has been requeued six times."""
    cluster.until(lambda: not offers(cluster, "train"))  # those of sick machines are idle
    fault(cluster, "no-capacity", target="train", market="spot")
    with step("a job takes the second offer when the first has no capacity"):
        job = cluster.submit("true", "--partition=train", "--nodes=2")
        assert ended(cluster, job) == (("COMPLETED", "0"), 1)
    with step("all its nodes come from that offer"):
        assert offers(cluster, "train") == ["train-on-demand-use1-az2"] * 2
    clear(cluster)
    cluster.cool("train")
    fault(cluster, "no-capacity", target="train")
    cluster.restart_autoscaler("--interval", "3", "--backoff", "2")
    job = cluster.submit("true", "--partition=train", "--nodes=2")
    comments: list[str] = []

    def bounced() -> bool:
        held = cluster.job(job)
        comments.append(held.get("AdminComment", ""))
        return int(held.get("Restarts", "0")) >= 6

    cluster.until(bounced)
    clear(cluster)
    with step("a job that no offer has capacity for starts when one has, however often it was requeued"):
        (state, _), results = ended(cluster, job)
        assert (state, results) == ("COMPLETED", 1)
    with step("until then it shows why it waits"):
        why = r"corral: train-spot-use1-az1(, [\w-]+)*: InsufficientInstanceCapacity"
        assert re.fullmatch(why, max(comments, key=len))


def offers(cluster: Cluster, queue: str) -> list[str]:
    """What the machines of a queue were launched from."""
    found = (tag(one, "corral:offer") for one in cluster.machines() if tag(one, "corral:queue") == queue)
    return sorted(found)


def refuse_launches(cluster: Cluster) -> None:
    """One queue is refused for good; another is throttled twice, and its machine shown late."""
    fault(cluster, "refuse", code="VcpuLimitExceeded", call="RunInstances", hits_left="1")
    refused = cluster.submit("true", "--partition=quota", "--nodes=1")
    cluster.until(lambda: cluster.job(refused).get("AdminComment", " ").strip())
    cluster.restart_autoscaler(*QUICK)
    cluster.cool("wide")
    began = len(launches(cluster))
    fault(cluster, "throttle", call="RunInstances", hits_left="2")
    fault(cluster, "delayed-visibility", after="10s", hits_left="1", target="wide")
    with step("a launch that is throttled is made when it is allowed"):
        assert ended(cluster, cluster.submit("true", "--partition=wide", *ALONE)) == (("COMPLETED", "0"), 1)
    with step("a machine that EC2 shows late is launched once"):
        made = [one for one in launches(cluster)[began:] if one["offer"].startswith("wide-")]  # the other may retry
        assert [len(one["instances"]) for one in made] == [1]
    with step("a queue that is refused waits and shows the reason while others go on"):
        held = cluster.job(refused)
        assert (held["JobState"], held["AdminComment"]) == (
            "PENDING",
            "corral: quota-on-demand-use1-az1: VcpuLimitExceeded",
        )
    cluster.on_head("scancel", str(refused))


def lose_launched_machines(cluster: Cluster) -> None:
    """A machine is dead after its launch; another boots for ever."""
    fault(cluster, "fail-after-launch", hits_left="1", target="wide")
    cluster.cool("wide")
    with step("a job whose machine dies after its launch gets another"):
        assert ended(cluster, cluster.submit("true", "--partition=wide", *ALONE)) == (("COMPLETED", "1"), 1)
    set_resume_timeout(cluster, 30)
    cluster.cool("wide")
    fault(cluster, "hang-boot", hits_left="1", target="wide")
    job = cluster.submit("true", "--partition=wide", *ALONE)
    cluster.until(lambda: cluster.job(job)["Restarts"] != "0")
    set_resume_timeout(cluster, 240)  # for the machine that boots, which may take longer on a busy computer
    with step("a job whose machine does not boot gets another"):
        assert ended(cluster, job) == (("COMPLETED", "1"), 1)
    clear(cluster)


def set_resume_timeout(cluster: Cluster, seconds: int) -> None:
    line = f"ResumeTimeout={seconds}"
    cluster.on_head("sh", "-c", f"echo {line} >> /etc/slurm/own.conf; scontrol reconfigure")


def warn_of_an_end(cluster: Cluster) -> None:
    """A job is on a machine that may be taken back; another's capacity block ends."""
    home = cluster.home()
    shutil.copy(PROGRAMS / "steps.py", home)
    hinted = cluster.submit(LISTENS.format(100), "--partition=train", *ALONE)
    python = "--export=ALL,PYTHON=/usr/bin/python3"
    submit = ("sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", "--nodes=1", "--partition=block", python)
    blocked = int(cluster.on_head(*submit, "/opt/corral/jobs/block/jax.sbatch", "/home/steps.py", str(STEPS)))
    cluster.until(lambda: (home / f"began-{hinted}").exists() and (home / "checkpoints/losses-0").exists())
    fault(cluster, "rebalance", target=cluster.job(hinted)["NodeList"])
    before = offers(cluster, "block")
    fault(cluster, "block-end", target="block", after="60s")
    with step("a hint requests one checkpoint and moves no job"):
        assert ended(cluster, hinted) == (("COMPLETED", "0"), 1)
        assert (home / f"asked-{hinted}").read_text().count("\n") == 1
    with step("a job in a block that ends moves to the next offer"):
        assert (before, cluster.end(blocked), offers(cluster, "block")) == (
            ["block-capacity-block-use1-az1-bcdef0"],
            ("COMPLETED", "1"),
            ["block-on-demand-use1-az1"],
        )
    with step("it loses no step and does none twice"):
        value, expected = 1, []
        for number in range(1, STEPS + 1):
            value = value * 31 % 1_000_003
            expected.append(f"{number} {value}")
        assert (home / "checkpoints/losses-0").read_text().splitlines() == expected


def give_notice(cluster: Cluster) -> None:
    """A spot machine is to be taken back."""
    home, job = cluster.home(), cluster.submit(LISTENS.format(600), "--partition=train", *ALONE)
    cluster.until(lambda: (home / f"began-{job}").exists())
    began = time.time()
    fault(cluster, "spot-notice", target=cluster.job(job)["NodeList"], after="120s")
    with step("a notice reaches a job within some seconds"):
        signals = home / f"asked-{job}"
        # The shell creates the file, then `date` writes to it.
        written = cluster.until(lambda: signals.exists() and signals.read_text())
        signalled = float(str(written).split()[0])
        assert signalled - began < 15  # five between two looks, the rest for a busy machine
    cluster.on_head("scancel", str(job))


def go_down(cluster: Cluster) -> None:
    """Nobody wants anything any more; then the cluster is down."""
    with step("idle machines go"):
        cluster.until(lambda: not cluster.nodes(), PATIENT_S)
        assert settled(cluster) == []
    with step("what happened is in the log group for alarms to count"):
        logged = {one["event"] for one in shipped(cluster)}
        assert {"launched", "up", "refused", "notice", "marked-down"} - logged == set()
    cluster.life.done("down", cluster.name, "--with-base")
    with step("down leaves no machine"):
        cluster.until(lambda: not control.machines(cluster.life.box.dir))
    with step("after all of it down leaves nothing but data"):
        assert left_over(cluster) == []


def shipped(cluster: Cluster) -> list[Any]:
    """The events in the cluster's log group."""
    logs = cluster.life.client("logs").get_paginator("filter_log_events")
    pages = logs.paginate(logGroupName=f"/corral/{cluster.name}", logStreamNames=["events"])
    return [json.loads(one["message"]) for page in pages for one in page["events"]]
