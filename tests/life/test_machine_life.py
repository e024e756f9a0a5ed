"""Machines in the box: `dev` with real slurmctld and slurmd, each machine booted by its own user data.

One scenario, from the first job on cold nodes to a down while a job runs; a failure names its step.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import training
from canaries import ACCOUNT, Secret, crash, locations, secrets_of, served, shown
from clusters import UP_IN_S, Cluster
from tools.vm_life.job_attacks import (
    AS_ADA,
    ATTACKER,
    NO_ROUTE_TO_IPV6,
    ON_A_NODE,
    ON_THE_HEAD,
    ROOT,
    ROUTE_TO_IPV6,
    VICTIM,
    script,
)

import boxes
from corral.box import account, control
from corral.box.vpc.capabilities import probe_host
from corral.model.job_role import URI, VARIABLE
from corral.model.users import derived_id
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm]
PROGRAMS = Path(__file__).parent / "programs"
BUCKET = f"corral-dev-{account.ACCOUNT}-us-east-1"
HEAD = "10.64.0.23"
IMAGES_USER = "admin"
# What a person types who is on a node, without a key of his own: another node's name, and what he has there.
CROSS = """#!/bin/sh
echo "from $(hostname)"
other=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -1)
getent hosts "$other"
ssh "$other" 'hostname; id -un; env | grep AWS_CONTAINER'
"""
KNOWN = (
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "LogLevel=ERROR",
    "-o",
    "BatchMode=yes",
)
ADA = "        ada: {{uid: 2000, groups: [vision], ssh_keys: ['{key}']}}\n"
# A secret that jobs may read, and the part of the `aws` command that they do it with: boto3, as the job.
SECRET, SECRET_VARIABLE = "0a1b2c3d4e5f60718293a4b5c6d7e8f9", "WANDB_API_KEY"
AWS = """#!/usr/bin/python3
import sys
sys.path.insert(0, "/opt/corral/library")
import boto3
service, action, _, region, _, name, *_ = sys.argv[1:]
assert (service, action) == ("secretsmanager", "get-secret-value")
client = boto3.client(service, region_name=region, endpoint_url="http://10.64.0.1")
print(client.get_secret_value(SecretId=name)["SecretString"])
"""
# These jobs are root's, whom Slurm's TaskProlog leaves to the machine's role.
WITH_AWS = f"PATH=/home/bin:/usr/bin:/bin,{VARIABLE}={URI}"
# Two tenths of a second a step; the notice is seen within five seconds.
TRAINING = ("--steps", "80", "--every", "30", "--nap", "0.2", "--layers", "1")
ENDLESS = 20_000  # steps of a tenth of a second: longer than the test
# The jobs by their numbers: srun on cold nodes, the training that loses a machine, then those of users.
COLD, TRAINED, RUNNING, WAITING = 1, 2, 8, 9
ROWS = ["head", "train-1", "train-2", "train-3", "1 sh", "2 jax", "3 cross.sh"]
ROWS += ["4 wrap", "5 wrap", "6 sh", "7 wrap", "8 jax", "9 later"]
OF_ADA = ("train-4", "10 wrap")  # her last job, and the node that booted for it


def test_machines_from_their_first_job_to_a_down_under_jobs(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("machines")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        boot_the_head(cluster)
        run_on_cold_nodes(cluster)
        lose_a_spot_machine(cluster)
        go_by_ssh(cluster)
        power_a_node_down(cluster)
        run_as_a_user(cluster)
        attack_as_a_user(cluster)
        look_at_jobs(cluster)
        lose_the_head(cluster)
        refuse_to_go_down(cluster)
        remove_a_person(cluster)
        secrets = look_for_secrets(cluster)
        go_down(cluster)
        look_at_what_is_gone(cluster)
        look_for_secrets_of_what_is_gone(cluster, secrets)


def boot_the_head(cluster: Cluster) -> None:
    """The first up, with a key of the user's in the spec."""
    directory = cluster.life.directory
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "key")], check=True)
    key = (directory / "key.pub").read_text().strip()
    with cluster.spec.open("a") as spec:
        spec.write(f"    access:\n      ssh_keys: ['{key}']\n      users:\n{ADA.format(key=key)}        bob: {{}}\n")
        spec.write(f"    jobs:\n      secrets: {{{SECRET_VARIABLE}: team/wandb}}\n")
    cluster.life.client("secretsmanager").create_secret(Name="team/wandb", SecretString=SECRET)
    cluster.life.done("up", "dev")
    with step("the head runs slurmctld with the cluster's nodes"):
        nodes = cluster.until(lambda: cluster.on_head("sinfo", "--noheader", "--format=%R %D %t"), UP_IN_S)
        assert nodes == "train 4 idle~"
    with step("connect runs a command on the head"):
        done = cluster.life.corral("connect", "dev", "--box", "--", "sh", "-c", "hostname; exit 3", code=None)
        assert (done.code, done.out) == (3, "dev-head\n")


