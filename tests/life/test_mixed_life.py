"""The life of the shipped environment `mixed` in a box: three kinds of machines in somebody else's VPC.

The stations are fixtures that follow each other; the claims below each are about what was seen there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import boxes
from life import Life, begin, changes, facts, launched

pytestmark = [pytest.mark.pulumi, pytest.mark.box]


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    directory = tmp_path_factory.mktemp("mixed")
    with boxes.running_box(directory / "box") as box:
        yield begin(directory, box)


@pytest.fixture(scope="module")
def mixed(life: Life) -> Life:
    life.seen["said"] = life.corral("up", "mixed", "--box", "--yes").out
    life.seen["again"] = life.done("up", "mixed")
    life.seen["machines"] = launched(life, "mixed", "us-west-2")
    return life


def test_a_vpc_stands_for_the_users_own(mixed: Life) -> None:
    line = "the box has no vpc-0123456789abcdef0, which stands for your VPC: made one with 3 private subnets"
    assert line in mixed.seen["said"].splitlines()


def test_another_up_of_mixed_finds_nothing_to_do(mixed: Life) -> None:
    assert [changes(mixed.seen["again"][stack]) for stack in ("base", "cluster")] == [0, 0]


def test_each_queue_of_mixed_has_its_own_kind_of_machine(mixed: Life) -> None:
    machines = mixed.seen["machines"]
    assert {offer: (one["InstanceType"], *facts(one)) for offer, one in machines.items()} == {
        "train-spot-usw2-az2": ("p5en.48xlarge", "spot", None, 17, True),
        "train-spot-usw2-az3": ("p5en.48xlarge", "spot", None, 17, True),
        "train-on-demand-usw2-az2": ("p5en.48xlarge", "on-demand", None, 17, True),
        "train-on-demand-usw2-az3": ("p5en.48xlarge", "on-demand", None, 17, True),
        "eval-on-demand-usw2-az2": ("g6e.12xlarge", "on-demand", None, 2, True),
        "trainium-spot-usw2-az1": ("trn1.32xlarge", "spot", None, 9, True),
    }


def test_machines_stand_in_the_adopted_subnets(mixed: Life) -> None:
    places = {one["SubnetId"] for one in mixed.seen["machines"].values()}
    assert places == {f"subnet-0123456789abcdef{number}" for number in range(3)}


def test_down_leaves_the_adopted_vpc_as_it_was(mixed: Life) -> None:
    mixed.done("down", "mixed", "--with-base")
    ec2 = boxes.client(mixed.box, "ec2", "us-west-2")
    subnets = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": ["vpc-0123456789abcdef0"]}])["Subnets"]
    interfaces = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert (len(subnets), [one["InterfaceType"] for one in interfaces]) == (4, ["nat_gateway"])
