"""The rendered files in Debian's slurmctld: it reads the planned values and logs no errors."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller, SlurmError, running_slurmctld

import slurms
from corral.catalog.aws.images import BOX_PROFILE
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render import agent_bundle, cluster_files
from corral.render.job_scripts import job_files
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT
from render.plans import cpu, dev, train

pytestmark = pytest.mark.slurm

DEBIANS = "22.05"
PLAN = dev(train(), cpu(), slurm_version=DEBIANS)
OFF = "IDLE+CLOUD+POWERED_DOWN"
NOT_PERMITTED = "sbatch: error: Batch job submission failed: User's group not permitted to use this partition\n"
# As root, switch to an ordinary user.
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A slurmctld with the files of PLAN; tests only read."""
    with slurms.running_cluster(PLAN, tmp_path_factory.mktemp("slurm")) as running:
        yield running


def chosen(found: Mapping[str, str], expected: Mapping[str, str]) -> Mapping[str, str | None]:
    """The fields of `found` that are expected."""
    return {key: found.get(key) for key in expected}


def test_the_system_has_the_release_that_the_files_are_for(controller: Controller) -> None:
    assert slurms.show_config(controller)["SLURM_VERSION"].startswith(f"{DEBIANS}.")


def test_config_is_the_planned_one(controller: Controller) -> None:
    expected = {
        "ClusterName": "dev",
        "SlurmctldHost[0]": "dev-head(10.64.0.26)",
        "SlurmctldParameters": "cloud_reg_addrs,enable_configless,idle_on_node_suspend",
        "CommunicationParameters": "NoAddrCache",
        "TreeWidth": "65533",
        "PrivateData": "cloud",
        "ReturnToService": "2",
        "SlurmdTimeout": "180 sec",
        "MessageTimeout": "60 sec",
        "BatchStartTimeout": "180 sec",
        "ResumeProgram": "/opt/corral/bin/resume",
        "ResumeFailProgram": "/opt/corral/bin/resume-failed",
        "SuspendProgram": "/opt/corral/bin/suspend",
        "ResumeRate": "0 nodes/min",
        "SuspendRate": "0 nodes/min",
        "ResumeTimeout": "1200 sec",
        "SuspendTimeout": "120 sec",
        "SuspendTime": "INFINITE",
        "SuspendExcNodes": "cpu-1",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CORE_MEMORY",
        "GresTypes": "gpu",
        "JobRequeue": "1",
        "LaunchParameters": "use_interactive_step",
        "PropagateResourceLimitsExcept": "MEMLOCK,NOFILE",
        "MailProg": "/usr/bin/true",
    }
    assert chosen(slurms.show_config(controller), expected) == expected


def test_config_of_the_host_is_that_of_ec2(controller: Controller) -> None:
    expected = {
        "SlurmctldPort": "6817",
        "SlurmdPort": "6818",
        "StateSaveLocation": "/var/lib/corral/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid",
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/cgroup,task/affinity",
        "PrologFlags": "Alloc,Contain",
        "ConstrainDevices": "yes",
        "ConstrainCores": "yes",
        "ConstrainRAMSpace": "yes",
        "CgroupPlugin": "autodetect",
    }
    assert chosen(slurms.show_config(controller), expected) == expected


def test_slurmctld_runs_as_slurm(controller: Controller) -> None:
    assert slurms.show_config(controller)["SlurmUser"].startswith("slurm(")


