"""The switch topology on a real slurmctld: added, changed and removed while jobs run, with every node in it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller, without_accounting

import slurms
from agent.stores import uploaded
from corral.agent.commands.apply import read_in_use
from corral.agent.config.apply import ApplyContext, apply_config
from corral.agent.config.topology_sync import MIN_INTERVAL_S, TopologySync
from corral.agent.events import EventLog
from corral.agent.host.base import Daemon, HostError
from corral.agent.topology.rank_order import Switches
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from corral.render.host_conf import host_conf
from render.plans import cpu, dev, train

pytestmark = [
    pytest.mark.long,
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="a node with devices of its own needs root: run the tests as root"),
]
A, B = ("nn-1", "nn-2", "nn-3"), ("nn-1", "nn-4", "nn-5")
PATIENCE_S = 120


def plan(of_cpu: int = 2) -> ClusterPlan:
    """Four static nodes, and some dynamic ones."""
    static, others = replace(train(4), min_nodes=4), replace(cpu(), min_nodes=0, max_nodes=of_cpu)
    return dev(static, others, slurm_version="22.05")


@dataclass(kw_only=True)
class Cluster:
    """A controller, the switches of its nodes, the commands that ran, and what was restarted."""

    controller: Controller
    directory: Path
    switches: Mapping[str, Switches] = field(default_factory=dict)
    restarted: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    now: float = 0.0

    def restart(self, daemon: Daemon) -> None:
        self.restarted.append(daemon.unit)
        self.controller.restart()

    def run(self, command: Sequence[str]) -> str:
        self.commands.append(" ".join(command))
        done = self.controller.run(*command)
        if done.returncode:
            raise HostError(f"{' '.join(command)} failed with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def tree(self) -> TopologySync:
        return TopologySync(
            plan=plan,
            host=self,  # type: ignore[arg-type]
            run=self.run,
            paths=lambda nodes: {node: self.switches.get(node, ()) for node in nodes},
            root=self.directory,
            lock=self.directory / "lock",
            clock=lambda: self.now,
        )

    def job(self, *options: str) -> str:
        """A job that has started."""
        wanted = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", *options, "--wrap=sleep 300")
        job = slurms.must(self.controller.run(*wanted)).strip()
        deadline = time.monotonic() + PATIENCE_S
        while not self.state(job).startswith("RUNNING"):
            assert time.monotonic() < deadline, self.state(job)
            time.sleep(0.1)
        return job

    def await_idle(self, node: str) -> None:
        """Wait until its last job has completed, before which no other can use the node."""
        deadline = time.monotonic() + PATIENCE_S
        while (state := slurms.must(self.controller.run("sinfo", "-hN", f"--nodes={node}", "-o%t")).strip()) != "idle":
            assert time.monotonic() < deadline, state
            time.sleep(0.1)

    def state(self, job: str) -> str:
        return self.controller.run("squeue", "--noheader", f"--jobs={job}", "--format=%T %N").stdout.strip()

    def nodes_of(self, *options: str) -> str:
        """The nodes that a job would get."""
        done = self.controller.run("sbatch", "--test-only", "--chdir=/", *options, "--wrap=hostname")
        return done.stderr.partition(" on nodes ")[2].split()[0] if done.returncode == 0 else done.stderr.strip()

    def files(self) -> list[str]:
        return sorted(file.name for file in (self.directory / "etc/slurm").glob("topology*"))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with slurms.running_cluster_with_nodes(plan(), tmp_path) as controller:
        yield Cluster(controller=controller, directory=tmp_path)


@pytest.fixture
def known(cluster: Cluster) -> Cluster:
    """The switches are known except those of train-4, and slurmctld has them."""
    cluster.switches = {"train-1": A, "train-2": B, "train-3": A}
    cluster.tree()()
    return cluster


def test_without_a_topology_slurmctld_is_not_reconfigured(cluster: Cluster) -> None:
    cluster.tree()()
    assert (cluster.commands, cluster.restarted, cluster.files()) == ([], [], ["topology-plugin.conf"])


def test_a_job_of_several_nodes_stays_below_one_switch(known: Cluster) -> None:
    assert known.nodes_of("--partition=train", "--nodes=2") == "train-[1,3]"


def test_a_job_also_gets_nodes_of_unknown_topology(known: Cluster) -> None:
    assert known.nodes_of("--partition=train", "--nodes=4") == "train-[1-4]"


def test_a_node_that_is_up_is_taken_before_one_that_must_be_launched(known: Cluster) -> None:
    slurms.must(known.controller.run("scancel", known.job("--partition=cpu", "--nodelist=cpu-2")))
    known.await_idle("cpu-2")
    assert known.state(known.job("--partition=cpu")) == "RUNNING cpu-2"


def test_a_job_runs_on_while_the_tree_comes_changes_and_goes(cluster: Cluster) -> None:
    job, tree, seen = cluster.job("--partition=train", "--nodelist=train-1"), cluster.tree(), []
    for switches in ({"train-1": A, "train-2": B}, {"train-1": B, "train-2": A}, {}):
        cluster.switches = switches
        tree()
        cluster.now += MIN_INTERVAL_S
        seen.append((cluster.state(job), "topology.conf" in cluster.files(), len(cluster.restarted)))
    assert seen == [("RUNNING train-1", True, 1), ("RUNNING train-1", True, 1), ("RUNNING train-1", False, 2)]


def test_another_text_is_a_reconfigure_and_no_restart(known: Cluster) -> None:
    known.restarted.clear()
    known.switches = {**known.switches, "train-4": B}
    known.tree()()
    shown = slurms.scontrol(known.controller, "show", "topology", "nn-5")
    assert (known.restarted, "Nodes=train-[2,4]" in shown) == ([], True)


def test_the_same_text_is_nothing(known: Cluster) -> None:
    known.commands.clear()
    known.tree()()
    assert known.commands == []


def test_a_change_waits_until_ten_minutes_after_the_last(cluster: Cluster) -> None:
    tree, seen = cluster.tree(), []
    for now, other in ((0.0, {}), (MIN_INTERVAL_S - 1, {"train-3": A}), (MIN_INTERVAL_S, {"train-3": A})):
        cluster.now, cluster.switches = now, {"train-1": A, "train-2": B, **other}
        tree()
        seen.append("Nodes=train-[1,3]" in (cluster.directory / "etc/slurm/topology.conf").read_text())
    assert seen == [False, False, True]


def test_what_slurmctld_does_not_take_is_taken_back(cluster: Cluster) -> None:
    cluster.switches = {"train-1": A, "train-2": B}
    tree, refusals = cluster.tree(), iter([True, False])

    def run(command: Sequence[str]) -> str:
        if command[1] == "reconfigure" and next(refusals):
            raise HostError("no way")
        return cluster.run(command)

    tree.run = run
    with pytest.raises(HostError, match="no way"):
        tree()
    assert (cluster.files(), cluster.restarted) == (["topology-plugin.conf"], ["slurmctld", "slurmctld"])


def test_a_node_that_a_later_up_brings_gets_jobs(known: Cluster) -> None:
    bucket = known.directory / "bucket"
    files = {**cluster_files(plan(of_cpu=3)), "slurm/host.conf": host_conf(slurms.SMALL_HOST), "deployed.json": "{}"}
    files = dict(without_accounting(files))
    for path, text in files.items():
        (bucket / path).parent.mkdir(parents=True, exist_ok=True)
        (bucket / path).write_text(text)
    head = ApplyContext(
        host=known,  # type: ignore[arg-type]
        run=known.run,
        used=lambda: read_in_use(known.run),
        journal=EventLog(None),
        sync_accounts=lambda plan: None,
        sync_directory=lambda plan: None,
        root=known.directory,
        state=known.directory / "var/lib/corral",
        refusal=lambda *_: "",
    )
    apply_config(uploaded(bucket), head)
    assert known.nodes_of("--partition=cpu", "--nodelist=cpu-3") == "cpu-3"