def run_on_cold_nodes(cluster: Cluster) -> None:
    """A job on two nodes that did not exist when it was submitted."""
    with step("a job on two cold nodes runs with sixteen GPUs"):
        command = ("sh", "-c", "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES")
        job = cluster.on_head("timeout", "240", "srun", "-N2", "--gpus-per-node=8", "--chdir=/", *command)
        assert sorted(job.splitlines()) == ["train-1 0,1,2,3,4,5,6,7", "train-2 0,1,2,3,4,5,6,7"]
    with step("a node is found by its name"):
        address = cluster.node("train-1")["NodeAddr"]
        assert cluster.on_head("getent", "hosts", "train-1").split() == [address, "train-1.dev.corral.internal"]
    with step("status knows which nodes the machines are"):
        status = json.loads(cluster.life.corral("status", "dev", "--box", "--json").out)
        assert [row["nodes"] for row in status["instances"]] == [["train-[1-2]"]]
    with step("status --events has the launch and that its nodes are up"):
        cluster.until(lambda: {"train-1", "train-2"} <= {node for kind, node in events(cluster) if kind == "up"})
        assert sorted(events(cluster)) == [("launched", "train-[1-2]"), ("up", "train-1"), ("up", "train-2")]


def events(cluster: Cluster) -> list[tuple[str, str]]:
    """The kinds of events of nodes and the nodes, as `corral status` lists them."""
    listed = cluster.life.corral("status", "dev", "--box", "--events").out
    return re.findall(r"^\S+ \S+ +(\S+) +(train-\S+)", listed, re.MULTILINE)


def lose_a_spot_machine(cluster: Cluster) -> None:
    """A model that trains on the two warm nodes loses one of them to the spot market, and ends elsewhere."""
    shared = cluster.home()
    training.share(shared)
    (shared / "bin").mkdir()
    (shared / "bin/aws").write_text(AWS)
    (shared / "bin/aws").chmod(0o755)
    script = ("/opt/corral/jobs/train/jax.sbatch", "/home/train.py", *TRAINING)
    with training.undisturbed(cluster.life.directory / "undisturbed", TRAINING) as expected:
        submit = ("sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", f"{training.JOB},{WITH_AWS}")
        job = cluster.on_head(*submit, *script)
        losses = shared / f"checkpoints/jax-{job}.losses"
        cluster.until(lambda: losses.exists() and losses.read_text().count("\n") > 2)
        control.inject_fault(cluster.life.box.dir, "spot-notice", target="train-1", after="100s")
        cluster.until(lambda: not cluster.on_head("squeue", "--noheader"))
    output, undisturbed = (shared / f"jax-{job}.out").read_text(), expected.read_text()
    with step("a job that loses a spot machine ends as if it had not"):
        shown = cluster.job(int(job))
        assert (shown["JobState"], shown["Restarts"]) == ("COMPLETED", "1")
    with step("it trained on two machines from where it was"):
        found = re.findall(r"2 x cpu, 2 processes, continues after step (\d+)", output)
        assert (len(found), found[0], int(found[1]) > 0) == (2, "0", True)
    with step("its losses are bit for bit those of a run that was not interrupted"):
        assert [line.split()[0] for line in undisturbed.splitlines()] == [str(number) for number in range(1, 81)]
        assert losses.read_text() == undisturbed
    with step("it moved when its checkpoint was written, not at the last moment"):
        assert "corral: requeue, the checkpoint is written and a machine is being reclaimed" in output
    with step("sacct has the jobs that ended"):
        known = cluster.until(lambda: "RUNNING" not in (found := records(cluster)) and found)
        assert known.splitlines() == ["1|COMPLETED", "2|COMPLETED"]


def records(cluster: Cluster) -> str:
    """What sacct knows of the first two jobs."""
    jobs = f"--jobs={COLD},{TRAINED}"
    return cluster.on_head("sacct", "--allusers", "--allocations", "-nP", jobs, "--format=JobID,State")


