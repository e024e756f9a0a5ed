"""`apply_config` on a real slurmctld: changes of a later configuration take effect without disturbing running jobs.

The head is a slurmctld in its own namespaces, with a node that registers. Apply runs on this host as it does on a
head, with a directory as its store.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller, without_accounting

import slurms
from agent.stores import uploaded
from corral.agent.commands.apply import read_in_use
from corral.agent.config.apply import ApplyContext, ApplyOutcome, apply_config
from corral.agent.config.file_placements import placements_for
from corral.agent.config.slurm_validation import why_refused
from corral.agent.events import EventLog
from corral.agent.host.base import Daemon, HostError
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.hooks import HooksPlan
from corral.render import cluster_files
from corral.render.host_conf import host_conf
from render.plans import cpu, dev, train

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="a node with devices of its own needs root: run the tests as root"),
]
RELEASE = "22.05"
PATIENCE_S = 120
QUICKLY = "SuspendTimeout=5\n"  # otherwise a released node is off after two minutes


@dataclass(kw_only=True)
class ControllerHost:
    """The host of a controller that a test runs: a line to its supervisor restarts its one daemon."""

    controller: Controller
    restarted: list[str]

    def restart(self, daemon: Daemon) -> None:
        self.restarted.append(daemon.unit)
        if daemon.unit == "slurmctld":
            self.controller.restart()

    def run(self, command: Sequence[str]) -> str:
        # The test's directory here is / there.
        done = self.controller.run(*(word.removeprefix(str(self.controller.directory)) for word in command))
        if done.returncode:
            raise HostError(f"{' '.join(command)} failed with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


@dataclass(kw_only=True)
class Cluster:
    """A controller with a store instead of the bucket."""

    controller: Controller
    directory: Path
    host: ControllerHost
    agents: bytes = b""  # corral's ResumeProgram, which another replaces

    def upload(self, *queues: object, own: str = "", **changes: object) -> None:
        """Write the files of `corral up` for these queues. `own`: lines that the user adds on the head."""
        plan = replace(dev(*queues, slurm_version=RELEASE), **changes)  # type: ignore[arg-type]
        files = files_of(plan)
        bucket = self.directory / "bucket"
        for path, text in files.items():
            (bucket / path).parent.mkdir(parents=True, exist_ok=True)
            (bucket / path).write_text(text)
        if own:
            (self.directory / "etc/slurm/own.conf").write_text(own)

    def apply(self) -> ApplyOutcome:
        resume = self.directory / "opt/corral/bin/resume"
        own = resume.read_bytes()
        resume.write_bytes(self.agents)
        head = ApplyContext(
            host=self.host,  # type: ignore[arg-type]
            run=self.host.run,
            used=lambda: read_in_use(self.host.run),
            journal=EventLog(None),
            sync_accounts=lambda plan: None,
            sync_directory=lambda plan: None,
            root=self.directory,
            state=self.directory / "var/lib/corral",
            refusal=partial(why_refused, root=self.directory),
        )
        try:
            return apply_config(uploaded(self.directory / "bucket"), head)
        finally:
            resume.write_bytes(own)

    def job(self, node: str) -> str:
        """A running job on this node."""
        queue = node.rpartition("-")[0]
        wanted = ("--parsable", f"--partition={queue}", f"--nodelist={node}", "--chdir=/", "--output=/dev/null")
        job = slurms.must(self.controller.run("sbatch", *wanted, "--wrap=sleep 300")).strip()
        self.until(job, "RUNNING")
        return job

    def state(self, job: str) -> str:
        return self.controller.run("squeue", "--noheader", f"--jobs={job}", "--format=%T %N").stdout.strip()

    def until(self, job: str, state: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.state(job).startswith(state):
            assert time.monotonic() < deadline, self.state(job)
            time.sleep(0.1)

    def queues(self) -> list[str]:
        return slurms.must(self.controller.run("sinfo", "--all", "--noheader", "--format=%R %N %a")).splitlines()


def files_of(plan: ClusterPlan) -> dict[str, str]:
    files = {**cluster_files(plan), "slurm/host.conf": host_conf(slurms.SMALL_HOST), "deployed.json": "{}"}
    lines = without_accounting(files)["slurm/slurm.conf"].splitlines(keepends=True)
    # The Prolog would fail: a node here is not a machine.
    kept = "".join(line for line in lines if not line.startswith(("Prolog=", "HealthCheck")))
    return {**without_accounting(files), "slurm/slurm.conf": kept}


def installed_program() -> bytes:
    (program,) = (one for one in placements_for({}, Role.HEAD, None) if one.path.endswith("/resume"))
    return program.content


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    plan = dev(train(4), cpu(), slurm_version=RELEASE)
    with slurms.running_cluster_with_nodes(plan, tmp_path) as controller:
        controller.update(files_of(plan))
        (tmp_path / "opt/corral/bin/resume").write_text(slurms.RESUME)
        made = Cluster(
            controller=controller, directory=tmp_path, host=ControllerHost(controller=controller, restarted=[])
        )
        made.upload(train(4), cpu())
        made.agents = installed_program()
        made.apply()
        made.host.restarted.clear()
        yield made


@pytest.mark.long
def test_what_has_not_changed_restarts_nothing(cluster: Cluster) -> None:
    assert (cluster.apply(), cluster.host.restarted) == (ApplyOutcome(result="nothing"), [])  # type: ignore[arg-type]


def test_a_queue_that_grows_leaves_its_job_alone(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    cluster.upload(train(6), cpu())
    cluster.apply()
    assert (cluster.state(job), cluster.queues()) == ("RUNNING train-3", ["train train-[1-6] up", "cpu cpu-1 up"])


def test_a_queue_that_shrinks_keeps_the_node_of_a_job_until_it_is_free(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    cluster.upload(train(1), cpu())
    outcome = cluster.apply()
    known = [node["NodeName"] for node in slurms.show(cluster.controller, "nodes")]
    assert (outcome.pending_removal, cluster.state(job), cluster.queues(), known) == (
        ("train-3",),
        "RUNNING train-3",
        ["train train-1 up", "cpu cpu-1 up"],
        ["cpu-1", "train-1", "train-3"],
    )


@pytest.mark.long
def test_a_queue_that_goes_keeps_its_jobs_and_takes_no_more(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    cluster.upload(cpu())
    cluster.apply()
    another = cluster.controller.run("sbatch", "--partition=train", "--wrap=hostname")
    assert (cluster.state(job), cluster.queues(), another.returncode) == (
        "RUNNING train-3",
        ["cpu cpu-1 up", "train train-3 drain"],
        1,
    )


@pytest.mark.long
def test_a_job_that_waits_in_a_queue_that_goes_stays(cluster: Cluster) -> None:
    wanted = ("--parsable", "--partition=cpu", "--begin=now+1hour", "--chdir=/", "--wrap=hostname")
    job = slurms.must(cluster.controller.run("sbatch", *wanted)).strip()
    cluster.upload(train(4))
    cluster.apply()
    assert cluster.state(job) == "PENDING"


@pytest.mark.long
def test_a_node_that_gets_another_machine_keeps_the_cores_of_its_job(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    smaller = replace(train(4), node=replace(train().node, cores_per_socket=8))
    cluster.upload(smaller, cpu())
    cluster.apply()
    cores = {node["NodeName"]: node["CoresPerSocket"] for node in slurms.show(cluster.controller, "nodes")}
    assert (cluster.state(job), cores["train-2"], cores["train-3"]) == ("RUNNING train-3", "8", "24")


@pytest.mark.long
def test_a_node_that_is_free_goes_with_the_next_apply(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    cluster.upload(train(1), cpu(), own=QUICKLY)
    cluster.apply()
    slurms.must(cluster.controller.run("scancel", job))
    slurms.must(cluster.controller.run("scontrol", "update", "nodename=train-3", "state=power_down_force"))
    deadline = time.monotonic() + PATIENCE_S
    while "POWERED_DOWN" not in slurms.scontrol(cluster.controller, "show", "node", "train-3"):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    cluster.apply()
    assert [node["NodeName"] for node in slurms.show(cluster.controller, "nodes")] == ["cpu-1", "train-1"]


@pytest.mark.long
def test_the_time_after_which_idle_nodes_go_changes_without_a_restart(cluster: Cluster) -> None:
    cluster.upload(replace(train(4), suspend_after_s=77), cpu())
    cluster.apply()
    found: Mapping[str, str] = slurms.show(cluster.controller, "partitions")[0]
    assert (found["SuspendTime"], cluster.host.restarted) == ("77", [])


@pytest.mark.long
def test_without_its_old_line_a_job_would_be_killed(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    cluster.controller.update(files_of(dev(train(1), cpu(), slurm_version=RELEASE)))
    assert cluster.state(job) == ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"Nonsense": "1"}, "_parse_next_key: Parsing error at unrecognized key: Nonsense"),
        ({"JobSubmitPlugins": "lua"}, "fatal: failed to initialize job_submit plugin"),
    ],
)
def test_a_configuration_that_slurmctld_would_not_start_with_is_refused(
    cluster: Cluster, extra: dict[str, str], why: str
) -> None:
    cluster.upload(train(6), cpu(), extra_slurm=extra)
    outcome = cluster.apply()
    assert (str(outcome.result), why in outcome.reason, cluster.queues(), cluster.host.restarted) == (
        "refused",
        True,
        ["train train-[1-4] up", "cpu cpu-1 up"],
        [],
    )


REFUSING = """function slurm_job_submit(job, partitions, uid)
    slurm.log_user("closed")
    return slurm.ERROR
