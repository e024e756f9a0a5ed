"""What goes wrong on AWS, done to machines of a cluster with real slurmctld and slurmd: each job ends, and ends once.

The stations are fixtures; the claims below each are about what was seen there. Faults that do not meet share a station.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clusters import QUICK, Cluster, hurt_cluster, left_over, settled, tag

from corral.box import control

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
LONG_S = 240.0
ALONE = ("--nodes=1", "--exclusive")
STEPS = 500  # of a tenth of a second: the keeper knows of the end of a block within 15 s
# A job that notes when it is asked for a checkpoint, and goes on.
LISTENS = """trap 'date +%s.%N >> /home/asked-$SLURM_JOB_ID' USR1
touch /home/began-$SLURM_JOB_ID
for i in $(seq {}); do sleep 0.2; done"""


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with hurt_cluster(tmp_path_factory.mktemp("hurt")) as (cluster,):
        yield cluster


def fault(cluster: Cluster, kind: str, **words: str) -> Any:
    return control.make_fault(cluster.life.box.dir, kind, **words)


def clear(cluster: Cluster) -> None:
    control.clear_faults(cluster.life.box.dir)


# --- many nodes at once, and three machines that are lost


@pytest.fixture(scope="module")
def crowd(hurt: Cluster) -> Cluster:
    """32 cold nodes ran one command together."""
    began = time.monotonic()
    command = ("timeout", "240", "sh", "-c", "srun --partition=wide --nodes=32 --chdir=/ printenv SLURMD_NODENAME 2>&1")
    hurt.life.seen["crowd"] = sorted(hurt.on_head(*command).split())
    hurt.life.seen["crowd_s"] = time.monotonic() - began
    hurt.life.seen["launches"] = [one for one in hurt.events() if one["event"] == "launched"]
    return hurt


@pytest.fixture(scope="module")
def lost(crowd: Cluster) -> Cluster:
    """Under three jobs a machine was killed, one stood still and one was cut off."""
    kinds = ("kill", "hang", "partition")
    jobs = {kind: crowd.submit("sleep 60", "--partition=wide", *ALONE) for kind in kinds}
    for kind, job in jobs.items():
        fault(crowd, kind, of=crowd.runs(job))
    crowd.life.seen["lost"] = {kind: (crowd.end(job, LONG_S), len(crowd.results(job))) for kind, job in jobs.items()}
    clear(crowd)
    return crowd


def test_32_nodes_come_at_once(crowd: Cluster) -> None:
    assert crowd.life.seen["crowd"] == sorted(f"wide-{number}" for number in range(1, 33))


def test_32_nodes_are_one_launch(crowd: Cluster) -> None:
    assert [one["nodes"] for one in crowd.life.seen["launches"]] == ["wide-[1-32]"]


@pytest.mark.parametrize("kind", ["kill", "hang", "partition"])
def test_a_job_that_loses_its_machine_starts_again_and_ends_once(lost: Cluster, kind: str) -> None:
    assert lost.life.seen["lost"][kind] == (("COMPLETED", "1"), 1)


# --- offers that have no room, and EC2 that does not do what it is asked


@pytest.fixture(scope="module")
def narrow(hurt: Cluster) -> Cluster:
    """The first offer had no room for a job; then none had any, until the job had been requeued six times."""
    fault(hurt, "no-capacity", of="train", market="spot")
    job = hurt.submit("true", "--partition=train", "--nodes=2")
    hurt.life.seen["second offer"] = hurt.end(job), len(hurt.results(job))
    hurt.life.seen["offers"] = offers(hurt, "train")
    clear(hurt)
    hurt.cool("train")
    fault(hurt, "no-capacity", of="train")
    hurt.restart_keeper("--turn", "3", "--rest", "2")
    job = hurt.submit("true", "--partition=train", "--nodes=2")
    told: list[str] = []

    def bounced() -> bool:
        held = hurt.job(job)
        told.append(held.get("AdminComment", ""))
        return int(held.get("Restarts", "0")) >= 6

    hurt.until(bounced, LONG_S)
    clear(hurt)
    hurt.life.seen["no offer"] = hurt.end(job, LONG_S)[0], len(hurt.results(job))
    hurt.life.seen["told"] = max(told, key=len)
    return hurt


def offers(cluster: Cluster, queue: str) -> list[str]:
    """What the machines of a queue were launched from."""
    found = (tag(one, "corral:offer") for one in cluster.machines() if tag(one, "corral:queue") == queue)
    return sorted(found)


@pytest.fixture(scope="module")
def moody(hurt: Cluster) -> Cluster:
    """Throttled twice; shown late; dead after their launch; refused for good; booting for ever."""
    seen = hurt.life.seen
    fault(hurt, "refuse", code="VcpuLimitExceeded", call="RunInstances", left="1")
    refused = hurt.submit("true", "--partition=quota", "--nodes=1")
    hurt.until(lambda: hurt.job(refused).get("AdminComment", " ").strip())
    hurt.restart_keeper(*QUICK)
    began = hurt.events()[-1]["at"]
    fault(hurt, "throttle", call="RunInstances", left="2")
    fault(hurt, "late", after="10s", left="1", of="wide")
    throttled = hurt.submit("true", "--partition=wide", *ALONE)
    seen["throttled"] = hurt.end(throttled), len(hurt.results(throttled))
    launches = [one for one in hurt.events() if one["event"] == "launched" and one["at"] >= began]
    seen["late"] = [len(one["instances"]) for one in launches]
    fault(hurt, "dies-after-launch", left="1", of="wide")
    hurt.cool("wide")
    dying = hurt.submit("true", "--partition=wide", *ALONE)
    seen["dying"] = hurt.end(dying, LONG_S), len(hurt.results(dying))
    hurt.on_head("sh", "-c", "echo ResumeTimeout=30 >> /etc/slurm/own.conf; scontrol reconfigure")
    hurt.cool("wide")
    fault(hurt, "hang-boot", left="1", of="wide")
    hung = hurt.submit("true", "--partition=wide", *ALONE)
    seen["hung"] = hurt.end(hung, LONG_S), len(hurt.results(hung))
    hurt.on_head("sh", "-c", "echo ResumeTimeout=240 >> /etc/slurm/own.conf; scontrol reconfigure")
    clear(hurt)
    held = hurt.job(refused)
    seen["refused"] = held["JobState"], held["AdminComment"]
    hurt.on_head("scancel", str(refused))
    return hurt


def test_a_job_takes_the_second_offer_when_the_first_has_no_room(narrow: Cluster) -> None:
    assert narrow.life.seen["second offer"] == (("COMPLETED", "0"), 1)


def test_all_its_nodes_come_from_that_offer(narrow: Cluster) -> None:
    assert narrow.life.seen["offers"] == ["train-on-demand-use1-az2"] * 2


def test_a_job_that_no_offer_has_room_for_starts_when_one_has_however_often_it_was_requeued(narrow: Cluster) -> None:
    assert narrow.life.seen["no offer"] == ("COMPLETED", 1)


def test_until_then_it_says_why_it_waits(narrow: Cluster) -> None:
    told = narrow.life.seen["told"]
    assert re.fullmatch(r"corral: train-spot-use1-az1(, [\w-]+)*: InsufficientInstanceCapacity", told)


def test_a_launch_that_is_throttled_is_made_when_it_is_allowed(moody: Cluster) -> None:
    assert moody.life.seen["throttled"] == (("COMPLETED", "0"), 1)


def test_a_machine_that_ec2_shows_late_is_launched_once(moody: Cluster) -> None:
    assert moody.life.seen["late"] == [1]


def test_a_job_whose_machine_dies_after_its_launch_gets_another(moody: Cluster) -> None:
    assert moody.life.seen["dying"] == (("COMPLETED", "1"), 1)


def test_a_job_whose_machine_does_not_boot_gets_another(moody: Cluster) -> None:
    assert moody.life.seen["hung"] == (("COMPLETED", "1"), 1)


def test_a_queue_that_is_refused_waits_and_says_why_while_others_go_on(moody: Cluster) -> None:
    state, why = moody.life.seen["refused"]
    assert (state, why) == ("PENDING", "corral: quota-on-demand-use1-az1: VcpuLimitExceeded")


# --- notices, hints, and the end of a block


@pytest.fixture(scope="module")
def warned(hurt: Cluster) -> Cluster:
    """A job on a machine that may be taken back; then one that is; then one whose capacity block ends."""
    seen, home = hurt.life.seen, hurt.home()
    shutil.copy(Path(__file__).parent / "programs/steps.py", home)
    hinted = hurt.submit(LISTENS.format(100), "--partition=train", *ALONE)
    python = "--export=ALL,PYTHON=/usr/bin/python3"
    submit = ("sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", "--nodes=1", "--partition=block", python)
    blocked = int(hurt.on_head(*submit, "/opt/corral/jobs/block/jax.sbatch", "/home/steps.py", str(STEPS)))
    hurt.until(lambda: (home / f"began-{hinted}").exists() and (home / "checkpoints/losses-0").exists())
    fault(hurt, "rebalance", of=hurt.job(hinted)["NodeList"])
    seen["block's offer"] = offers(hurt, "block")
    fault(hurt, "block-end", of="block", after="60s")
    seen["hinted"] = hurt.end(hinted), len(hurt.results(hinted))
    seen["asked"] = (home / f"asked-{hinted}").read_text().count("\n")
    seen["blocked"] = hurt.end(blocked, LONG_S)
    seen["offer after"] = offers(hurt, "block")
    seen["losses"] = (home / "checkpoints/losses-0").read_text().splitlines()
    noticed = hurt.submit(LISTENS.format(600), "--partition=train", *ALONE)
    hurt.until(lambda: (home / f"began-{noticed}").exists())
    began = time.time()
    fault(hurt, "spot-notice", of=hurt.job(noticed)["NodeList"], after="120s")
    hurt.until(lambda: (home / f"asked-{noticed}").exists())
    seen["signal_s"] = float((home / f"asked-{noticed}").read_text().split()[0]) - began
    hurt.on_head("scancel", str(noticed))
    return hurt


def test_a_hint_asks_for_one_checkpoint_and_moves_no_job(warned: Cluster) -> None:
    assert (warned.life.seen["hinted"], warned.life.seen["asked"]) == ((("COMPLETED", "0"), 1), 1)


def test_a_job_in_a_block_that_ends_moves_to_the_next_offer(warned: Cluster) -> None:
    before, after = "block-capacity-block-use1-az1-bcdef0", "block-on-demand-use1-az1"
    assert (warned.life.seen["block's offer"], warned.life.seen["blocked"], warned.life.seen["offer after"]) == (
        [before],
        ("COMPLETED", "1"),
        [after],
    )


def test_it_loses_no_step_and_does_none_twice(warned: Cluster) -> None:
    value, expected = 1, []
    for step in range(1, STEPS + 1):
        value = value * 31 % 1_000_003
        expected.append(f"{step} {value}")
    assert warned.life.seen["losses"] == expected


def test_a_notice_reaches_a_job_within_some_seconds(warned: Cluster) -> None:
    assert warned.life.seen["signal_s"] < 15  # five between two looks, the rest for a busy machine


# --- afterwards


@pytest.fixture(scope="module")
def ended(warned: Cluster) -> Cluster:
    """All machines have gone, as their nodes were idle; then the cluster is down."""
    warned.until(lambda: not warned.nodes(), LONG_S)
    warned.life.seen["settled"] = settled(warned)
    warned.life.seen["shipped"] = shipped(warned)
    warned.life.done("down", warned.name, "--with-base")
    return warned


def shipped(cluster: Cluster) -> list[Any]:
    """The events in the cluster's log group."""
    logs = cluster.life.client("logs").get_paginator("filter_log_events")
    pages = logs.paginate(logGroupName=f"/corral/{cluster.name}", logStreamNames=["events"])
    return [json.loads(one["message"]) for page in pages for one in page["events"]]


def test_idle_machines_go(ended: Cluster) -> None:
    assert ended.life.seen["settled"] == []


def test_what_happened_is_in_the_log_group_for_alarms_to_count(ended: Cluster) -> None:
    told = {one["event"] for one in ended.life.seen["shipped"]}
    assert {"launched", "up", "refused", "notice", "forgotten"} - told == set()


def test_down_leaves_no_machine(ended: Cluster) -> None:
    assert dict(control.machines(ended.life.box.dir)) == {}


def test_after_all_of_it_down_leaves_nothing_but_data(ended: Cluster) -> None:
    assert left_over(ended) == []
