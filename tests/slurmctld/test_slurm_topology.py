"""Switches in the real slurmctld: stored in node comments, and the topology.conf made from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller, running_slurmctld

import slurms
from corral.agent.topology.rank_order import rank_order, read_paths, tree
from corral.render import cluster_files
from render.plans import cpu, dev, train

pytestmark = pytest.mark.slurm

A, B = ("nn-1", "nn-2", "nn-3"), ("nn-1", "nn-4", "nn-5")
NODES = ("train-1", "train-2", "train-3", "train-4", "cpu-1")
PLAN = dev(replace(train(), max_nodes=4, min_nodes=4), cpu(), slurm_version="22.05")


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    with slurms.running_cluster(PLAN, tmp_path_factory.mktemp("slurm")) as running:
        yield running


def paths(controller: Controller) -> object:
    return read_paths(slurms.must(controller.run("scontrol", "--oneliner", "show", "node", "train-[1-4]")))


def comment(controller: Controller, nodes: str, text: str) -> None:
    slurms.must(controller.run("scontrol", "update", f"nodename={nodes}", f"comment={text}"))


def test_a_comment_of_several_nodes_is_read_back_as_their_switches(controller: Controller) -> None:
    comment(controller, "train-[1,3]", "/".join(A))
    comment(controller, "train-2", "/".join(B))
    assert paths(controller) == {"train-1": A, "train-2": B, "train-3": A}


def test_a_comment_is_cleared(controller: Controller) -> None:
    comment(controller, "train-[1-4]", "/".join(A))
    comment(controller, "train-[1-4]", "")
    assert paths(controller) == {}


def test_slurmctld_takes_the_tree(tmp_path: Path) -> None:
    known = {"train-1": A, "train-2": B, "train-3": A}
    files = dict(cluster_files(PLAN))
    files["slurm/slurm.conf"] += "TopologyPlugin=topology/tree\n"
    files["slurm/topology.conf"] = tree(known, NODES)
    with running_slurmctld(files, tmp_path) as running:
        shown = slurms.must(running.run("scontrol", "show", "topology", "train-3"))
        whole = slurms.must(running.run("scontrol", "show", "topology", "top"))
    assert ("SwitchName=nn-3" in shown, "Nodes=cpu-" in whole, "train-[1-4]" in whole) == (True, True, True)


def test_the_order_of_ranks_is_that_of_the_tree(controller: Controller) -> None:
    comment(controller, "train-[1,4]", "/".join(A))
    comment(controller, "train-[2-3]", "/".join(B))
    found = read_paths(slurms.must(controller.run("scontrol", "--oneliner", "show", "node", "train-[1-4]")))
    assert rank_order(found) == ("train-1", "train-4", "train-2", "train-3")
