"""Preemption between declared QOS on a real slurmdbd, slurmctld and slurmd: jobs save, give way, and end right.

With each release that is installed; `make slurm-matrix` installs the newer ones.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller
from tools.slurm_matrix.__main__ import for_release
from tools.slurm_matrix.roots import slurm_roots

import slurms
from corral.agent.autoscaler.grace_end import end_graces
from corral.model.accounts import AccountPlan, AccountsPlan, QosPlan
from corral.model.users import AccessPlan, UserPlan
from corral.render import cluster_files
from render.plans import cpu, dev
from slurmctld.accounting_head import submit_as, sync_accounts

pytestmark = pytest.mark.slurm
ROOTS = slurm_roots()
newer = pytest.mark.parametrize("cluster", ["24.11", "26.05"], indirect=True)
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
    dev(replace(cpu(), time_limit_s=None)),
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


# A job that knows nothing of checkpoints and does not end by SIGTERM. It ends when it has been started twice.
OWN = """#!/bin/sh
trap '' TERM
echo started >>/run/seen/runs
until [ "$(grep -c . /run/seen/runs)" -ge 2 ]; do sleep 0.2; done
"""


@pytest.fixture(params=ROOTS)
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Controller]:
    root = ROOTS.get(request.param)
    assert root, f"there is no root with Slurm {request.param} - `make slurm-matrix` makes it"
    plan = for_release(PLAN, request.param)
    with slurms.running_cluster_with_nodes(plan, tmp_path, root, accounting=True) as controller:
        slurms.must(controller.run("mkdir", "-m", "777", "/run/seen"))
        scripts = {"train.sbatch": cluster_files(plan)["jobs/cpu/jax.sbatch"], "train.py": PROGRAM, "own.sbatch": OWN}
        for name, text in scripts.items():
            (tmp_path / name).write_text(text)
            slurms.must(controller.run("install", "-m", "644", f"/mnt/{name}", f"/run/seen/{name}"))
        sync_accounts(controller, plan, tmp_path)
        yield controller


def submit(cluster: Controller, qos: str, *job: str) -> str:
    return submit_as(cluster, GAMES, f"--qos={qos}", "--chdir=/run/seen", "--output=/run/seen/out-%j", *job)


def fields(cluster: Controller, job: str) -> dict[str, str]:
    words = slurms.scontrol(cluster, "--oneliner", "show", "job", job).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def until(cluster: Controller, job: str, value: str, field: str = "JobState") -> dict[str, str]:
    """The fields of a job, once this one has the value."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := fields(cluster, job))[field] != value:
        assert time.monotonic() < deadline, (found["JobState"], found["Reason"], cluster.log()[-2000:])
        time.sleep(0.2)
    return found


def seen(cluster: Controller, name: str) -> list[str]:
    return cluster.run("cat", f"/run/seen/{name}").stdout.split()


def start(cluster: Controller, *job: str) -> str:
    """A job that another QOS preempts, once its program runs."""
    started = submit(cluster, "night", *job)
    until(cluster, started, "RUNNING")
    deadline = time.monotonic() + PATIENCE_S
    while not seen(cluster, "runs"):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return started


def began(job: dict[str, str]) -> int:
    return int(time.mktime(time.strptime(job["StartTime"], "%Y-%m-%dT%H:%M:%S")))


def preempted(cluster: Controller, *options: str) -> tuple[int, str, bool]:
    """Preempt a training job: seconds from its signal until the other begins; its restarts; whether it moved itself."""
    trains = start(cluster, "/run/seen/train.sbatch", "/run/seen/train.py", *options)
    urgent = until(cluster, submit(cluster, "day", "--wrap=sleep 1"), "COMPLETED")
    slurms.scontrol(cluster, "update", f"jobid={trains}", "starttime=now")  # Slurm waits two minutes after a requeue
    ended = until(cluster, trains, "COMPLETED")
    (signalled,) = seen(cluster, "signals")
    moved = MOVED in cluster.run("cat", f"/run/seen/out-{trains}").stdout
    return began(urgent) - int(signalled), ended["Restarts"], moved


def test_a_preempted_job_saves_gives_way_at_once_and_continues(cluster: Controller) -> None:
    waited_s, restarts, moved = preempted(cluster)
    assert (restarts, seen(cluster, "runs"), moved) == ("1", ["started", "continued"], True)
    assert waited_s < GRACE_S - MARGIN_S


@pytest.mark.long
def test_a_preempted_job_that_does_not_save_has_its_grace_time(cluster: Controller) -> None:
    waited_s, restarts, moved = preempted(cluster, "slow")
    assert (restarts, seen(cluster, "runs"), moved) == ("1", ["started", "started"], False)
    assert waited_s >= GRACE_S - MARGIN_S - 1


def run_on_head(cluster: Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agent's functions in this process run Slurm's commands on the head."""
    directory = tmp_path / "commands"
    directory.mkdir()
    for name in ("squeue", "scancel"):
        (directory / name).write_text(f'#!/bin/sh\nexec {shlex.join(cluster.entered(name))} "$@"\n')
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/sbin:/usr/bin:/sbin:/bin")


def lapse(cluster: Controller, each_second: Callable[[], object]) -> tuple[int, str]:
    """Let the grace time of a job run out: seconds until the other begins, and the id of the one that is preempted."""
    ours = start(cluster, "--time=UNLIMITED", "/run/seen/own.sbatch")
    urgent, submitted = submit(cluster, "day", "--wrap=sleep 1"), int(time.time())
    while fields(cluster, ours)["JobState"] == "RUNNING":
        each_second()
        time.sleep(1)
    began_at = began(until(cluster, urgent, "COMPLETED"))
    slurms.scontrol(cluster, "update", f"jobid={ours}", "starttime=now")
    return began_at - submitted, ours


@newer
@pytest.mark.slurm_matrix
def test_the_agent_ends_a_job_whose_grace_time_is_over_and_it_completes_once(
    cluster: Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_on_head(cluster, tmp_path, monkeypatch)
    terminated = frozenset[str]()

    def each_second() -> None:
        nonlocal terminated
        terminated = end_graces(ACCOUNTS.qos, terminated, datetime.now()) or frozenset()

    waited_s, ours = lapse(cluster, each_second)
    assert (until(cluster, ours, "COMPLETED")["Restarts"], seen(cluster, "runs")) == ("1", ["started", "started"])
    assert GRACE_S - 10 < waited_s < GRACE_S + 10


@pytest.mark.slurm_matrix
@pytest.mark.parametrize("cluster", ["24.11"], indirect=True)  # 26.05.5 no longer does
def test_without_the_agent_slurm_requeues_it_once_more_when_it_has_completed(cluster: Controller) -> None:
    _, ours = lapse(cluster, lambda: None)
    assert until(cluster, ours, "2", "Restarts")["JobState"] == "PENDING"
    assert (cluster.log().count(f"JobId={ours} WEXITSTATUS 0"), seen(cluster, "runs")) == (1, ["started", "started"])


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