def go_by_ssh(cluster: Cluster) -> None:
    """An ordinary user, who had never logged in, goes from the head to a node, and in a job from node to node."""
    cluster.until(lambda: len(control.machines(cluster.life.box.dir)) <= 3)
    (cluster.home() / "cross.sh").write_text(CROSS)
    key = shutil.copy(cluster.life.directory / "key", cluster.home() / "key")  # which opens the head
    owner = cluster.home().stat()
    os.chown(key, owner.st_uid, owner.st_gid)  # the machines' root, who is nobody on this host
    with step("a user goes by ssh from the head to a node without a question"):
        assert as_user(cluster, "ssh train-2 id -un") == IMAGES_USER
    with step("in a job a user goes by ssh from node to node and has the job role there"):
        submit = "sbatch --wait --nodelist=train-2,train-3 --output=cross.out /home/cross.sh"
        as_user(cluster, f"timeout 240 {submit}")
        began, found, *there = as_user(cluster, "cat cross.out").splitlines()
        address, name = found.split()
        other = f"ip-{address.replace('.', '-')}"
        assert (name, began == f"from {other}", there) == (
            "train-3.dev.corral.internal",
            False,
            [other, IMAGES_USER, f"AWS_CONTAINER_CREDENTIALS_FULL_URI={URI}"],
        )
    with step("a key of the spec opens the head as the image's user"):
        to_head = ("ssh", "-i", "/home/key", *KNOWN, f"{IMAGES_USER}@{HEAD}", "hostname")
        machines = control.machines(cluster.life.box.dir)
        assert [cluster.on(machine, *to_head) for machine in machines] == ["dev-head"] * 3


def as_user(cluster: Cluster, command: str) -> str:
    """What a shell command of the image's user printed, who logs in for it on the head."""
    return cluster.on_head("su", "-", IMAGES_USER, "-c", command)


def power_a_node_down(cluster: Cluster) -> None:
    """As after its idle time."""
    with step("a node that is powered down ends its machine"):
        cluster.on_head("scontrol", "update", "nodename=train-3", "state=power_down")
        cluster.until(lambda: len(control.machines(cluster.life.box.dir)) == 2)  # the head and the other node


def run_as_a_user(cluster: Cluster) -> None:
    """A job of an ordinary user, which brings nothing from where it was submitted."""
    shutil.copy(PROGRAMS / "who_am_i.py", cluster.home())
    with step("people have the same ids on the head and on nodes, and homes that others cannot enter"):
        ids = [cluster.on(machine, "id", "ada") for machine in control.machines(cluster.life.box.dir)]
        vision = derived_id("vision")
        known = {re.sub(r",?\d+\(corral-users\)", "", one) for one in ids}
        assert known == {f"uid=2000(ada) gid=2000(ada) groups=2000(ada),{vision}(vision)"}
        assert cluster.on_head("stat", "--format=%a %u %g", "/home/ada") == "750 2000 2000"
    output = cluster.home() / "ada.out"
    output.touch()
    output.chmod(0o666)
    submit = ("sbatch", "--wait", "--export=NONE", "--chdir=/", "--output=/home/ada.out", "--nodelist=train-2")
    cluster.on_head("timeout", "240", *AS_ADA, *submit, "--wrap=/usr/bin/python3 /home/who_am_i.py")
    with step("a user's job has the job role and neither the machine's metadata nor the munge key"):
        assert output.read_text().splitlines() == ["job ada", "metadata 13"]  # 13 is "permission denied"


