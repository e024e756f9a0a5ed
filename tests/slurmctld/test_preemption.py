"""Preemption between declared QOS on a real slurmdbd, slurmctld and slurmd: jobs save, give way, and end right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller

import slurms
from corral.model.accounts import AccountPlan, AccountsPlan, QosPlan
from corral.model.users import AccessPlan, UserPlan
from corral.render import cluster_files
from render.plans import cpu, dev
from slurmctld.accounting_head import submit_as, sync_accounts

pytestmark = pytest.mark.slurm
GRACE_S = 45
MARGIN_S = 15  # the job script requeues the job itself so long before its end
PATIENCE_S = 120
MOVED = "corral: requeue, the checkpoint is written and another QOS preempts the job\n"
ACCOUNTS = AccountsPlan(
    accounts=(AccountPlan(name="everybody", qos=("night", "day")),),
    qos=(QosPlan(name="day", preempts=("night",)), QosPlan(name="night", grace_s=GRACE_S)),
    enforced=True,
)
GAMES = 5  # a user of Debian's base system, so that nobody has to be added to this machine
PLAN = replace(
    dev(cpu(), slurm_version="22.05"),
    accounts=ACCOUNTS,
    access=AccessPlan(users=(UserPlan(name="games", uid=GAMES, account="everybody"),)),
)
# Saves when it is asked to, unless it is slow, and begins where the last run has saved.
PROGRAM = """
import os, pathlib, signal, sys, time
directory, seen = pathlib.Path(os.environ["CHECKPOINT_DIR"]), pathlib.Path("/run/seen")
def save(*_):
    (seen / "signals").open("a").write(f"{int(time.time())}\\n")
    if "slow" not in sys.argv:
        (directory / "step-1").touch()
        pathlib.Path(os.environ["CHECKPOINT_SAVED"]).touch()
signal.signal(signal.SIGUSR1, save)
(seen / "runs").open("a").write("continued\\n" if (directory / "step-1").exists() else "started\\n")
while not (seen / "runs").read_text().count("\\n") == 2:
    time.sleep(0.2)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Controller]:
    with slurms.running_cluster_with_nodes(PLAN, tmp_path, accounting=True) as controller:
        slurms.must(controller.run("mkdir", "-m", "777", "/run/seen"))
        for name, text in (("train.sbatch", cluster_files(PLAN)["jobs/cpu/jax.sbatch"]), ("train.py", PROGRAM)):
            (tmp_path / name).write_text(text)
            slurms.must(controller.run("install", "-m", "644", f"/mnt/{name}", f"/run/seen/{name}"))
        sync_accounts(controller, PLAN, tmp_path)
        controller.restart()  # reads what it refuses from slurmdbd, which here is another user than slurmctld
        yield controller


def submit(cluster: Controller, qos: str, *job: str) -> str:
    return submit_as(cluster, GAMES, f"--qos={qos}", "--chdir=/run/seen", "--output=/run/seen/out-%j", *job)


def fields(cluster: Controller, job: str) -> dict[str, str]:
    words = slurms.scontrol(cluster, "--oneliner", "show", "job", job).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def until(cluster: Controller, job: str, state: str) -> dict[str, str]:
    deadline = time.monotonic() + PATIENCE_S
    while (found := fields(cluster, job))["JobState"] != state:
        assert time.monotonic() < deadline, (found["JobState"], found["Reason"], cluster.log()[-2000:])
        time.sleep(0.2)
    return found


def seen(cluster: Controller, name: str) -> list[str]:
    return cluster.run("cat", f"/run/seen/{name}").stdout.split()


def preempted(cluster: Controller, *options: str) -> tuple[int, str, bool]:
    """Preempt a training job: seconds from its signal until the other begins; its restarts; whether it moved itself."""
    trains = submit(cluster, "night", "/run/seen/train.sbatch", "/run/seen/train.py", *options)
    until(cluster, trains, "RUNNING")
    deadline = time.monotonic() + PATIENCE_S
    while not seen(cluster, "runs"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    urgent = until(cluster, submit(cluster, "day", "--wrap=sleep 1"), "COMPLETED")
    slurms.scontrol(cluster, "update", f"jobid={trains}", "starttime=now")  # Slurm waits two minutes after a requeue
    ended = until(cluster, trains, "COMPLETED")
    (signalled,) = seen(cluster, "signals")
    began = int(time.mktime(time.strptime(urgent["StartTime"], "%Y-%m-%dT%H:%M:%S")))
    moved = MOVED in cluster.run("cat", f"/run/seen/out-{trains}").stdout
    return began - int(signalled), ended["Restarts"], moved


def test_a_preempted_job_saves_gives_way_at_once_and_continues(cluster: Controller) -> None:
    waited_s, restarts, moved = preempted(cluster)
    assert (restarts, seen(cluster, "runs"), moved) == ("1", ["started", "continued"], True)
    assert waited_s < GRACE_S - MARGIN_S


@pytest.mark.long
def test_a_preempted_job_that_does_not_save_has_its_grace_time(cluster: Controller) -> None:
    waited_s, restarts, moved = preempted(cluster, "slow")
    assert (restarts, seen(cluster, "runs"), moved) == ("1", ["started", "started"], False)
    assert waited_s >= GRACE_S - MARGIN_S - 1


@pytest.mark.long
def test_a_job_of_the_same_qos_waits(cluster: Controller) -> None:
    first = submit(cluster, "night", "--wrap=sleep 8")
    until(cluster, first, "RUNNING")
    second = submit(cluster, "night", "--wrap=true")
    until(cluster, second, "COMPLETED")
    assert fields(cluster, first)["Restarts"] == "0"


@pytest.mark.long
def test_slurmdbd_has_what_is_declared_and_loses_what_is_not(cluster: Controller, tmp_path: Path) -> None:
    fewer = replace(ACCOUNTS, qos=(QosPlan(name="day"), QosPlan(name="night"), QosPlan(name="normal", priority=7)))
    shown = [declared(cluster)]
    for accounts in (fewer, replace(ACCOUNTS, qos=ACCOUNTS.qos)):
        sync_accounts(cluster, replace(PLAN, accounts=accounts), tmp_path)
        shown.append(declared(cluster))
    assert shown == [
        ["day|00:00:00|night|0", "night|00:00:45||0", "normal|00:00:00||0"],
        ["day|00:00:00||0", "night|00:00:00||0", "normal|00:00:00||7"],
        ["day|00:00:00|night|0", "night|00:00:45||0", "normal|00:00:00||0"],
    ]


def declared(cluster: Controller) -> list[str]:
    shown = cluster.run("sacctmgr", "-nP", "show", "qos", "format=name,gracetime,preempt,priority")
    return sorted(slurms.must(shown).splitlines())
