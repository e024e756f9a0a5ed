"""The list of nodes that Prometheus follows."""

from __future__ import annotations

import json
from pathlib import Path

from corral.agent.cluster.models import SlurmNode
from corral.agent.metrics.node_targets import NodeTargets, targets

FILE = "etc/corral/prometheus/nodes.json"


def node(name: str, *states: str, address: str = "10.0.1.5") -> SlurmNode:
    return SlurmNode(name=name, states=frozenset(states), address=address)


def test_a_node_that_is_up_is_a_target_with_its_name_and_queue() -> None:
    assert json.loads(targets([node("train-1", "ALLOCATED", "CLOUD")])) == [
        {"targets": ["10.0.1.5:252"], "labels": {"instance": "train-1", "node": "train-1", "queue": "train"}}
    ]


def test_a_drained_node_is_still_one() -> None:
    assert len(json.loads(targets([node("train-1", "IDLE", "DRAIN", "CLOUD")]))) == 1


def test_nodes_that_are_off_boot_or_do_not_answer_are_none() -> None:
    off = [
        node("train-1", "IDLE", "CLOUD", "POWERED_DOWN"),
        node("train-2", "ALLOCATED", "CLOUD", "POWERING_UP"),
        node("train-3", "DOWN", "CLOUD", "NOT_RESPONDING"),
        node("train-4", "IDLE", "CLOUD", address="train-4"),
    ]
    assert json.loads(targets(off)) == []


def test_the_list_follows_the_nodes(tmp_path: Path) -> None:
    nodes: list[SlurmNode] = []
    follow = NodeTargets(nodes=lambda: nodes, is_needed=lambda: True, root=tmp_path)
    follow()
    before = json.loads((tmp_path / FILE).read_text())
    nodes.append(node("train-1", "IDLE", "CLOUD"))
    follow()
    assert (before, len(json.loads((tmp_path / FILE).read_text()))) == ([], 1)


def test_a_head_without_prometheus_has_no_list(tmp_path: Path) -> None:
    NodeTargets(nodes=tuple, is_needed=lambda: False, root=tmp_path)()
    assert not (tmp_path / FILE).exists()