def attack_as_a_user(cluster: Cluster) -> None:
    """A job of ada's tries what only the image's user or root may, where a job of his runs; then she on the head."""
    as_user(cluster, "echo mine >secret && chmod 600 secret && touch running")
    to_file = f"--wrap='echo $$ >/home/{IMAGES_USER}/running; exec sleep 600'"
    part = "-n1 --mem=200M --chdir=/ --nodelist=train-2"
    job = as_user(cluster, f"sbatch --parsable {part} --output=/dev/null {to_file}")
    process = cluster.until(lambda: as_user(cluster, "cat running"))
    node = cluster.instance_of("train-2")
    variables = {
        "JOB": job,
        "PID": process,
        "FILE": f"/home/{IMAGES_USER}/secret",
        "USER": IMAGES_USER,
        "NODE": "train-2",
        "ADDRESS": cluster.node("train-2")["NodeAddr"],
        "KEY": json.loads(cluster.on(node, "su", IMAGES_USER, "-c", f"curl -s {URI}"))["AccessKeyId"],
    }
    job_of_ada = (cluster.head(), "timeout", "240", *AS_ADA, "srun", *part.split())
    for where, machine, attacker, acts in (
        ("a node", node, job_of_ada, ON_A_NODE),
        ("the head", cluster.head(), (cluster.head(), *AS_ADA), ON_THE_HEAD),
    ):
        cluster.on(machine, *ROUTE_TO_IPV6)
        reached = cluster.on(*attacker, "sh", "-c", f"{script(acts, variables)}; hostname; id -u").splitlines()
        with step(f"a user's acts fail on {where}"):
            assert reached == [cluster.on(machine, "hostname"), "2000"]
        users = {ROOT: (), VICTIM: ("su", IMAGES_USER, "-c"), ATTACKER: (*AS_ADA, "sh", "-c")}
        done = [
            cluster.on(machine, *(users[by] or ("sh", "-c")), script(acts, variables, by=by)).splitlines()
            for by in users
        ]
        cluster.on(machine, *NO_ROUTE_TO_IPV6)
        with step(f"the same acts succeed on {where} for who may"):
            assert sorted(name for names in done for name in names) == sorted(act.name for act in acts)
    cluster.on_head("scancel", job)
    cluster.until(lambda: not cluster.on_head("squeue", "--noheader"))


def look_at_jobs(cluster: Cluster) -> None:
    """A training job runs on the node that is left, another waits, and people look."""
    shutil.copy(PROGRAMS / "steps.py", cluster.home())
    python = f"--export=ALL,PYTHON=/usr/bin/python3,{WITH_AWS}"
    submit = ("sbatch", "--parsable", "--chdir=/home", "--ntasks-per-node=1", "--nodes=1", "--nodelist=train-2", python)
    cluster.on_head(*submit, "/opt/corral/jobs/train/jax.sbatch", "/home/steps.py", str(ENDLESS))
    cluster.on_head("sbatch", "--chdir=/", "--job-name=later", "--begin=now+1hour", "--wrap=hostname")
    cluster.until(lambda: (cluster.home() / "checkpoints/losses-0").exists())
    with step("status shows the job that runs and why the other waits"):
        jobs = json.loads(cluster.life.corral("status", "dev", "--box", "--json").out)["slurm"]["jobs"]
        assert [(job["name"], job["state"], job["reason"]) for job in jobs] == [
            ("jax", "running", ""),
            ("later", "pending", "its begin time has not come"),
        ]
    page = cluster.life.directory / "timeline.html"
    shown = cluster.life.corral("timeline", "dev", "--box", "--html", str(page)).out
    with step("the timeline has the head, the nodes and the jobs"):
        rows = re.findall(r"^  (head|train-\d|\d+ [\w.]+) ", shown, re.MULTILINE)
        assert sorted(rows) == sorted(ROWS)  # two jobs may have been submitted in one second
    with step("the runs of before midnight are among all runs"):
        history = cluster.on_head("env", f"TZ={midnight_now()}", "/opt/corral/bin/corral-agent", "history")
        assert sorted({int(run["job_id"]) for run in json.loads(history)["runs"]}) == [
            *range(1, RUNNING),
            RUNNING,
            WAITING,
        ]
    with step("the page of the timeline has the job"):
        assert f"job {RUNNING} (jax) of root" in page.read_text()


def midnight_now() -> str:
    """A time zone, as tzset(3) reads it, in which it was midnight some seconds ago."""
    return time.strftime("MID%H:%M:%S", time.gmtime())


def lose_the_head(cluster: Cluster) -> None:
    """The head is lost under the running and the waiting job, and the next up makes another."""
    time.sleep(6)  # slurmctld saves what changed within five seconds
    before, known = queue(cluster), records(cluster)
    cluster.life.client("ec2").terminate_instances(InstanceIds=[cluster.head()])
    cluster.life.done("up", "dev")
    with step("jobs survive the head"):
        assert before == cluster.until(lambda: queue(cluster), UP_IN_S) == f"{RUNNING} R\n{WAITING} PD"
    with step("the records of jobs survive the head"):
        assert records(cluster) == known
    with step("slurmdbd complains about nothing"):
        lines = cluster.on_head("cat", "/var/log/slurm/slurmdbd.log").splitlines()
        # It reports a slurmctld that has only just registered, and does not listen yet.
        errors = [line for line in lines if "error" in line and "Connection refused to dev" not in line]
        assert (len(lines) > 0, errors) == (True, [])