def test_nodes_are_the_planned_ones(controller: Controller) -> None:
    p4d = {
        "Sockets": "2",
        "CoresPerSocket": "24",
        "ThreadsPerCore": "2",
        "CPUTot": "96",
        "RealMemory": "1120665",
        "Gres": "gpu:a100:8",
        "AvailableFeatures": "p4d.24xlarge,efa",
        "Weight": "1",
        "State": OFF,
        "Partitions": "train",
    }
    m7i = {
        "Sockets": "1",
        "CoresPerSocket": "4",
        "ThreadsPerCore": "2",
        "CPUTot": "8",
        "RealMemory": "31129",
        "Gres": "(null)",
        "AvailableFeatures": "m7i.2xlarge",
        "Weight": "1",
        "State": OFF,
        "Partitions": "cpu",
    }
    found = {node["NodeName"]: chosen(node, p4d) for node in slurms.show(controller, "nodes")}
    assert found == {"cpu-1": m7i, "train-1": p4d, "train-2": p4d, "train-3": p4d, "train-4": p4d}


def test_partitions_are_the_planned_ones(controller: Controller) -> None:
    train_partition = {
        "Nodes": "train-[1-4]",
        "TotalNodes": "4",
        "TotalCPUs": "384",
        "Default": "YES",
        "MaxTime": "UNLIMITED",
        "SuspendTime": "600",
        "JobDefaults": "DefCpuPerGPU=12",
        "State": "UP",
    }
    cpu_partition = {
        "Nodes": "cpu-1",
        "TotalNodes": "1",
        "TotalCPUs": "8",
        "Default": "NO",
        "MaxTime": "1-12:00:00",
        "SuspendTime": "600",
        "JobDefaults": "(null)",
        "State": "UP",
    }
    found = {part["PartitionName"]: chosen(part, train_partition) for part in slurms.show(controller, "partitions")}
    assert found == {"train": train_partition, "cpu": cpu_partition}


def test_memory_of_every_queue_is_given_by_cpu(controller: Controller) -> None:
    assert [part.get("DefMemPerCPU") for part in slurms.show(controller, "partitions")] == ["11673", "3891"]


SHARES = {
    "": "cpu=2,mem=23346M,node=1,billing=2",
    "--cpus-per-task=96": "cpu=96,mem=1120608M,node=1,billing=96",
    "--gpus=1": "cpu=12,mem=140076M,node=1,billing=12",
    "--gres=gpu:2": "cpu=24,mem=280152M,node=1,billing=24",
    "--gpus-per-node=8": "cpu=96,mem=1120608M,node=1,billing=96",
    "--exclusive": "cpu=96,mem=1120608M,node=1,billing=96",
    "--exclusive --mem=0 --gpus-per-node=8": "cpu=96,mem=1120665M,node=1,billing=96",
}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The resources of jobs with the options of SHARES, in a queue that fits all; its nodes only power up."""
    with slurms.running_cluster(dev(train(8), slurm_version=DEBIANS), tmp_path_factory.mktemp("shares")) as controller:
        submit = ("sbatch", "--parsable", "--wrap=hostname")
        jobs = {options: slurms.must(controller.run(*submit, *options.split())).strip() for options in SHARES}
        yield {options: allocated(controller, job) for options, job in jobs.items()}


def allocated(controller: Controller, job: str) -> str:
    """The resources of a job, once it has a node."""
    deadline = time.monotonic() + 60  # the main scheduler may run only once a minute
    while True:
        shown = slurms.scontrol(controller, "--oneliner", "show", "job", job).split()
        if any(word.startswith("NodeList=train-") for word in shown):
            return next(word for word in shown if word.startswith("TRES=")).removeprefix("TRES=")
        assert time.monotonic() < deadline, shown
        time.sleep(0.1)


@pytest.mark.long
@pytest.mark.parametrize("options", SHARES, ids=lambda options: options or "nothing")
def test_a_job_gets_the_memory_of_its_share_of_a_gpu_node(given: Mapping[str, str], options: str) -> None:
    assert given[options] == SHARES[options]


def test_slurmctld_complains_about_nothing(controller: Controller) -> None:
    assert slurms.unexpected_log_lines(controller) == []


@pytest.mark.parametrize("script", ["jax", "torchrun"])
def test_sbatch_accepts_the_job_script(controller: Controller, script: str) -> None:
    done = controller.run("sbatch", "--test-only", f"/opt/corral/jobs/train/{script}.sbatch", "train.py")
    assert (done.returncode, "to start at" in done.stderr, "in partition train" in done.stderr) == (0, True, True)


def scripts_by_queue(name: str) -> tuple[ClusterPlan, Mapping[str, str]]:
    """The plan of a shipped environment for Debian's Slurm, and the queue of each of its scripts."""
    environment = read_environment(PROJECT, name)
    plan = plan_cluster(environment.cluster, plan_base(environment.base), image_profile=BOX_PROFILE)
    return plan, {path: path.split("/")[1] for path in job_files(plan)}


