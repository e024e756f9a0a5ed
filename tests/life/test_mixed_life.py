"""The shipped environment `mixed` in a box, from up to down: three kinds of machines in somebody else's VPC.

A deployer runs it, whose policies are for its region.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import boxes
from life import begin, changes, facts, launched
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]
VPC = "vpc-0123456789abcdef0"


def test_mixed_from_its_up_to_the_end_of_its_data(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "box") as box:
        life, ec2 = begin(tmp_path, box, deployer_in="us-west-2"), boxes.client(box, "ec2", "us-west-2")
        with step("a VPC stands for the user's own"):
            line = f"created {VPC} in the box, as a stand-in for your VPC with 3 private subnets"
            assert line in life.corral("up", "mixed", "--box", "--yes").out.splitlines()
        with step("another up of mixed finds nothing to do"):
            again = life.done("up", "mixed")
            assert [changes(again[stack]) for stack in ("base", "cluster")] == [0, 0]
        machines = launched(life, "mixed", "us-west-2")
        with step("each queue of mixed has its own kind of machine"):
            assert {offer: (one["InstanceType"], *facts(one)) for offer, one in machines.items()} == {
                "train-spot-usw2-az2": ("p5en.48xlarge", "spot", None, 17, True),
                "train-spot-usw2-az3": ("p5en.48xlarge", "spot", None, 17, True),
                "train-on-demand-usw2-az2": ("p5en.48xlarge", "on-demand", None, 17, True),
                "train-on-demand-usw2-az3": ("p5en.48xlarge", "on-demand", None, 17, True),
                "eval-on-demand-usw2-az2": ("g6e.12xlarge", "on-demand", None, 2, True),
                "trainium-spot-usw2-az1": ("trn1.32xlarge", "spot", None, 9, True),
            }
        with step("machines stand in the adopted subnets"):
            subnets = {one["SubnetId"] for one in machines.values()}
            assert subnets == {f"subnet-0123456789abcdef{number}" for number in range(3)}
        with step("down leaves the adopted VPC as it was"):
            life.settle_tags()  # a deployer deletes the signing key by its tag
            down = life.done("down", "mixed", "--with-base")
            held = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [VPC]}])["Subnets"]
            interfaces = ec2.describe_network_interfaces()["NetworkInterfaces"]
            assert (len(held), [one["InterfaceType"] for one in interfaces]) == (4, ["nat_gateway"])
        with step("data that is deleted by name goes"):
            kept = {one["kind"]: one["id"] for one in down["retained"]}
            life.done("down", "mixed", "--delete-data", "mixed")
            left = {id for ids in life.inventory().values() for id in ids}
            assert {kept["home file system"], kept["bucket"]} & left == set()