def queue(cluster: Cluster) -> str:
    """The jobs that wait or run, with their states."""
    return cluster.on_head("squeue", "--noheader", "--format=%A %t", "--sort=i")


def refuse_to_go_down(cluster: Cluster) -> None:
    """A down that says yes to everything but the end of jobs."""
    refused = cluster.life.corral("down", "dev", "--box", "--yes", code=4).err
    with step("down is refused and names the job"):
        listed = f"  job {RUNNING}  root  jax  train  train-2  running for "
        assert f"corral: cluster dev: 1 job runs: nothing was changed\n{listed}" in refused
    with step("a refused down leaves the queue open"):
        assert cluster.on_head("sinfo", "--noheader", "--format=%a").split()[0] == "up"


def remove_a_person(cluster: Cluster) -> None:
    """Ada leaves under a running and a waiting job; bob stays, and never saw them."""
    opens = ("ssh", "-i", "/home/key", *KNOWN, f"ada@{HEAD}", "id", "-un")
    with step("a person's key opens the head, made anew since, as themselves"):
        assert cluster.on_head(*opens) == "ada"
    sleep = ("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--nodelist=train-4", "--wrap=sleep 600")
    runs, waits = (int(cluster.on_head(*AS_ADA, *sleep, *more)) for more in ((), ("--begin=now+1hour",)))
    cluster.runs(runs)
    with step("people see their own jobs alone"):
        assert cluster.on_head(*AS_ADA, "squeue", "--noheader", "--format=%A", "--sort=i").split() == [
            str(runs),
            str(waits),
        ]
        assert cluster.on_head("su", "-", "bob", "-c", "squeue --noheader") == ""
    spec = cluster.spec
    spec.write_text("".join(line for line in spec.read_text().splitlines(keepends=True) if " ada: " not in line))
    cluster.life.done("up", "dev")
    with step("who is removed is locked on the head and on nodes"):
        for machine in (cluster.head(), cluster.instance_of("train-2")):
            cluster.until(
                lambda machine=machine: cluster.on(machine, "getent", "shadow", "ada").split(":")[7:8] == ["1"]
            )
        assert cluster.on_head(*opens) == ""
    with step("their running job goes on, the waiting one is cancelled"):
        cluster.until(lambda: cluster.job(waits).get("JobState") == "CANCELLED")
        assert cluster.job(runs)["JobState"] == "RUNNING"
    with step("who stays is not touched"):
        assert cluster.on_head("su", "-", "bob", "-c", "id -un") == "bob"
    with step("the removal is an event"):
        listed = cluster.life.corral("status", "dev", "--box", "--events").out
        assert re.findall(r"(user-\w+) +(.*)", listed)[-1] == ("user-removed", "ada, uid 2000")
    cluster.on_head("scancel", str(runs))


def look_for_secrets(cluster: Cluster) -> Mapping[str, Secret]:
    """The secrets of the cluster, which are where they belong."""
    node = cluster.instance_of("train-2")
    # The secret is the team's: in the account it outlives the cluster.
    of_jobs = Secret(SECRET.encode(), (ACCOUNT, "environment of a job"), (ACCOUNT,))
    secrets = {"a secret of jobs": of_jobs, **secrets_of(cluster, node)}
    with step("the secrets of a running cluster are known"):
        assert sorted(secrets) == [
            "a secret of jobs",
            "a user's key",
            "head's host key",
            "head's secret key",
            "head's token",
            "job role's secret key",
            "job role's token",
            "munge key",
            "node's secret key",
            "node's token",
            "secret key of who deploys",
            "the box's own",
        ]
    with step("a command that meets what nobody expected leaves a report"):
        assert "RuntimeError: nobody expected this" in crash(cluster).read_text()
    read = "tr '\\0' '\\n' </proc/$(pgrep --newest --full '/home/step[s].py')/environ"
    environment = ("environment of a job", cluster.on(node, "sh", "-c", read))
    texts = [*shown(cluster, RUNNING), *served(cluster, node), environment]
    with step("commands and pages have something to show"):
        assert [origin for origin, text in texts if not text] == []
        about_jobs = {"corral status", "corral timeline", "dashboard/cluster.json"}
        assert about_jobs - {origin for origin, text in texts if "jax" in text} == set()
    with step("the secrets of a running cluster are where they belong and nowhere else"):
        assert locations(cluster, secrets, texts) == {name: one.locations for name, one in secrets.items()}
    return secrets


