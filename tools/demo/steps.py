"""The steps of the demo, in order. Each shows something and checks it: a demo that only prints proves nothing."""

from __future__ import annotations

import re
import shlex
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stage import Stage, Unexpected

BUCKET = "corral-example-corpus"  # stands for the user's own data
EACH_STEP = re.compile(r"\s*$|\s*[~+-]? *(pulumi:|corral:|aws:)|@ ")  # the engine's own line per resource
KEPT = {"efs/file-system", "kms/key", "s3/bucket"}
DUMP = re.compile(r".*/accounting/dev\.sql\.gz")  # what the next cluster of this name begins with
LIFE = re.compile(r".*/lives/dev/[\dTZ-]+\.json\.gz")  # what `corral timeline` draws of a cluster that is gone
TEMPLATE = "train-spot-use1-az1"
PROGRAM = Path(__file__).parents[2] / "examples/train/train.py"
JAX = ("jax", "jaxlib", "ml_dtypes", "numpy", "numpy.libs", "opt_einsum", "scipy", "scipy.libs")
TRAINED = 40  # steps
SAVED_S = 6  # slurmctld saves what has changed after five seconds at most
PAGE = Path(tempfile.gettempdir()) / "corral-demo.html"  # the one thing that outlives the demo


def plan(stage: Stage) -> None:
    """No account, no network."""
    stage.corral("plan", "dev")


def start_box(stage: Stage) -> None:
    """A daemon, and the bucket with training data that a user would have."""
    stage.corral("box", "start")
    stage.client("s3").create_bucket(Bucket=BUCKET)
    stage.before = stage.inventory()
    stage.say(f"The box holds {_count(stage.before)} thing: s3://{BUCKET}, which stands for your data.")


def up(stage: Stage) -> None:
    """Both stacks, then what they made."""
    stage.corral("up", "dev", "--box", "--yes")
    stage.corral("status", "dev", "--box")


def expect_no_changes(stage: Stage) -> None:
    """The engine's own command agrees with ours."""
    for stack in ("base", "cluster"):
        stage.shell(
            f'pulumi -C "$CORRAL_STACKS/{stack}" -s dev up --expect-no-changes --skip-preview --yes --suppress-outputs',
            leave_out=EACH_STEP,
        )


def launch(stage: Stage) -> None:
    """What the head will do for a job of two nodes: one RunInstances with nothing but the template."""
    ec2 = stage.client("ec2")
    found = ec2.describe_launch_templates(Filters=[{"Name": "tag:Name", "Values": [f"corral-dev-{TEMPLATE}"]}])
    id = found["LaunchTemplates"][0]["LaunchTemplateId"]
    data = ec2.describe_launch_template_versions(LaunchTemplateId=id, Versions=["$Default"])
    stage.say(f"{TEMPLATE} is {id}; DescribeLaunchTemplateVersions says:")
    nics = data["LaunchTemplateVersions"][0]["LaunchTemplateData"]["NetworkInterfaces"]
    for nic in nics:
        stage.say(f"  card {nic.get('NetworkCardIndex', 0)} device {nic['DeviceIndex']}  {nic['InterfaceType']}")
    template = {"LaunchTemplateId": id, "Version": "$Default"}
    made = ec2.run_instances(LaunchTemplate=template, MinCount=2, MaxCount=2)["Instances"]
    for instance in made:
        kinds = [nic["InterfaceType"] for nic in instance["NetworkInterfaces"]]
        stage.say(
            f"  {instance['InstanceId']}  index {instance['AmiLaunchIndex']}  {instance['InstanceLifecycle']}  "
            f"{instance['Placement']['AvailabilityZone']}  group {instance['Placement']['GroupName']}  "
            f"{kinds.count('interface')} ENA + {kinds.count('efa-only')} efa-only"
        )
        if len(kinds) != len(nics):
            raise Unexpected(f"{instance['InstanceId']} has {len(kinds)} interfaces, its template {len(nics)}")
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in made])


def slurm(stage: Stage) -> None:
    """The head has booted by its own user data: the agent from the bucket, munge, slurmctld."""
    stage.wait_for("connect", "dev", "--box", "--", "sinfo", "--noheader")
    stage.corral("connect", "dev", "--box", "--", "sinfo")
    stage.corral("connect", "dev", "--box", "--", "ps", "-eo", "user,args", "--sort=user")


