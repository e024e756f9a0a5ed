"""The order of ranks by switches, the field that carries the switches, and topology.conf."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from box.vpc_fixtures import Clients, LaunchNetwork
from corral.agent.cluster.ec2_client import Ec2Error
from corral.agent.topology.ec2_topology import Ec2Topology
from corral.agent.topology.rank_order import (
    changed_extras,
    rank_order,
    read_paths,
    read_tree,
    topology_conf,
    tree,
    update_switches,
)
from corral.box import control
from corral.box.client import BoxStatus
from render.plans import cpu, dev, train

A, B, C = ("nn-1", "nn-2", "nn-3"), ("nn-1", "nn-2", "nn-4"), ("nn-1", "nn-5", "nn-6")


def test_nodes_below_one_switch_are_adjacent() -> None:
    paths = {"train-1": A, "train-2": C, "train-3": B, "train-4": A, "train-5": C, "train-10": B}
    assert rank_order(paths) == ("train-1", "train-4", "train-3", "train-10", "train-2", "train-5")


def test_without_switches_the_order_is_that_of_numbers() -> None:
    assert rank_order({"train-10": (), "train-9": (), "train-2": ()}) == ("train-2", "train-9", "train-10")


def test_a_node_without_a_switch_keeps_its_position() -> None:
    assert rank_order({"train-1": (), "train-2": A, "train-3": (), "train-4": A}) == (
        "train-1",
        "train-2",
        "train-4",
        "train-3",
    )


LAYERS = st.lists(st.integers(0, 2), max_size=3).map(lambda parts: tuple(f"nn-{part}" for part in parts))


@given(st.dictionaries(st.integers(1, 40).map(lambda number: f"train-{number}"), LAYERS))
def test_every_group_below_a_switch_is_contiguous(paths: dict[str, tuple[str, ...]]) -> None:
    order = rank_order(paths)
    assert sorted(order) == sorted(paths)
    for prefix in {path[:depth] for path in paths.values() for depth in range(1, len(path) + 1)}:
        positions = [position for position, node in enumerate(order) if paths[node][: len(prefix)] == prefix]
        assert positions == list(range(positions[0], positions[0] + len(positions)))


def test_nodes_are_grouped_by_the_last_switch() -> None:
    wanted = {"train-1": A, "train-2": C, "train-3": A, "train-4": ()}
    assert changed_extras(wanted, {"train-2": C}) == {"nn-1/nn-2/nn-3": ("train-1", "train-3")}


def test_the_switches_of_an_earlier_machine_are_cleared() -> None:
    assert changed_extras({"train-1": ()}, {"train-1": A}) == {"": ("train-1",)}


def test_switches_are_read_from_extra_and_nothing_else() -> None:
    text = (
        "NodeName=train-1 State=IDLE+CLOUD Comment=nn-9 Extra=nn-1/nn-2/nn-3\n"
        "NodeName=train-2 State=IDLE+CLOUD Extra=ask Ann about nn-1\n"
        "NodeName=train-3 State=IDLE+CLOUD\n"
    )
    assert read_paths(text) == {"train-1": A}


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scontrol").write_text(
        f'#!/bin/sh\n[ "$2" = show ] && exit\nfor word; do printf "<%s>" "$word"; done >>{tmp_path}/log\n'
        f"echo >>{tmp_path}/log\n"
    )
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "log"


def test_the_autoscaler_updates_the_nodes_of_a_switch_at_once(scontrol: Path) -> None:
    update_switches({"train-1": "i-1", "train-2": "i-2", "train-3": "i-3"}, lambda ids: {"i-1": A, "i-2": C, "i-3": A})
    assert scontrol.read_text().splitlines() == [
        "<update><nodename=train-[1,3]><extra=nn-1/nn-2/nn-3>",
        "<update><nodename=train-2><extra=nn-1/nn-5/nn-6>",
    ]


def test_the_switches_of_more_than_a_hundred_machines_take_several_calls(
    aws: Clients, launch_network: LaunchNetwork, box: BoxStatus
) -> None:
    control.set_quota(box.dir, "L-417A185B", 101 * 192)
    made = aws("ec2").run_instances(
        MinCount=101,
        MaxCount=101,
        InstanceType="p5.48xlarge",
        ImageId=launch_network.image,
        SubnetId=launch_network.subnet,
    )["Instances"]
    found = Ec2Topology(aws("ec2")).switches([one["InstanceId"] for one in made])
    assert (len(found), {len(path) for path in found.values()}) == (101, {3})


def test_further_hundreds_wait_for_ec2s_rate() -> None:
    waited: list[float] = []

    class Silent:
        def get_paginator(self, name: str) -> Silent:
            return self

        def paginate(self, **request: object) -> list[dict[str, list[object]]]:
            return [{"Instances": []}]

    Ec2Topology(Silent(), waited.append).switches([f"i-{number}" for number in range(201)])
    assert waited == [1.1, 1.1]


def test_a_type_without_topology_is_left_out(aws: Clients, launch_network: LaunchNetwork) -> None:
    (made,) = aws("ec2").run_instances(
        MinCount=1, MaxCount=1, InstanceType="m7i.large", ImageId=launch_network.image, SubnetId=launch_network.subnet
    )["Instances"]
    assert Ec2Topology(aws("ec2")).switches([made["InstanceId"]]) == {}


def test_a_terminated_instance_is_no_error(aws: Clients, launch_network: LaunchNetwork) -> None:
    assert Ec2Topology(aws("ec2")).switches(["i-0123456789abcdef0"]) == {}


def test_no_instances_are_no_call() -> None:
    assert Ec2Topology(None).switches([]) == {}


def test_an_unreachable_ec2_is_an_error(aws: Clients) -> None:
    client = aws("ec2")
    with Stubber(client) as answers, pytest.raises(Ec2Error, match=r"^RequestLimitExceeded: slow down$"):
        answers.add_client_error("describe_instance_topology", "RequestLimitExceeded", "slow down")
        Ec2Topology(client).switches(["i-1"])


STATIC = replace(train(3), min_nodes=3)
PLAN = dev(STATIC, cpu())
NODES = ("train-1", "train-2", "train-3", "cpu-1")


def test_static_queues_get_a_tree_with_every_node_in_it() -> None:
    assert topology_conf(PLAN, {"train-1": A, "train-2": C, "train-3": A}, NODES) == (
        "SwitchName=nn-3 Nodes=train-[1,3]\n"
        "SwitchName=nn-6 Nodes=train-2\n"
        f"SwitchName=elsewhere-cpu Nodes={cpu().node_names}\n"
        "SwitchName=nn-2 Switches=nn-3\n"
        "SwitchName=nn-5 Switches=nn-6\n"
        "SwitchName=elsewhere Switches=elsewhere-cpu\n"
        "SwitchName=nn-1 Switches=nn-2,nn-5\n"
        "SwitchName=top Switches=nn-1,elsewhere\n"
    )


def test_there_is_no_topology_conf_while_nothing_is_known() -> None:
    assert topology_conf(PLAN, {}, NODES) is None


def test_there_is_no_topology_conf_for_dynamic_queues() -> None:
    assert topology_conf(dev(train()), {"train-1": A, "train-2": C}, NODES) is None


def test_one_switch_alone_is_no_topology() -> None:
    assert topology_conf(PLAN, {"train-1": A, "train-2": A}, NODES) is None


def test_the_same_facts_in_another_order_give_the_same_text() -> None:
    one = topology_conf(PLAN, {"train-1": A, "train-2": C}, NODES)
    assert one == topology_conf(PLAN, {"train-2": C, "train-1": A}, NODES)


def test_one_switch_stays_a_topology_where_there_is_one() -> None:
    assert topology_conf(PLAN, {"train-1": A, "train-2": A}, NODES, is_on=True) is not None


def test_a_removed_node_in_use_is_in_the_tree() -> None:
    text = topology_conf(PLAN, {"train-1": A, "train-2": C}, (*NODES, "train-9")) or ""
    assert "SwitchName=elsewhere-train Nodes=train-[3,9]\n" in text


@given(st.dictionaries(st.sampled_from([f"train-{number}" for number in range(1, 21)]), st.sampled_from([A, B, C])))
def test_a_tree_is_read_as_it_was_written(known: dict[str, tuple[str, ...]]) -> None:
    assert read_tree(tree(known, [f"train-{number}" for number in range(1, 30)])) == known
