"""The job scripts on a real node: the program gets its address and its signal, and the job survives its time limit.

There is no torch here. A program in torchrun's place does what matters of it: it starts the worker in a session of its
own and would die of the signal. Worker and test talk through pipes, so nothing waits longer than it has to.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import slurms
from corral.box.slurm import Controller
from render.plans import dev, train

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="a node with devices of its own needs root: run the tests as root"),
]

PATIENCE_S = 45  # slurmctld looks at some things every 30 s

TORCHRUN = """#!/bin/sh
echo "$*" >/mnt/arguments
setsid --wait /usr/bin/python3 /mnt/bin/worker
"""
WORKER = """
import signal
events = open("/mnt/events", "w", buffering=1)
signal.signal(signal.SIGUSR1, lambda *_: print("saved", file=events))
print("ready", file=events)
open("/mnt/finish").read()
print("finished", file=events)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A cluster with one node that is up. `events`: the pipe in which the worker says something, a line each."""

    controller: Controller
    directory: Path
    events: int

    def hear(self) -> str:
        """The worker's next word; nothing if it has none for long."""
        said = b""
        while not said.endswith(b"\n") and select.select([self.events], [], [], PATIENCE_S)[0]:
            said += os.read(self.events, 1)
        return said.decode().strip()

    def submit(self, script: str, *options: str) -> str:
        """The id of a job of this script, once its worker is ready."""
        output = "--output=/mnt/%x.out"
        variables = "--export=ALL,PATH=/mnt/bin:/usr/bin:/bin,PYTHON=torchrun"
        path = f"/opt/corral/jobs/{script}.sbatch"
        command = ("sbatch", "--parsable", "--nodes=1", "--ntasks=1", output, variables, *options, path, "train.py")
        job = slurms.must(self.controller.run(*command)).strip()
        assert self.hear() == "ready", self.controller.run("sh", "-c", "squeue; tail /mnt/*.out").stdout
        return job

    def job(self, job: str) -> Mapping[str, str]:
        """The job's fields, as scontrol shows them."""
        line = slurms.scontrol(self.controller, "--oneliner", "show", "job", job)
        return dict(word.split("=", 1) for word in line.split() if "=" in word)

    def ask_for_a_checkpoint(self, job: str) -> str:
        """What the worker says to the signal that the agent and users send."""
        slurms.must(self.controller.run("scancel", "--batch", "--signal=USR1", job))
        return self.hear()

    def finish(self) -> str:
        """What the worker says when it may end."""
        (self.directory / "finish").write_text("")
        return self.hear()

    def state(self, job: str, expected: str) -> str:
        """The job's state, once it is the expected one or has not become it for long."""
        deadline = time.monotonic() + PATIENCE_S
        while (state := self.job(job)["JobState"]) != expected and time.monotonic() < deadline:
            time.sleep(0.1)  # Slurm tells nobody when a job has ended
        return state


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node train-1 that has registered."""
    directory = tmp_path_factory.mktemp("slurm")
    (directory / "bin").mkdir()
    (directory / "bin/worker").write_text(WORKER)
    (directory / "bin/torchrun").write_text(TORCHRUN)
    (directory / "bin/torchrun").chmod(0o755)
    for pipe in ("events", "finish"):
        os.mkfifo(directory / pipe)
    plan = dev(train(max_nodes=1), slurm_version="22.05")
    with slurms.running_cluster_with_nodes(plan, directory) as controller:
        # A batch job would wait for slurmctld's next look at its nodes, up to 30 s; srun does not.
        slurms.must(controller.run("srun", "true"))
        # Open for writing too: workers come and go without an end of file.
        events = os.open(directory / "events", os.O_RDWR)
        yield Node(controller=controller, directory=directory, events=events)
        os.close(events)


def test_a_node_fetches_all_files_from_the_head(node: Node) -> None:
    cached = (node.directory / "var/spool/slurmd/conf-cache").iterdir()
    assert {file.name for file in cached} >= {"slurm.conf", "host.conf", "own.conf", "gres.conf", "cgroup.conf"}


def test_a_job_sees_its_gpus(node: Node) -> None:
    done = node.controller.run("srun", "--gpus-per-node=8", "printenv", "CUDA_VISIBLE_DEVICES")
    assert done.stdout == "0,1,2,3,4,5,6,7\n"


def test_torchrun_meets_at_the_first_nodes_address(node: Node) -> None:
    job = node.submit("torchrun")
    node.finish()
    assert f"--rdzv-endpoint=10.64.0.26:{20000 + int(job)} train.py" in (node.directory / "arguments").read_text()


@pytest.mark.parametrize("script", ["torchrun", "jax"])
def test_a_signal_is_a_checkpoint_and_the_job_goes_on_to_its_end(node: Node, script: str) -> None:
    job = node.submit(script)
    said = (node.ask_for_a_checkpoint(job), node.ask_for_a_checkpoint(job), node.finish(), node.state(job, "COMPLETED"))
    assert said == ("saved", "saved", "finished", "COMPLETED")


def test_a_program_that_fails_fails_the_job_with_its_code(node: Node) -> None:
    (node.directory / "bin/failing").write_text("#!/bin/sh\necho ready >/mnt/events\nexit 3\n")
    (node.directory / "bin/failing").chmod(0o755)
    job = node.submit("jax", "--export=ALL,PATH=/mnt/bin:/usr/bin:/bin,PYTHON=failing")
    assert (node.state(job, "FAILED"), node.job(job)["ExitCode"]) == ("FAILED", "3:0")


def test_a_job_near_its_time_limit_saves_and_starts_again(node: Node) -> None:
    job = node.submit("torchrun", "--time=10")
    slurms.scontrol(node.controller, "update", f"JobId={job}", "EndTime=now+17")
    said = node.ask_for_a_checkpoint(job)
    assert (said, node.state(job, "PENDING"), node.job(job)["Restarts"]) == ("saved", "PENDING", "1")
