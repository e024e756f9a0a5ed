"""Switches in the real slurmctld: stored in the Extra of nodes, and the topology.conf made from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller, running_slurmctld

import slurms
from corral.agent.slurm import read_node
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


def set_switches(controller: Controller, nodes: str, text: str) -> None:
    slurms.must(controller.run("scontrol", "update", f"nodename={nodes}", f"extra={text}"))


def test_the_switches_of_several_nodes_are_read_back(controller: Controller) -> None:
    set_switches(controller, "train-[1,3]", "/".join(A))
    set_switches(controller, "train-2", "/".join(B))
    assert paths(controller) == {"train-1": A, "train-2": B, "train-3": A}


def test_switches_are_cleared(controller: Controller) -> None:
    set_switches(controller, "train-[1-4]", "/".join(A))
    set_switches(controller, "train-[1-4]", "")
    assert paths(controller) == {}


def test_switches_leave_the_notice_of_a_node(controller: Controller) -> None:
    notice = "corral: notice at 2026-11-27T22:07:47Z, ends at 2026-11-27T22:09:47Z"
    slurms.must(controller.run("scontrol", "update", "nodename=train-1", f"comment={notice}"))
    set_switches(controller, "train-1", "/".join(A))
    shown = slurms.must(controller.run("scontrol", "--oneliner", "show", "node", "train-1"))
    assert (read_node(shown).comment, read_paths(shown)["train-1"]) == (notice, A)


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
    set_switches(controller, "train-[1,4]", "/".join(A))
    set_switches(controller, "train-[2-3]", "/".join(B))
    found = read_paths(slurms.must(controller.run("scontrol", "--oneliner", "show", "node", "train-[1-4]")))
    assert rank_order(found) == ("train-1", "train-4", "train-2", "train-3")