end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
"""


@pytest.mark.long
def test_a_lua_script_comes_to_a_running_slurmctld_changes_and_goes(cluster: Cluster) -> None:
    job = cluster.job("train-3")
    wanted = ("sbatch", "--partition=cpu", "--hold", "--chdir=/", "--wrap=hostname")
    errors = []
    for script in (REFUSING, REFUSING.replace("closed", "still closed"), ""):
        cluster.upload(train(4), cpu(), hooks=HooksPlan(job_submit=script))
        cluster.apply()
        errors.append(cluster.controller.run(*wanted).stderr.partition("\n")[0])
        time.sleep(1.1)  # Slurm reads a script again that is newer than its last reading, in whole seconds
    assert errors == ["sbatch: error: closed", "sbatch: error: still closed", ""]
    assert cluster.state(job) == "RUNNING train-3"


@pytest.mark.long
def test_a_lua_script_that_is_broken_is_refused(cluster: Cluster) -> None:
    cluster.upload(train(4), cpu(), hooks=HooksPlan(job_submit="function slurm_job_submit("))
    outcome = cluster.apply()
    assert (str(outcome.result), "job_submit.lua:2: <name> or '...' expected" in outcome.reason) == ("refused", True)


@pytest.mark.long
def test_programs_of_the_head_come_to_a_running_slurmctld(cluster: Cluster) -> None:
    cluster.upload(train(4), cpu(), hooks=HooksPlan(epilog_slurmctld="#!/bin/sh\necho ended >>/mnt/seen\n"))
    cluster.apply()
    job = cluster.job("train-3")
    slurms.must(cluster.controller.run("scancel", job))
    deadline = time.monotonic() + PATIENCE_S
    while not (cluster.directory / "seen").exists():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (cluster.directory / "seen").read_text() == "ended\n"
