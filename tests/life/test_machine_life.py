"""Machines that live: `dev` in the box with real slurmctld and slurmd, each machine booted by its own user data.

The stations are fixtures that follow each other; the claims below each are about what was seen there.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import training

import boxes
from corral.agent.credentials import URI
from corral.box import control
from corral.box.vpc.network import Vpc
from corral.box.vpc.probe import probe
from life import Life, begin

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
HEAD_IN_S, JOB_IN_S, GONE_IN_S = 180, 240, 120  # many times what it takes on a machine that does nothing else
HEAD = "10.64.0.23"
IMAGES_USER = "admin"
# What a person types who is on a node, without a key of his own: another node's name, and what he has there.
CROSS = """#!/bin/sh
echo "from $(hostname)"
other=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -1)
getent hosts "$other"
ssh "$other" 'hostname; id -un; env | grep AWS_CONTAINER'
"""
AS_ADA = ("setpriv", "--reuid=2000", "--regid=2000", "--clear-groups")
# Two tenths of a second a step; the notice is seen within five seconds.
TRAINING = ("--steps", "80", "--every", "30", "--nap", "0.2", "--layers", "1")


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    assert probe().users, probe().problem
    directory = tmp_path_factory.mktemp("machines")
    with boxes.running_box(directory / "box", machines=True) as box:
        life = begin(directory, box)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "key")], check=True)
        with (life.project / "stacks/cluster/Pulumi.dev.yaml").open("a") as spec:
            spec.write(f"    access:\n      ssh_keys: ['{(directory / 'key.pub').read_text().strip()}']\n")
        yield life


@pytest.fixture(scope="module")
def born(life: Life) -> Life:
    """The cluster is up, and its head has booted."""
    life.done("up", "dev")
    life.seen["nodes at first"] = until(lambda: on_head(life, "sinfo", "--noheader", "--format=%R %D %t"), HEAD_IN_S)
    return life


@pytest.fixture(scope="module")
def worked(born: Life) -> Life:
    """A job on two nodes that did not exist when it was submitted."""
    command = "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"
    began = time.monotonic()
    born.seen["job"] = on_head(
        born, "timeout", str(JOB_IN_S), "srun", "-N2", "--gpus-per-node=8", "--chdir=/", "sh", "-c", command
    )
    born.seen["job_s"] = time.monotonic() - began
    born.seen["address"] = on_head(born, "getent", "hosts", "train-1")
    born.seen["node"] = on_head(born, "scontrol", "show", "node", "train-1")
    born.seen["status"] = status(born)
    return born


@pytest.fixture(scope="module")
def interrupted(worked: Life) -> Life:
    """A model that trained on the two warm nodes lost one of them to the spot market, and ended elsewhere."""
    shared = home(worked)
    training.share(shared)
    script = ("/opt/corral/jobs/train/jax.sbatch", "/home/train.py", *TRAINING)
    with training.undisturbed(Path(worked.box.dir).parent / "undisturbed", TRAINING) as expected:
        submit = ("sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", training.JOB)
        submitted = on_head(worked, *submit, *script)
        losses = shared / f"checkpoints/jax-{submitted}.losses"
        until(lambda: "trains" if losses.exists() and losses.read_text().count("\n") > 2 else "", JOB_IN_S)
        control.give_spot_notice(worked.box.dir, "train-1", "100s")
        until(lambda: "" if on_head(worked, "squeue", "--noheader") else "ended", JOB_IN_S)
    worked.seen["losses"], worked.seen["undisturbed"] = losses.read_text(), expected.read_text()
    worked.seen["interrupted"] = on_head(worked, "scontrol", "--oneliner", "show", "job", submitted)
    worked.seen["records"] = until(lambda: records(worked) if "RUNNING" not in records(worked) else "", JOB_IN_S)
    worked.seen["output"] = (shared / f"jax-{submitted}.out").read_text()
    return worked


@pytest.fixture(scope="module")
def crossed(interrupted: Life) -> Life:
    """An ordinary user, who had never logged in, went from the head to a node, and in a job from node to node."""
    until(lambda: "" if len(control.machines(interrupted.box.dir)) > 3 else "gone", GONE_IN_S)
    shared = home(interrupted)
    (shared / "cross.sh").write_text(CROSS)
    shutil.copy(interrupted.directory / "key", shared / "key")  # which opens the head; here it is root's
    interrupted.seen["ssh"] = as_user(interrupted, "ssh train-2 id -un")
    submit = "sbatch --wait --nodelist=train-2,train-3 --output=cross.out /home/cross.sh"
    as_user(interrupted, f"timeout {JOB_IN_S} {submit}")
    interrupted.seen["crossed"] = as_user(interrupted, "cat cross.out").splitlines()
    known = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
    to_head = ("ssh", "-i", "/home/key", *known, f"{IMAGES_USER}@{HEAD}", "hostname")
    interrupted.seen["on the head"] = on_machines(interrupted, *to_head)
    return interrupted


@pytest.fixture(scope="module")
def suspended(crossed: Life) -> Life:
    """One of the nodes is powered down, as after its idle time."""
    on_head(crossed, "scontrol", "update", "nodename=train-3", "state=power_down")
    until(lambda: "" if len(control.machines(crossed.box.dir)) > 2 else "gone", GONE_IN_S)
    return crossed


@pytest.fixture(scope="module")
def used(suspended: Life) -> Life:
    """An ordinary user's job, which brings nothing from where it was submitted, ran on the node that is left."""
    shutil.copy(Path(__file__).parent / "programs/who_am_i.py", home(suspended))
    where = control.machines(suspended.box.dir)
    for name, directory in where.items():
        done = Vpc(directory=directory).run(name, ("useradd", "--uid=2000", "--no-create-home", "ada"))
        assert done.returncode == 0, done.stderr
    output = home(suspended) / "ada.out"
    output.touch()
    output.chmod(0o666)
    submit = ("sbatch", "--wait", "--export=NONE", "--chdir=/", "--output=/home/ada.out")
    program = "/usr/bin/python3 /home/who_am_i.py"
    on_head(suspended, "timeout", str(JOB_IN_S), *AS_ADA, *submit, "--nodelist=train-2", f"--wrap={program}")
    suspended.seen["ada"] = output.read_text()
    return suspended


