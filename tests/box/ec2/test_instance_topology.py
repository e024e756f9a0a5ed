"""DescribeInstanceTopology: three switches above each instance, and AWS's limits."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from box.vpc_fixtures import Clients, LaunchNetwork


def launch(aws: Clients, launch_network: LaunchNetwork, count: int = 1, **more: object) -> list[str]:
    query = {"InstanceType": "p5.48xlarge", "ImageId": launch_network.image, "SubnetId": launch_network.subnet, **more}
    made = aws("ec2").run_instances(MinCount=count, MaxCount=count, **query)["Instances"]
    return [one["InstanceId"] for one in made]


def topology(aws: Clients, **query: object) -> dict[str, list[str]]:
    pages = aws("ec2").get_paginator("describe_instance_topology").paginate(**query)
    return {one["InstanceId"]: one.get("NetworkNodes", []) for page in pages for one in page["Instances"]}


def test_an_instance_is_below_three_switches(aws: Clients, launch_network: LaunchNetwork) -> None:
    (made,) = launch(aws, launch_network)
    nodes = topology(aws, InstanceIds=[made])[made]
    assert [len(nodes), {node[:3] for node in nodes}, len(nodes[0])] == [3, {"nn-"}, 20]


def test_a_repeated_query_gives_the_same_switches(aws: Clients, launch_network: LaunchNetwork) -> None:
    (made,) = launch(aws, launch_network)
    assert topology(aws, InstanceIds=[made]) == topology(aws)


def test_instances_of_one_zone_share_the_top_switch(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, launch_network, 3)
    assert len({nodes[0] for nodes in topology(aws).values()}) == 1


def test_an_unsupported_type_has_no_switches(aws: Clients, launch_network: LaunchNetwork) -> None:
    (made,) = launch(aws, launch_network, InstanceType="m7i.large")
    assert topology(aws, InstanceIds=[made]) == {made: []}


def test_without_ids_the_result_has_pages(aws: Clients, launch_network: LaunchNetwork) -> None:
    made = launch(aws, launch_network, 21)
    assert (len(aws("ec2").describe_instance_topology()["Instances"]), sorted(topology(aws))) == (20, sorted(made))


def test_more_than_a_hundred_ids_are_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    with pytest.raises(ClientError, match="at most 100 instance IDs"):
        topology(aws, InstanceIds=[f"i-{number:017x}" for number in range(101)])