@pytest.mark.parametrize("name", ["dev", "mixed", "train"])
def test_slurm_takes_every_script_of_every_queue_of_a_shipped_environment_into_its_queue(
    name: str, tmp_path: Path
) -> None:
    plan, queues = scripts_by_queue(name)
    with slurms.running_cluster(plan, tmp_path) as controller:
        done = {path: controller.run("sbatch", "--hold", f"/opt/corral/{path}", "train.py") for path in queues}
        listed = slurms.must(controller.run("squeue", "--noheader", "--sort=i", "--format=%P"))
        errors = slurms.unexpected_log_lines(controller)
    assert ({path: job.stderr for path, job in done.items() if job.returncode}, listed.split(), errors) == (
        {},
        [*queues.values()],
        [],
    )


@pytest.mark.long
def test_without_slurmdbd_no_job_is_of_an_account_that_a_queue_allows(tmp_path: Path) -> None:
    plan = dev(replace(cpu(), accounts=("alice",)), slurm_version=DEBIANS)
    with slurms.running_cluster(plan, tmp_path) as controller:
        job = slurms.must(
            controller.run("sbatch", "--parsable", "--partition=cpu", "--account=alice", "--wrap=hostname")
        ).strip()
        reason = slurms.must(controller.run("squeue", "--noheader", "--format=%r", f"--jobs={job}")).strip()
    assert reason == "Job's account not known, so it can't use this partition (cpu allows alice)"


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root")
@pytest.mark.parametrize(("groups", "error"), [("nogroup", ""), ("daemon", NOT_PERMITTED)])
def test_a_queue_lets_unix_groups_in_by_its_own_key(tmp_path: Path, groups: str, error: str) -> None:
    plan = dev(replace(cpu(), extra={"AllowGroups": groups}), slurm_version=DEBIANS)
    with slurms.running_cluster(plan, tmp_path) as controller:
        done = controller.run(*AS_NOBODY, "sbatch", "--hold", "--partition=cpu", "--wrap=hostname")
    assert done.stderr == error


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ({"PluginDir": "/nowhere"}, "PluginDir: /nowhere: No such file or directory"),
        ({"JobSubmitPlugins": "lua"}, "Unable to stat /etc/slurm/job_submit.lua"),
        ({"PreemptType": "preempt/partition_prio"}, "PreemptType and PreemptMode values incompatible"),
        ({"PreemptMode": "REQUEUE"}, "PreemptType and PreemptMode values incompatible"),
        ({"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND"}, "PreemptMode=SUSPEND requires GANG"),
        ({"SlurmSchedLogFile": "/nowhere/x"}, "could not open /nowhere/x"),
        ({"JobCompType": "jobcomp/filetxt"}, "open /var/log/slurm_jobcomp.log"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_slurmctld_ends_over_what_a_spec_refuses(tmp_path: Path, extra: Mapping[str, str], reason: str) -> None:
    with pytest.raises(SlurmError, match=reason), slurms.running_cluster(replace(PLAN, extra_slurm=extra), tmp_path):
        pass


@pytest.mark.long
@pytest.mark.parametrize(
    "extra",
    [
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "SUSPEND,GANG"},
        {"JobCompType": "jobcomp/filetxt", "JobCompLoc": "/var/log/slurm/jobs.log"},
    ],
    ids=lambda value: " ".join(value),
)
def test_slurmctld_takes_the_suggested_value(tmp_path: Path, extra: Mapping[str, str]) -> None:
    with slurms.running_cluster(replace(PLAN, extra_slurm=extra), tmp_path) as controller:
        assert slurms.unexpected_log_lines(controller) == []