@pytest.fixture(scope="module")
def replaced(used: Life) -> Life:
    """The head was lost under a running and a waiting job, and the next up made another."""
    suspended = used
    on_head(suspended, "sbatch", "--chdir=/", "--output=/dev/null", "--nodelist=train-2", "--wrap=sleep 300")
    on_head(suspended, "sbatch", "--chdir=/", "--begin=now+1hour", "--wrap=hostname")
    until(lambda: "R" if "R" in jobs(suspended) else "", JOB_IN_S)
    time.sleep(6)  # slurmctld saves what changed within five seconds
    suspended.seen["jobs before"] = jobs(suspended)
    boxes.client(suspended.box, "ec2").terminate_instances(InstanceIds=head_ids(suspended))
    suspended.done("up", "dev")
    suspended.seen["jobs after"] = until(lambda: jobs(suspended), HEAD_IN_S)
    suspended.seen["records after"] = records(suspended)
    suspended.seen["slurmdbd"] = on_head(suspended, "cat", "/var/log/slurm/slurmdbd.log")
    return suspended


@pytest.fixture(scope="module")
def ended(replaced: Life) -> Life:
    """The cluster is down."""
    replaced.seen["machines"] = len(control.machines(replaced.box.dir))
    replaced.seen["sshd"] = sshds(replaced)
    replaced.done("down", "dev", "--now", "--grace", "1")
    until(lambda: "" if control.machines(replaced.box.dir) else "none", GONE_IN_S)
    return replaced


def on_head(life: Life, *command: str) -> str:
    """What the command printed on the head; empty while there is none, or where it failed."""
    where = control.machines(life.box.dir)
    for name in head_ids(life):
        if name in where:
            return Vpc(directory=where[name]).run(name, command).stdout.strip()
    return ""


def on_machines(life: Life, *command: str) -> list[str]:
    """What the command printed on each machine, the head too, in no order."""
    where = control.machines(life.box.dir)
    return [Vpc(directory=where[name]).run(name, command).stdout.strip() for name in where]


def as_user(life: Life, command: str) -> str:
    """What a shell command of the image's user printed, who logs in for it on the head."""
    return on_head(life, "su", "-", IMAGES_USER, "-c", command)


def sshds(life: Life) -> list[int]:
    """The processes of sshd on this box's machines, by the numbers that they have on this one."""
    parents, found = {}, []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # processes come and go
            pid, program, _, parent = re.match(r"(\d+) \((.*)\) (\S) (\d+)", entry.read_text()).groups()  # type: ignore[union-attr]
            parents[int(pid)] = int(parent)
            found += [int(pid)] * (program == "sshd")
    return [pid for pid in found if life.box.pid in ancestors(pid, parents)]


def ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while pid := parents.get(pid, 0):
        yield pid


def head_ids(life: Life) -> list[str]:
    """The head that runs, if one does: it is known by its address."""
    running = [{"Name": "instance-state-name", "Values": ["running"]}]
    found = boxes.client(life.box, "ec2").describe_instances(Filters=running)["Reservations"]
    return [one["InstanceId"] for held in found for one in held["Instances"] if one["PrivateIpAddress"] == HEAD]


def home(life: Life) -> Path:
    """Where the machines' /home lies on this one."""
    systems = boxes.client(life.box, "efs").describe_file_systems()["FileSystems"]
    return Path(life.box.dir) / "machines/file-systems" / systems[0]["FileSystemId"]


def until(found: Callable[[], str], seconds: float) -> str:
    """What is found, as soon as it is anything."""
    deadline = time.monotonic() + seconds
    while not (text := found()):
        assert time.monotonic() < deadline, f"nothing within {seconds} s"
        time.sleep(0.2)
    return text


def status(life: Life) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(life.corral("status", "dev", "--box", "--json").out)
    return document


def jobs(life: Life) -> str:
    return on_head(life, "squeue", "--noheader", "--format=%A %t", "--sort=i")


