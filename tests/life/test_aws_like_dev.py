"""A life of `dev` in an aws-like box, as a deployer: what `up`, the agent and `down` wait for and may do.

AWS's times are divided by twenty. One scenario, from the first up to a down that leaves nothing behind; a failure names
its step.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from clusters import LONG_THEN_SHORT, UP_IN_S, Cluster, left_over, settled

import boxes
from corral.box import account, client, control
from corral.box.api.fsx_groups import CLOSED
from corral.box.client import BoxStatus
from corral.box.vpc.capabilities import probe_host
from life import begin, changes
from steps import step

pytestmark = [pytest.mark.long, pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
SPEED = 20


def test_dev_in_an_aws_like_box(tmp_path: Path) -> None:
    assert probe_host().users, probe_host().problem
    with boxes.running_box(tmp_path / "box", machines=True, speed=SPEED) as box:
        prepare_account(box)
        cluster = Cluster(life=begin(tmp_path, box, deployer_in=account.REGION), name="dev")
        come_up(cluster)
        run_on_a_cold_node(cluster)
        lose_a_node(cluster)
        go_down(cluster)


def prepare_account(box: BoxStatus) -> None:
    """What an administrator does once: among others, the documents by which a deployer reaches a head."""
    command = [sys.executable, "-m", "corral.cli", "bootstrap", "--box", "--yes"]
    subprocess.run(command, env={**os.environ, **client.environment(box.dir)}, check=True, stdout=subprocess.DEVNULL)


def come_up(cluster: Cluster) -> None:
    """The first up, and one that finds nothing to do."""
    late = {"code": "InvalidNetworkSettings", "message": CLOSED.format(port=988), "hits_left": "1"}
    control.inject_fault(cluster.life.box.dir, "refuse", call="fsx:CreateFileSystem", **late)
    first = cluster.life.done("up", "dev")
    with step("up creates base and cluster"):
        assert [first[stack]["created"] for stack in ("base", "cluster")] == [33, 62]
    with step("up continues by itself when FSx does not see the rules of its group yet"):
        assert control.faults(cluster.life.box.dir) == []
    with step("the head runs slurmctld with the cluster's nodes"):
        nodes = cluster.until(lambda: cluster.on_head("sinfo", "--noheader", "--format=%R %D %t"), UP_IN_S)
        assert nodes == "train 4 idle~"
    with step("a second up finds nothing to do"):
        second = cluster.life.done("up", "dev")
        assert [changes(second[stack]) for stack in ("base", "cluster")] == [0, 0]


def run_on_a_cold_node(cluster: Cluster) -> None:
    """A job whose node does not exist yet; EC2 finds its instance late."""
    with step("a job on a cold node ends"):
        job = cluster.submit("sleep 1", "--nodes=1")
        assert cluster.end(job) == ("COMPLETED", "0")


def lose_a_node(cluster: Cluster) -> None:
    """The instance of a running job's node is terminated; it is cleaned for long."""
    job = cluster.submit(LONG_THEN_SHORT, "--nodes=1", "--requeue")
    node = cluster.runs(job)
    lost = cluster.instance_of(node)
    cluster.life.client("ec2").terminate_instances(InstanceIds=[lost])
    with step("its job runs again and ends"):
        assert cluster.end(job) == ("COMPLETED", "1")
    with step("each node has its own machine"):
        assert settled(cluster) == []


def go_down(cluster: Cluster) -> None:
    """The cluster and its base, whose tags AWS still lists."""
    with step("down leaves what holds data alone"):
        cluster.life.done("down", "dev", "--with-base")
        assert left_over(cluster) == []
    with step("the tagging API still lists the deleted subnets"):
        wanted = {"ResourceTypeFilters": ["ec2:subnet"]}
        listed = cluster.life.client("resourcegroupstaggingapi").get_resources(**wanted)["ResourceTagMappingList"]
        assert len(listed) == 3
