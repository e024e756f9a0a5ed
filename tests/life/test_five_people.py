"""Five people of two accounts on one cluster: each has files, limits and software of their own, and the bill adds up.

ada runs a container, bo meets a limit and preempts, cid is preempted and finishes, dan submits from Python by ssh, eve
leaves. Needs enroot's and Pyxis's sources, which corral fetches from GitHub, so `make containers` runs it.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clusters import UP_IN_S, Cluster
from container_image import make_image
from people import as_person, copy_packages, make_key, person_outside

import boxes
from corral.box.vpc.capabilities import probe_host
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.container_sources]
PROGRAMS = Path(__file__).parent / "programs"
EVE = "        eve: {uid: 2004, account: vision}\n"
TEAM = """    containers: pyxis
    accounts:
      vision: {{shares: 2, qos: [normal, urgent]}}
      speech: {{qos: [spare]}}
    qos:
      urgent: {{priority: 100, gpus_per_user: 8, preempts: [spare]}}
      spare: {{grace: 1m}}
    access:
      users:
        ada: {{uid: 2000, account: vision}}
        bo: {{uid: 2001, account: vision}}
        cid: {{uid: 2002, account: speech}}
        dan: {{uid: 2003, account: speech, ssh_keys: ['{key}']}}
"""
PEOPLE = ("ada", "bo", "cid", "dan", "eve")
STEPS = 400  # of a tenth of a second: longer than it takes bo to preempt it
SUBMITS = """
import os, submitit
executor = submitit.AutoExecutor(folder=os.path.expanduser("~/runs"))
executor.update_parameters(slurm_partition="train", timeout_min=10, cpus_per_task=1)
print(executor.submit(lambda: (os.getuid(), os.environ["SLURM_JOB_ACCOUNT"])).result())
"""
HOME = "/home/ada"
LOOK = "sh -c 'cat /inside; sleep 3'"  # Slurm counts whole seconds
SRUN = "srun --partition=train --nodelist=train-1"


def test_five_people_share_a_cluster(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("five")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        come_up(cluster, directory)
        keep_files_apart(cluster)
        run_a_container(cluster, directory)
        preempt_a_training(cluster)
        submit_from_outside(cluster, directory)
        leave(cluster)
        add_up(cluster)
        cluster.life.done("down", "dev")


def come_up(cluster: Cluster, directory: Path) -> None:
    """The cluster with its people."""
    with cluster.spec.open("a") as spec:
        spec.write(TEAM.format(key=make_key(directory, "dan")) + EVE)
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
    with step("everybody is there, in their account"):
        cluster.until(lambda: all(cluster.on_head("id", name) for name in PEOPLE))
        shown = ("sacctmgr", "-nP", "show", "associations", "format=account,user")
        cluster.until(lambda: "vision|eve" in cluster.on_head(*shown))
        lines = cluster.on_head(*shown).splitlines()
        assert sorted(line for line in lines if line.endswith(PEOPLE)) == [
            *("speech|cid", "speech|dan", "vision|ada", "vision|bo", "vision|eve")
        ]


def keep_files_apart(cluster: Cluster) -> None:
    """Each person writes a file, and tries to read everybody's, as homes are made."""
    for name in PEOPLE:
        as_person(cluster, name, f"echo {name} > mine")
    with step("people read their own files alone"):
        read = {name: as_person(cluster, name, "cat /home/*/mine 2>/dev/null || true") for name in PEOPLE}
        assert read == {name: name for name in PEOPLE}


def run_a_container(cluster: Cluster, directory: Path) -> None:
    """ada brings an image."""
    make_image(cluster.home() / "ada/image.sqsh", directory)
    with step("ada's task runs in her image"):
        printed = as_person(cluster, "ada", f"{SRUN} --container-image={HOME}/image.sqsh {LOOK}")
        assert printed.splitlines()[-1] == "the image", printed


