"""A small environment's life with the real engine in a box: up, somebody else at work, refusals, down.

What an up and a down do to the shipped environments: tests/life.

The tests continue from each other's stacks, in the order in which they stand here.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from boxes import client
from corral.box import control
from desks import Desk, begun

pytestmark = [pytest.mark.pulumi, pytest.mark.box]


def test_up_says_each_thing_that_it_made_and_changes_no_file_of_the_project(desk: Desk) -> None:
    before = desk.hashes()
    done = desk.run("up", "dev", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("  created")]
    assert ["created", "aws:ec2:Vpc", "vpc"] in lines
    assert len(lines) == 22
    assert desk.hashes() == before


def test_a_second_up_at_once_is_refused_and_says_who_is_at_work(desk: Desk) -> None:
    first = desk.start("up", "dev", "--yes")
    assert first.stdout is not None
    first.stdout.readline()
    second = desk.run("up", "dev", "--yes")
    first.communicate()
    assert f"another corral (process {first.pid}" in second.stderr
    assert (first.returncode, second.returncode) == (0, 1)


def test_an_up_beside_a_plain_pulumi_up_is_refused_and_names_its_process(desk: Desk) -> None:
    plain = desk.start_pulumi("cluster", "up", "--yes", "--skip-preview")
    locks = desk.box / "pulumi/.pulumi/locks/organization/corral-cluster/dev"
    while not list(locks.glob("*.json")):
        assert plain.poll() is None, "pulumi ended before it took its lock"
        time.sleep(0.01)
    plain.send_signal(signal.SIGSTOP)
    refused = desk.run("up", "dev", "--yes")
    plain.send_signal(signal.SIGCONT)
    plain.communicate()
    assert f"corral: cluster dev: Pulumi is at work on this stack (process {plain.pid} of " in refused.stderr
    assert (refused.returncode, plain.returncode) == (1, 0)


@pytest.fixture
def machine(desk: Desk) -> Iterator[str]:
    """A machine that the queue `train` has launched into its placement group."""
    ec2 = client(control.status(desk.box), "ec2")
    (group,) = ec2.describe_placement_groups()["PlacementGroups"]
    tags = [{"Key": "corral:cluster", "Value": "dev"}, {"Key": "corral:queue", "Value": "train"}]
    image = client(control.status(desk.box), "ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/24")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZoneId="use1-az1")["Subnet"]
    made = ec2.run_instances(
        ImageId=image,
        InstanceType="m7i.xlarge",
        SubnetId=subnet["SubnetId"],
        MinCount=1,
        MaxCount=1,
        Placement={"GroupName": group["GroupName"]},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    yield str(made["Instances"][0]["InstanceId"])
    ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    ec2.delete_vpc(VpcId=vpc)


def test_a_placement_group_stays_while_a_machine_is_in_it_unless_it_may_end(desk: Desk, machine: str) -> None:
    desk.replace("stacks/cluster/Pulumi.dev.yaml", "name: train", "name: other")
    queue = desk.run("up", "dev", "--yes")
    shown = desk.run("up", "dev", "--preview")
    ended = desk.run("up", "dev", "--yes", "--end-machines")
    desk.replace("stacks/cluster/Pulumi.dev.yaml", "name: other", "name: train")
    assert (queue.returncode, queue.stderr.splitlines()) == (
        4,
        [
            "corral: cluster dev: a placement group of train would go while 1 machine is in it: nothing was changed",
            f"    {machine}  m7i.xlarge  us-east-1b",
            "  let their jobs end and the machines go idle, or end them now:"
            f" corral up dev --box-dir {desk.box} --end-machines",
        ],
    )
    assert (shown.returncode, shown.stderr) == (4, queue.stderr)
    assert ended.returncode == 0, ended.stderr
    state = client(control.status(desk.box), "ec2").describe_instances(InstanceIds=[machine])["Reservations"][0][
        "Instances"
    ][0]
    assert state["State"]["Name"] == "terminated"


@pytest.mark.parametrize("text", ["{}", '{"version": 3, "check'])
def test_a_damaged_state_is_never_taken_for_that_of_a_stack_that_is_down(desk: Desk, text: str) -> None:
    file = desk.box / "pulumi/.pulumi/stacks/corral-cluster/dev.json"
    whole = file.read_text()
    file.write_text(text)
    refused = desk.run("down", "dev", "--yes")
    file.write_text(whole)
    assert (refused.returncode, refused.stderr.splitlines()[:3]) == (
        1,
        [
            "corral: cluster dev: the file of a stack's state is damaged",
            f"  damaged: {file}",
            f"  whole, but for the last thing that was done: cp {file}.bak {file}",
        ],
    )


def test_data_is_not_deleted_by_another_name(desk: Desk) -> None:
    refused = desk.run("down", "dev", "--delete-data", "prod", "--yes")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        4,
        "corral: --delete-data prod: the base of dev is 'dev'",
    )


def test_ctrl_c_while_the_cluster_goes_leaves_the_base_alone(desk: Desk) -> None:
    process = begun(desk, "down", "deleted", 1, "--with-base")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()
    assert (process.returncode, "base dev: taking down" in said) == (130, False)
    assert len(desk.left()["ec2/subnet"]) == 4


def test_down_leaves_nothing_and_says_so_when_there_is_nothing(desk: Desk) -> None:
    assert desk.run("down", "dev", "--with-base", "--yes").returncode == 0
    again = desk.run("down", "dev", "--yes")
    assert (again.returncode, again.stdout) == (0, "cluster dev: is not up, nothing to take down\n")
    assert desk.left() == {}