def test_a_queue_that_grew_shows_its_new_nodes_and_keeps_the_users_lines(tmp_path: Path) -> None:
    with slurms.running_cluster(PLAN, tmp_path) as controller:
        (tmp_path / "etc/slurm/own.conf").write_text("KillWait=45\n")
        controller.update(cluster_files(dev(train(6), cpu(), slurm_version=DEBIANS)))
        names = [node["NodeName"] for node in slurms.show(controller, "nodes")]
        kill_wait = slurms.show_config(controller)["KillWait"]
        log_errors = slurms.unexpected_log_lines(controller)
    assert (names, kill_wait, log_errors) == (["cpu-1", *(f"train-{n}" for n in range(1, 7))], "45 sec", [])


@pytest.mark.long
def test_two_clusters_with_one_name_and_address_run_side_by_side(controller: Controller, tmp_path: Path) -> None:
    with slurms.running_cluster(dev(cpu(), slurm_version=DEBIANS), tmp_path) as other:
        names = [node["NodeName"] for node in slurms.show(other, "nodes")]
    assert (names, len(slurms.show(controller, "nodes"))) == (["cpu-1"], 5)


@pytest.mark.long
def test_a_file_that_slurm_refuses_is_an_error_with_slurms_reason(tmp_path: Path) -> None:
    files = {**cluster_files(PLAN), "slurm/slurm.conf": "ClusterName=dev\nNonsense=1\nInclude host.conf\n"}
    with pytest.raises(SlurmError, match="slurmctld exited at once"), running_slurmctld(files, tmp_path):
        pass


def test_the_command_runs_with_the_files_of_a_directory(tmp_path: Path) -> None:
    for name, text in cluster_files(PLAN).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [
        sys.executable,
        "-m",
        "tools.slurm_head",
        str(tmp_path),
        "--",
        "sinfo",
        "--noheader",
        "--format=%R %D %t",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["train 4 idle~", "cpu 1 idle~"])


@pytest.mark.long
def test_an_ordinary_user_can_run_it_too(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:  # not below tmp_path, which only its owner can read
        subprocess.run(["tar", "-xz", "-C", name], input=agent_bundle(), check=True)
        shutil.copytree(PROJECT / "tools/slurm_head", f"{name}/tools/slurm_head")
        for path, text in cluster_files(PLAN).items():
            (Path(name) / "files" / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(name) / "files" / path).write_text(text)
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        python = (*AS_NOBODY, "/usr/bin/python3", "-m", "tools.slurm_head", f"{name}/files", "--")
        done = subprocess.run(
            [*python, "sinfo", "--noheader", "--format=%R %D %t"],
            env={"PYTHONPATH": name},
            capture_output=True,
            text=True,
        )
    assert (done.stderr, done.stdout.splitlines()) == ("", ["train 4 idle~", "cpu 1 idle~"])


HOLD = """
import sys, pathlib, render.plans, slurms
with slurms.running_cluster(render.plans.dev(slurm_version="22.05"), pathlib.Path(sys.argv[1])) as controller:
    print(controller.process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_slurmctld_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(PROJECT / "tests"), str(PROJECT)))}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as starter:
        assert starter.stdout is not None
        holder = os.pidfd_open(int(starter.stdout.readline()))
        starter.send_signal(signal.SIGKILL)
    try:
        assert ended(holder)
    finally:
        os.close(holder)


def ended(pidfd: int) -> bool:
    """True once the process has ended, and its namespaces with it."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(20_000))
