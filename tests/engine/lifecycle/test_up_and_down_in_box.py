"""A small environment with the real engine in a box: up, concurrent operations, refusals, down.

tests/life deploys the shipped environments. This is one scenario, since each step continues from the stacks of the one
before.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from boxes import client
from cli_session import CliSession, start_until
from corral.box import client as box_client
from corral.box import control
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]


def test_an_environment_from_its_up_to_its_down(cli: CliSession) -> None:
    first_up(cli)
    up_during_other_operations(cli)
    with machine_in_group(cli) as machine:
        rename_a_queue_with_a_machine(cli, machine)
    damage_the_state(cli)
    lose_the_head(cli)
    rename_the_environment(cli)
    refuse_interrupt_and_complete_down(cli)


def first_up(cli: CliSession) -> None:
    """The first up, after one that is declined."""
    with step("an up that is declined has shown what it would create and creates nothing"):
        declined = cli.answer("n\n", "up", "dev")
        assert declined.returncode == 1, declined.stdout + declined.stderr
        assert [line.split() for line in declined.stdout.splitlines() if " vpc" in line] == [
            ["create", "aws:ec2:Vpc", "vpc"]
        ]
        assert cli.left() == {}
    with step("up shows each resource that it created and changes no file of the project"):
        before = cli.hashes()
        done = cli.run("up", "dev", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        lines = [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("  created")]
        assert ["created", "aws:ec2:Vpc", "vpc"] in lines
        assert len(lines) == 26
        assert cli.hashes() == before


def up_during_other_operations(cli: CliSession) -> None:
    """An up during another, and during a plain `pulumi up`."""
    with step("a concurrent up is refused and names the process"):
        first = cli.start("up", "dev", "--yes")
        assert first.stdout is not None
        first.stdout.readline()
        second = cli.run("up", "dev", "--yes")
        first.communicate()
        assert f"another corral (process {first.pid}" in second.stderr
        assert (first.returncode, second.returncode) == (0, 1)
    with step("an up next to a plain pulumi up is refused and names its process"):
        plain = cli.start_pulumi("cluster", "up", "--yes", "--skip-preview")
        locks = cli.box / "pulumi/.pulumi/locks/organization/corral-cluster/dev"
        while not list(locks.glob("*.json")):
            assert plain.poll() is None, "pulumi ended before it took its lock"
            time.sleep(0.01)
        plain.send_signal(signal.SIGSTOP)
        refused = cli.run("up", "dev", "--yes")
        plain.send_signal(signal.SIGCONT)
        plain.communicate()
        assert f"corral: cluster dev: Pulumi is working on this stack (process {plain.pid} of " in refused.stderr
        assert (refused.returncode, plain.returncode) == (1, 0)


@contextmanager
def machine_in_group(cli: CliSession) -> Iterator[str]:
    """A machine that the queue `train` has launched into its placement group."""
    ec2 = client(box_client.status(cli.box), "ec2")
    (group,) = ec2.describe_placement_groups()["PlacementGroups"]
    tags = [{"Key": "corral:cluster", "Value": "dev"}, {"Key": "corral:queue", "Value": "train"}]
    image = client(box_client.status(cli.box), "ssm").get_parameter(Name="/corral-box/ami")["Parameter"]["Value"]
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


def rename_a_queue_with_a_machine(cli: CliSession, machine: str) -> None:
    """Rename the queue."""
    with step("a placement group with a machine is deleted only with --terminate-instances"):
        cli.replace("stacks/cluster/Pulumi.dev.yaml", "name: train", "name: other")
        queue = cli.run("up", "dev", "--yes")
        shown = cli.run("up", "dev", "--preview")
        ended = cli.run("up", "dev", "--yes", "--terminate-instances")
        cli.replace("stacks/cluster/Pulumi.dev.yaml", "name: other", "name: train")
        assert (queue.returncode, queue.stderr.splitlines()) == (
            4,
            [
                "corral: cluster dev: cannot delete a placement group of train with 1 instance in it:"
                " nothing was changed",
                f"    {machine}  m7i.xlarge  us-east-1b",
                "  wait until they are idle and terminate, or terminate them now:"
                f" corral up dev --box-dir {cli.box} --terminate-instances",
            ],
        )
        assert (shown.returncode, shown.stderr) == (4, queue.stderr)
        assert ended.returncode == 0, ended.stderr
        state = client(box_client.status(cli.box), "ec2").describe_instances(InstanceIds=[machine])["Reservations"][0][
            "Instances"
        ][0]
        assert state["State"]["Name"] == "terminated"


def damage_the_state(cli: CliSession) -> None:
    """Damage the state file."""
    with step("a damaged state is not treated as a stack that is down"):
        for text in ["{}", '{"version": 3, "check']:
            file = cli.box / "pulumi/.pulumi/stacks/corral-cluster/dev.json"
            whole = file.read_text()
            file.write_text(text)
            refused = cli.run("down", "dev", "--yes")
            file.write_text(whole)
            assert (refused.returncode, refused.stderr.splitlines()[:3]) == (
                1,
                [
                    "corral: cluster dev: the state file of a stack is damaged",
                    f"  damaged: {file}",
                    f"  to restore the state before the last operation: cp {file}.bak {file}",
                ],
            )


def lose_the_head(cli: CliSession) -> None:
    """Terminate the head; AWS needs a while for it."""
    with step("a preview and an up while the head is shutting down say so, and up leaves another head"):
        former = terminate_head(cli, "60s")
        shown = cli.run("up", "dev", "--preview")
        done = cli.run("up", "dev", "--yes")
        assert (
            f"cluster dev: the head {former} is shutting down: corral up waits until it is terminated,"
            " and creates another"
        ) in shown.stdout.splitlines()
        assert f"cluster dev: waiting until the former head {former} is terminated" in done.stdout.splitlines()
        assert done.returncode == 0, done.stderr
        assert cli.left()["ec2/instance"] != [former]
        assert len(cli.left()["ec2/instance"]) == 1


def subnets_of_base(cli: CliSession) -> list[str]:
    """The subnets that are the base's and not the cluster's."""
    subnets = client(box_client.status(cli.box), "ec2").describe_subnets()["Subnets"]
    keys = {subnet["SubnetId"]: {tag["Key"] for tag in subnet.get("Tags", ())} for subnet in subnets}
    return [id for id, names in keys.items() if "corral:base" in names and "corral:cluster" not in names]


def terminate_head(cli: CliSession, within: str) -> str:
    """Terminate the head, which is shutting down for this time; its id."""
    control.inject_fault(cli.box, "slow-termination", after=within)
    (head,) = cli.left()["ec2/instance"]
    client(box_client.status(cli.box), "ec2").terminate_instances(InstanceIds=[head])
    control.clear_faults(cli.box)
    return head


def rename_the_environment(cli: CliSession) -> None:
    """Rename the environment to `prod` and back."""
    rename(cli, "dev", "prod")
    with step("up of a renamed environment reports the old one once"):
        out = cli.run("up", "prod", "--preview").stdout.splitlines()
        assert [line.partition(", without")[0] for line in out if "also holds" in line] == [
            "cluster prod: the box also holds 'dev'"
        ]
    with step("the former name is reported with its state"):
        for verb in ("down", "up"):
            done = cli.run(verb, "dev", "--yes")
            assert (done.returncode, "the backend still holds cluster 'dev'" in done.stderr) == (2, True)
    rename(cli, "prod", "dev")


def rename(cli: CliSession, old: str, new: str) -> None:
    """Rename both files."""
    for stack in ("base", "cluster"):
        folder = cli.project / "stacks" / stack
        (folder / f"Pulumi.{old}.yaml").rename(folder / f"Pulumi.{new}.yaml")
    cli.replace(f"stacks/cluster/Pulumi.{new}.yaml", f"base: {old}", f"base: {new}")


def refuse_interrupt_and_complete_down(cli: CliSession) -> None:
    """A refused, an interrupted and a complete down."""
    with step("data is not deleted with another base's name"):
        refused = cli.run("down", "dev", "--delete-data", "prod", "--yes")
        assert (refused.returncode, refused.stderr.splitlines()[0]) == (
            4,
            "corral: --delete-data prod: the base of dev is 'dev'",
        )
    with step("down waits for a head that is shutting down, and Ctrl-C then deletes nothing"):
        terminate_head(cli, "30s")
        process = cli.start("down", "dev", "--yes")
        assert process.stdout is not None
        assert any(line.startswith("cluster dev: waiting until the former head") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        assert (process.returncode, "deleted" in out) == (130, False)
    with step("Ctrl-C while the cluster is deleted leaves the base alone"):
        process = start_until(cli, "down", "deleted", 1, "--with-base")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        assert (process.returncode, "base dev: deleting" in out) == (130, False)
        assert len(subnets_of_base(cli)) == 4
    with step("down leaves nothing, and a second down reports nothing to delete"):
        assert cli.run("down", "dev", "--with-base", "--yes").returncode == 0
        again = cli.run("down", "dev", "--yes")
        assert (again.returncode, again.stdout) == (0, "cluster dev is not up, nothing to delete\n")
        assert cli.left() == {}
