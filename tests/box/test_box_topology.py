"""DescribeInstanceTopology in the box: three switches above each machine, and AWS's limits."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from box.ground import Clients, Ground


def launch(aws: Clients, ground: Ground, count: int = 1, **more: object) -> list[str]:
    asked = {"InstanceType": "p5.48xlarge", "ImageId": ground.image, "SubnetId": ground.subnet, **more}
    made = aws("ec2").run_instances(MinCount=count, MaxCount=count, **asked)["Instances"]
    return [one["InstanceId"] for one in made]


def topology(aws: Clients, **asked: object) -> dict[str, list[str]]:
    pages = aws("ec2").get_paginator("describe_instance_topology").paginate(**asked)
    return {one["InstanceId"]: one.get("NetworkNodes", []) for page in pages for one in page["Instances"]}


def test_a_machine_stands_below_three_switches(aws: Clients, ground: Ground) -> None:
    (made,) = launch(aws, ground)
    nodes = topology(aws, InstanceIds=[made])[made]
    assert [len(nodes), {node[:3] for node in nodes}, len(nodes[0])] == [3, {"nn-"}, 20]


def test_it_stands_there_when_it_is_asked_again(aws: Clients, ground: Ground) -> None:
    (made,) = launch(aws, ground)
    assert topology(aws, InstanceIds=[made]) == topology(aws)


def test_machines_of_one_zone_share_the_top(aws: Clients, ground: Ground) -> None:
    launch(aws, ground, 3)
    assert len({nodes[0] for nodes in topology(aws).values()}) == 1


def test_a_type_that_is_not_supported_has_no_switches(aws: Clients, ground: Ground) -> None:
    (made,) = launch(aws, ground, InstanceType="m7i.large")
    assert topology(aws, InstanceIds=[made]) == {made: []}


def test_without_ids_it_answers_in_pages(aws: Clients, ground: Ground) -> None:
    made = launch(aws, ground, 21)
    assert (len(aws("ec2").describe_instance_topology()["Instances"]), sorted(topology(aws))) == (20, sorted(made))


def test_more_than_a_hundred_ids_are_refused(aws: Clients, ground: Ground) -> None:
    with pytest.raises(ClientError, match="at most 100 instance IDs"):
        topology(aws, InstanceIds=[f"i-{number:017x}" for number in range(101)])