def records(life: Life) -> str:
    """What sacct knows of the first two jobs."""
    return on_head(life, "sacct", "--allusers", "--allocations", "-nP", "--jobs=1,2", "--format=JobID,State")


def test_the_head_runs_slurmctld_with_the_clusters_nodes(born: Life) -> None:
    assert born.seen["nodes at first"] == "train 4 idle~"


def test_connect_runs_a_command_on_the_head(born: Life) -> None:
    ended = born.corral("connect", "dev", "--box", "--", "sh", "-c", "hostname; exit 3", code=None)
    assert (ended.code, ended.out) == (3, "dev-head\n")


def test_a_job_on_two_cold_nodes_runs_with_sixteen_gpus(worked: Life) -> None:
    assert sorted(worked.seen["job"].splitlines()) == ["train-1 0,1,2,3,4,5,6,7", "train-2 0,1,2,3,4,5,6,7"]


def test_a_node_is_found_by_its_name(worked: Life) -> None:
    address = re.search(r"NodeAddr=(\S+)", worked.seen["node"])
    assert address and worked.seen["address"].split() == [address[1], "train-1.dev.corral.internal"]


def test_a_users_job_has_the_job_role_and_neither_the_machines_metadata_nor_the_munge_key(used: Life) -> None:
    """13 is "permission denied"."""
    assert used.seen["ada"].splitlines() == ["job ada", "metadata 13"]


def test_status_knows_which_nodes_the_machines_are(worked: Life) -> None:
    assert [row["nodes"] for row in worked.seen["status"]["instances"]] == [["train-[1-2]"]]


def test_a_job_that_loses_a_spot_machine_ends_as_if_it_had_not(interrupted: Life) -> None:
    assert re.findall(r"\b(JobState|Restarts)=(\w+)", interrupted.seen["interrupted"]) == [
        ("JobState", "COMPLETED"),
        ("Restarts", "1"),
    ]


def test_it_trained_on_two_machines_from_where_it_was(interrupted: Life) -> None:
    found = re.findall(r"2 x cpu, 2 processes, continues after step (\d+)", interrupted.seen["output"])
    assert (len(found), found[0], int(found[1]) > 0) == (2, "0", True)


def test_its_losses_are_bit_for_bit_those_of_a_run_that_was_not_interrupted(interrupted: Life) -> None:
    steps = [line.split()[0] for line in interrupted.seen["undisturbed"].splitlines()]
    assert steps == [str(step) for step in range(1, 81)]
    assert interrupted.seen["losses"] == interrupted.seen["undisturbed"]


def test_it_moved_when_its_checkpoint_was_written_not_at_the_last_moment(interrupted: Life) -> None:
    assert "corral: requeue, the checkpoint is written and a machine is taken away" in interrupted.seen["output"]


def test_a_user_goes_by_ssh_from_the_head_to_a_node_without_a_question(crossed: Life) -> None:
    assert crossed.seen["ssh"] == IMAGES_USER


def test_in_a_job_a_user_goes_by_ssh_from_node_to_node_and_has_the_job_role_there(crossed: Life) -> None:
    began, found, *there = crossed.seen["crossed"]
    address, name = found.split()
    other = f"ip-{address.replace('.', '-')}"
    assert (name, began == f"from {other}", there) == (
        "train-3.dev.corral.internal",
        False,
        [other, IMAGES_USER, f"AWS_CONTAINER_CREDENTIALS_FULL_URI={URI}"],
    )


def test_a_key_of_the_spec_opens_the_head_as_the_images_user(crossed: Life) -> None:
    assert crossed.seen["on the head"] == ["dev-head"] * 3


def test_a_node_that_is_powered_down_ends_its_machine(suspended: Life) -> None:
    assert len(control.machines(suspended.box.dir)) == 2  # the head and the other node


def test_jobs_survive_the_head(replaced: Life) -> None:
    assert replaced.seen["jobs before"] == replaced.seen["jobs after"] == "5 R\n6 PD"


def test_sacct_has_the_jobs_that_ended(interrupted: Life) -> None:
    assert interrupted.seen["records"].splitlines() == ["1|COMPLETED", "2|COMPLETED"]


def test_the_records_of_jobs_survive_the_head(replaced: Life) -> None:
    assert replaced.seen["records after"] == replaced.seen["records"]


def test_slurmdbd_complains_about_nothing(replaced: Life) -> None:
    lines = replaced.seen["slurmdbd"].splitlines()
    # It tells a slurmctld that has only just registered, and does not listen yet, of itself.
    complaints = [line for line in lines if "error" in line and "Connection refused to dev" not in line]
    assert (len(lines) > 0, complaints) == (True, [])


def test_down_leaves_no_machine_and_no_data_of_one(ended: Life) -> None:
    places = Path(ended.box.dir) / "machines"
    assert [sorted(path.name for path in (places / kind).iterdir()) for kind in ("disks", "volumes")] == [[], []]


def test_each_machine_has_one_sshd_and_down_leaves_none(ended: Life) -> None:
    left = [pid for pid in ended.seen["sshd"] if Path(f"/proc/{pid}").exists()]
    assert (len(ended.seen["sshd"]), left) == (ended.seen["machines"], [])