def look_for_secrets_of_what_is_gone(cluster: Cluster, secrets: Mapping[str, Secret]) -> None:
    """The same after the last command."""
    texts = [
        ("corral timeline", cluster.life.corral("timeline", "dev", "--box", *form).out) for form in ((), ("--json",))
    ]
    with step("a cluster that is gone leaves its secrets nowhere"):
        assert locations(cluster, secrets, texts) == {name: one.afterwards for name, one in secrets.items()}


def go_down(cluster: Cluster) -> None:
    """The same, with --now."""
    machines, daemons, shared = len(control.machines(cluster.life.box.dir)), sshds(cluster), cluster.home()
    down = cluster.life.done("down", "dev", "--now", "--grace", "8")
    with step("down --now requests a checkpoint and then ends the job"):
        assert down["drained"] == {
            "refused": False, "signalled": [str(RUNNING)], "ended": [], "requeued": [str(RUNNING)], "cancelled": [],
            "waiting": 1,
        }  # fmt: skip
    with step("the checkpoint is that of the last step"):
        last = (shared / "checkpoints/losses-0").read_text().splitlines()[-1]
        assert (shared / f"checkpoints/jax-{RUNNING}/step-0").read_text() == last
    with step("down leaves no machine and no data of one"):
        cluster.until(lambda: not control.machines(cluster.life.box.dir))
        held = cluster.life.box.dir / "machines"
        assert [sorted(path.name for path in (held / kind).iterdir()) for kind in ("disks", "volumes")] == [[], []]
    with step("each machine has one sshd and down leaves none"):
        assert (len(daemons), [pid for pid in daemons if Path(f"/proc/{pid}").exists()]) == (machines, [])


def sshds(cluster: Cluster) -> list[int]:
    """The processes of sshd on this box's machines, by the numbers that they have on this one."""
    parents, found = {}, []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # processes come and go
            pid, program, _, parent = re.match(r"(\d+) \((.*)\) (\S) (\d+)", entry.read_text()).groups()  # type: ignore[union-attr]
            parents[int(pid)] = int(parent)
            found += [int(pid)] * (program == "sshd")
    return [pid for pid in found if cluster.life.box.pid in ancestors(pid, parents)]


def ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while pid := parents.get(pid, 0):
        yield pid


def look_at_what_is_gone(cluster: Cluster) -> None:
    """What the bucket and the commands know of a cluster without a head."""
    life, s3 = cluster.life, cluster.life.client("s3")
    with step("the records of its jobs are in the bucket"):
        dumped = s3.get_object(Bucket=BUCKET, Key="accounting/dev.sql.gz")["Body"].read()
        assert b"'jax'" in gzip.decompress(dumped)
    with step("two heads have one history in the bucket"):
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="lives/")["Contents"]
        histories = life.corral("timeline", "dev", "--box", "--list-history").out
        (began,) = re.findall(r"^  (\S+Z) ", histories, re.MULTILINE)
        assert [one["Key"] for one in listed] == [f"lives/dev/{began}.json.gz"]
    gone = life.corral("timeline", "dev", "--box").out
    with step("the timeline of a cluster that is gone has the jobs that ran"):
        rows = re.findall(r"^  (head|train-\d|\d+ [\w.]+) .*?[█─┄]", gone, re.MULTILINE)
        assert sorted(rows) == sorted((*ROWS, *OF_ADA))
    with step("the timeline of a cluster that is gone reports that"):
        assert "\n  dev has no head now: the history that began " in gone
    usage = json.loads(life.corral("timeline", "dev", "--box", "--json").out)["usage"]
    with step("what a cluster that is gone used is listed by the markets of its launches"):
        pools = [(one["queue"], one["instance_type"], one["market"], one["machines"]) for one in usage["pools"]]
        assert pools == [("train", "p4d.24xlarge", "spot", 4)]
    with step("what the jobs of a cluster that is gone used is listed"):
        jobs = {one["job_id"]: (one["nodes"], one["runs"], one["node_hours"] > 0) for one in usage["jobs"]}
        assert (jobs[str(TRAINED)], jobs[str(RUNNING)]) == ((2, 2, True), (1, 1, True))
    with step("events of a cluster that is gone point to the timeline"):
        assert life.corral("status", "dev", "--box", "--events", code=1).err == (
            "corral: dev has no head now - its recorded history: corral timeline dev --box\n"
        )
