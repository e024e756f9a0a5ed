"""Machines that fall sick in the box, with real slurmctld and slurmd: jobs go on elsewhere, and machines are replaced.

What the machines' tools say are recorded outputs (tests/agent/recorded), shown to them by the box.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_machine_life import HEAD_IN_S, JOB_IN_S, on_head, until

import boxes
from corral.box import control
from corral.box.vpc.probe import probe
from life import Life, begin

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
RECORDED = Path(__file__).parents[1] / "agent/recorded"
REASON_SET = re.compile(r"node (\S+) reason set to: (.*)")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    assert probe().users, probe().problem
    directory = tmp_path_factory.mktemp("sick")
    with boxes.running_box(directory / "box", machines=True) as box:
        yield begin(directory, box)


@pytest.fixture(scope="module")
def worked(life: Life) -> Life:
    """The cluster is up, two nodes have run a job, and the switches above them are known."""
    life.done("up", "dev")
    until(lambda: on_head(life, "sinfo", "--noheader"), HEAD_IN_S)
    until(lambda: on_head(life, "srun", "-N2", "--chdir=/", "hostname"), JOB_IN_S)
    return life


@pytest.fixture(scope="module")
def sick(worked: Life) -> Life:
    """A GPU of train-1 is lost, and a batch job comes to both nodes."""
    worked.seen["machine"] = machine = instance_of(worked, "train-1")
    shown = Path(worked.box.dir) / "machines/disks" / machine / "box/health"
    shutil.copytree(RECORDED / "gpu-missing", shown)
    on_head(worked, "srun", "--chdir=/", "--nodelist=train-1", "rm", "-f", "/run/corral/healthy")
    command = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "-N2", "--wrap=srun hostname")
    worked.seen["job"] = on_head(worked, *command)
    until(lambda: "" if on_head(worked, "squeue", "--noheader") else "ended", JOB_IN_S * 2)
    worked.seen["told"] = on_head(worked, "scontrol", "--oneliner", "show", "job", worked.seen["job"])
    until(lambda: "" if machine in control.machines(worked.box.dir) else "gone", JOB_IN_S)
    return worked


@pytest.fixture(scope="module")
def sick_at_boot(sick: Life) -> Life:
    """Whatever is launched now lacks a GPU; then nothing does."""
    shown = Path(sick.box.dir) / "machines/health"
    shutil.copytree(RECORDED / "gpu-missing", shown)
    on_head(sick, "scontrol", "update", "nodename=train-4", "state=power_up")
    sick.seen["console"] = until(lambda: consoles(sick, "cannot boot", "powering off"), JOB_IN_S)
    shutil.rmtree(shown)
    return sick


def instance_of(life: Life, node: str) -> str:
    """The machine that answers at the node's address."""
    address = on_head(life, "scontrol", "--oneliner", "show", "node", node).split("NodeAddr=")[1].split()[0]
    found = boxes.client(life.box, "ec2").describe_instances(
        Filters=[{"Name": "private-ip-address", "Values": [address]}]
    )["Reservations"]
    return str(found[0]["Instances"][0]["InstanceId"])


def consoles(life: Life, *texts: str) -> str:
    """The console that holds all of these texts; nothing where none does yet."""
    files = (Path(life.box.dir) / "machines/consoles").iterdir()
    told = (file.read_text() for file in files)
    return next((console for console in told if all(text in console for text in texts)), "")


def test_the_prolog_drains_the_node_for_its_machine(sick: Life) -> None:
    log = on_head(sick, "cat", "/var/log/slurm/slurmctld.log")
    reasons = dict(reversed(REASON_SET.findall(log)))
    assert reasons["train-1"] == f"corral: {sick.seen['machine']}: 7 of 8 GPUs answer: replace the machine"


def test_the_job_is_not_held_and_ends_elsewhere(sick: Life) -> None:
    assert re.findall(r"\b(JobState|Restarts)=(\w+)", sick.seen["told"]) == [
        ("JobState", "COMPLETED"),
        ("Restarts", "1"),
    ]


def test_the_sick_machine_is_ended(sick: Life) -> None:
    assert sick.seen["machine"] not in control.machines(sick.box.dir)


def test_a_machine_that_is_sick_when_it_boots_says_why_and_powers_off(sick_at_boot: Life) -> None:
    console = sick_at_boot.seen["console"]
    assert "the machine is not fit for jobs: 7 of 8 GPUs answer" in console
    assert "corral: powering off" in console