def preempt_a_training(cluster: Cluster) -> None:
    """cid trains on the spare capacity of a node; bo needs it at once, twice."""
    shutil.copy(PROGRAMS / "steps.py", cluster.home() / "cid/steps.py")
    one_node = "--partition=train --nodelist=train-1 --nodes=1"
    script = "/opt/corral/jobs/train/jax.sbatch steps.py"
    submit = f"PYTHON=/usr/bin/python3 sbatch --parsable {one_node} --ntasks-per-node=1 {script} {STEPS}"
    trained = int(as_person(cluster, "cid", submit))
    losses = cluster.home() / "cid/checkpoints/losses-0"
    cluster.until(lambda: losses.exists() and losses.read_text().count("\n") > 2)
    urgent = f"sbatch --parsable {one_node} --qos=urgent --gpus=8 --wrap='sleep 15' --output=/dev/null"
    first, second = (int(as_person(cluster, "bo", urgent)) for _ in range(2))
    with step("bo's urgent job starts before cid's training has ended"):
        cluster.runs(first)
        assert losses.read_text().count("\n") < STEPS
    with step("his second waits, and the reason is his limit"):
        assert cluster.until(lambda: (now := cluster.job(second))["Reason"] not in ("None", "Priority") and now)[
            "Reason"
        ] == ("QOSMaxGRESPerUser")
    with step("both end"):
        assert [cluster.end(job) for job in (first, second)] == [("COMPLETED", "0")] * 2
    with step("cid's training saved, moved away, and ends as if nothing had been"):
        assert cluster.end(trained) == ("COMPLETED", "1")
        numbers = [int(line.split()[0]) for line in losses.read_text().splitlines()]
        assert numbers == list(range(1, STEPS + 1))
        output = (cluster.home() / f"cid/jax-{trained}.out").read_text()
        assert "corral: requeue, the checkpoint is written and another QOS preempts the job" in output


def submit_from_outside(cluster: Cluster, directory: Path) -> None:
    """dan, by ssh and submitit."""
    copy_packages(cluster.home() / "python", ("submitit",))
    (cluster.home() / "submits.py").write_text(SUBMITS)
    dan = person_outside(cluster, directory, "dan")
    with step("dan's function runs as him on a node, for his account"):
        printed = dan.on_head("PYTHONPATH=/home/python /usr/bin/python3 /home/submits.py")
        assert printed.splitlines()[-1] == "(2003, 'speech')"


def leave(cluster: Cluster) -> None:
    """eve has a job that waits, and is removed."""
    waits = "sbatch --parsable --partition=train --begin=now+1hour --output=/dev/null --wrap=true"
    job = int(as_person(cluster, "eve", waits))
    spec = cluster.spec
    spec.write_text(spec.read_text().replace(EVE, ""))
    cluster.life.done("up", "dev")
    with step("eve is locked out, and her job cancelled"):
        cluster.until(lambda: cluster.on_head("getent", "shadow", "eve").split(":")[7:8] == ["1"])
        cluster.until(lambda: cluster.job(job).get("JobState") == "CANCELLED")
    with step("everybody else is as before"):
        assert [as_person(cluster, name, "id -un") for name in PEOPLE[:4]] == list(PEOPLE[:4])


def add_up(cluster: Cluster) -> None:
    """The bill of the two accounts and of the people, against the time of the instances in EC2."""
    cluster.cool("train")
    seconds = cluster.until(lambda: instance_seconds(cluster))
    by = {one: json.loads(usage(cluster, one)) for one in ("user", "account", "job")}
    with step("each has their hours, and eve, whose job never ran, none"):
        rows = {row.get("user"): row["node_hours"] for row in by["user"]["rows"] if row["kind"] == "jobs"}
        assert {name for name, hours in rows.items() if hours > 0} == {"ada", "bo", "cid", "dan"}
    with step("the accounts' hours are those of their people"):
        hours = {row.get("account"): row["node_hours"] for row in by["account"]["rows"] if row["kind"] == "jobs"}
        assert hours["vision"] == pytest.approx(rows["ada"] + rows["bo"], abs=1e-5)
        assert hours["speech"] == pytest.approx(rows["cid"] + rows["dan"], abs=1e-5)
    with step("jobs, idle and booting time are the time of the instances, within one in a hundred"):
        for one in by.values():
            assert sum(row["node_hours"] for row in one["rows"]) * 3600 == pytest.approx(seconds, rel=0.01), one


def usage(cluster: Cluster, by: str) -> str:
    return cluster.life.corral("usage", "dev", "--box", "--by", by, "--json").out


def instance_seconds(cluster: Cluster) -> float:
    """The time of all nodes' instances from launch to termination, as EC2 reports it; 0 while one is not terminated."""
    wanted = [{"Name": "tag:corral:cluster", "Values": ["dev"]}, {"Name": "tag-key", "Values": ["corral:nodes"]}]
    answer = cluster.life.client("ec2").describe_instances(Filters=wanted)
    found: list[Any] = [one for reservation in answer["Reservations"] for one in reservation["Instances"]]
    ends = [re.search(r"\((.* GMT|.* UTC)\)", one.get("StateTransitionReason") or "") for one in found]
    if not all(ends):
        return 0.0
    times = [datetime.strptime(end[1][:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) for end in ends if end]
    return sum((end - one["LaunchTime"]).total_seconds() for end, one in zip(times, found, strict=True))