def job(stage: Stage) -> None:
    """ResumeProgram, RunInstances, user data, slurmd, registration: then the job runs."""
    tell = "echo $SLURMD_NODENAME is $(hostname) with GPUs $CUDA_VISIBLE_DEVICES"
    stage.corral(
        *("connect", "dev", "--box", "--", "srun", "--nodes=2", "--gpus-per-node=8", "--chdir=/", "sh", "-c", tell)
    )
    stage.corral("connect", "dev", "--box", "--", "cat", "/var/log/corral/corral-agent.log")


def grow(stage: Stage) -> None:
    """Two numbers in the user's file."""
    file = stage.project / "stacks/cluster/Pulumi.dev.yaml"
    text = file.read_text().replace("max: 4", "max: 6").replace("suspend_after: 10m", "suspend_after: 1m")
    file.write_text(text)
    changes = ("s/max: 4/max: 6/", "s/suspend_after: 10m/suspend_after: 1m/")
    stage.say(f"$ sed -i {' '.join(f'-e {shlex.quote(change)}' for change in changes)} stacks/cluster/Pulumi.dev.yaml")
    head = _head(stage)
    stage.corral("up", "dev", "--box", "--preview")
    stage.corral("up", "dev", "--box", "--yes")
    if _head(stage) != head:
        raise Unexpected("the head was touched by a change of a queue")
    stage.say("The head runs on untouched.")


def train(stage: Stage) -> None:
    """A model on two machines; what it needs lies on the file system that they share."""
    version = "{}.{}".format(*sys.version_info)
    if f"Python {version}." not in stage.ask("connect", "dev", "--box", "--", "python3", "-V"):
        raise Unexpected(
            f"the machines' Python cannot run the JAX of Python {version}: make clean PYTHON=/usr/bin/python3"
        )
    jax = Path(sysconfig.get_path("platlib"))
    held = " ".join(name for name in JAX if (jax / name).exists())
    stage.shell(
        f"tar -C {jax} -c {held} | corral connect dev --box -- sh -c 'mkdir /scratch/python; tar -x -C /scratch/python'"
    )
    stage.shell(f"corral connect dev --box -- sh -c 'cat >/scratch/train.py' <{PROGRAM}")
    _submit(stage)
    stage.wait_for(*_losses(2), what=f"\n{TRAINED} ")
    stage.corral("connect", "dev", "--box", "--", "grep", r"processes\|[24]0 of\|ended", "/scratch/jax-2.out")


def spot(stage: Stage) -> None:
    """The notice reaches the same job, which saves, moves, and goes on where it was: to the same losses."""
    _submit(stage)
    stage.wait_for(*_losses(3), what="\n3 ")
    stage.corral("box", "fault", "spot-notice", "train-1")
    stage.wait_for(*_losses(3), what=f"\n{TRAINED} ")
    told = "corral:\\|saved\\|continues"
    stage.corral("connect", "dev", "--box", "--", "grep", "--no-filename", told, "/scratch/jax-3.out")
    first, again = (stage.ask(*_losses(job)) for job in (2, 3))
    if first != again:
        raise Unexpected("the job that was interrupted has other losses than the one that was not")
    stage.corral("connect", "dev", "--box", "--", "cmp", *(_losses(job)[-1] for job in (2, 3)))
    stage.say(f"The losses of all {TRAINED} steps are bit for bit those of the job before, which nothing interrupted.")
    stage.corral("status", "dev", "--box")


def lose_head(stage: Stage) -> None:
    """What EC2 may do at any time."""
    # A slurmctld that dies before it has heard from the keeper of a new node takes it for one that still boots.
    stage.wait_for("connect", "dev", "--box", "--", "cat", "/var/lib/corral/events.jsonl", what="train-2 is up")
    time.sleep(SAVED_S)
    lost, address, volume = _head(stage)
    stage.client("ec2").terminate_instances(InstanceIds=[lost])
    stage.say(f"The head {lost} was terminated.")
    stage.corral("up", "dev", "--box", "--yes")
    if (new := _head(stage))[0] == lost or new[1:] != (address, volume):
        raise Unexpected(f"the new head is {new}, it should have address {address} and volume {volume}")
    stage.say(f"The new head {new[0]} has address {address} and volume {volume}, as the old one had.")
    stage.wait_for("connect", "dev", "--box", "--", "sinfo", "--noheader")
    stage.corral("connect", "dev", "--box", "--", "sinfo")


def idle(stage: Stage) -> None:
    """A minute without a job, and what costs money is gone."""
    stage.wait_until(lambda: len(_running(stage)) == 1, "only the head runs")
    stage.corral("status", "dev", "--box")


def timeline(stage: Stage) -> None:
    """What the head wrote down and Slurm's accounting has, before both go."""
    stage.corral("timeline", "dev", "--box", "--html", str(PAGE))
    page = PAGE.read_text(encoding="utf-8")
    missing = [name for name in ("train-1", "jax", "is taken back") if name not in page]
    if missing:
        raise Unexpected(f"the page {PAGE} does not show {', '.join(missing)}")


def down(stage: Stage) -> None:
    """Everything but data."""
    stage.corral("down", "dev", "--box", "--with-base", "--yes", briefly=True)
    kept = {kind: sorted(set(ids) - set(stage.before.get(kind, []))) for kind, ids in stage.inventory().items()}
    stage.say("More than before the first up, in every service of the box, tagged or not:")
    for kind, ids in kept.items():
        for id in ids:
            stage.say(f"  {kind}  {id}")
    more = [id for kind, ids in kept.items() for id in ids if kind not in KEPT]
    if unexpected := [id for id in more if not (DUMP.fullmatch(id) or LIFE.fullmatch(id))]:
        raise Unexpected(f"left over: {unexpected}")
    if len([id for id in more if LIFE.fullmatch(id)]) != 1:
        raise Unexpected(f"one life should be kept, there is {more}")
    stage.corral("timeline", "dev", "--box")


def delete_all(stage: Stage) -> None:
    """The way to an empty account; KMS deletes a key after 30 days at the earliest we ask for."""
    stage.corral("down", "dev", "--box", "--with-base", "--delete-data", "dev", "--yes", briefly=True)
    now = stage.inventory()
    left = {kind: ids for kind, ids in now.items() if ids != stage.before.get(kind)}
    more = ", ".join(f"{kind} {id}" for kind, ids in left.items() for id in ids)
    stage.say(f"More than before the first up: {more or 'nothing'}")
    if any("scheduled for deletion" not in id for ids in left.values() for id in ids):
        raise Unexpected(f"left over: {left}")


def _submit(stage: Stage) -> None:
    variables = "PYTHONPATH=/scratch/python,JAX_COMPILATION_CACHE_DIR=/scratch/compiled"
    options = f"--chdir=/scratch --ntasks-per-node=1 --export=ALL,{variables}"
    program = f"/scratch/train.py --steps {TRAINED} --every 20 --nap 0.2 --layers 1"
    stage.shell(f"corral connect dev --box -- sbatch {options} /opt/corral/jobs/train/jax.sbatch {program}")


def _losses(job: int) -> tuple[str, ...]:
    return ("connect", "dev", "--box", "--", "cat", f"/scratch/checkpoints/jax-{job}.losses")


def _head(stage: Stage) -> tuple[str, str, str]:
    """The head's instance, address and state volume."""
    (instance,) = _running(stage, {"Name": "tag:Name", "Values": ["corral-dev-head"]})
    volumes = {m["DeviceName"]: m["Ebs"]["VolumeId"] for m in instance["BlockDeviceMappings"]}
    return instance["InstanceId"], instance["PrivateIpAddress"], volumes["/dev/sdf"]


def _running(stage: Stage, *filters: Mapping[str, object]) -> list[Any]:
    """The instances that run or begin to, of those that the filters leave."""
    live = {"Name": "instance-state-name", "Values": ["running", "pending"]}
    pages = stage.client("ec2").get_paginator("describe_instances").paginate(Filters=[live, *filters])
    return [instance for page in pages for held in page["Reservations"] for instance in held["Instances"]]


def _count(inventory: object) -> int:
    return sum(len(ids) for ids in inventory.values()) if isinstance(inventory, dict) else 0
