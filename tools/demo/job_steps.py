"""The steps on the running cluster: its head, its jobs, a spot interruption. Each checks what it shows."""

from __future__ import annotations

import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from cluster_queries import (
    HEAD,
    compute_ids,
    compute_instances,
    expand_nodes,
    head,
    nodes_and_jobs,
    rendered_file,
    running_instances,
    tag,
    wait_for_job_end,
)
from session import DemoSession, ReferenceRun, Unexpected, expect
from stack_steps import TEMPLATE

PROGRAM = Path(__file__).parents[2] / "examples/train/train.py"
DAEMONS = ("munged", "slurmctld", "slurmdbd", "entry_point.py autoscaler")  # what a head runs
JAX = ("jax", "jaxlib", "ml_dtypes", "numpy", "numpy.libs", "opt_einsum", "scipy", "scipy.libs")
STEPS = 40  # of the training
SAVED_S = 6  # slurmctld saves a change after five seconds at most
PAGE = Path(tempfile.gettempdir()) / "corral-demo.html"  # the only file that outlives the demo


def show_head(demo: DemoSession) -> None:
    """The head boots from its user data: the agent from the bucket, munge, slurmctld."""
    demo.wait_for(*HEAD, "sinfo", "--noheader")
    demo.corral(*HEAD, "sinfo")
    running = demo.corral(*HEAD, "ps", "-eo", "user,args", "--sort=user")
    expect({f"the head runs {name}": name in running for name in DAEMONS})
    on_head, rendered = demo.query(*HEAD, "cat", "/etc/slurm/slurm.conf"), rendered_file(demo, "slurm/slurm.conf")
    expect({"the head's slurm.conf is the file that `up` rendered": on_head == rendered})
    demo.explain("Its slurm.conf is, byte for byte, the file in the bucket.")


def run_job(demo: DemoSession) -> None:
    """ResumeProgram, RunInstances, user data, slurmd, registration: then the job runs."""
    expect({"only the head runs before the job": len(running_instances(demo)) == 1})
    script = "echo $SLURMD_NODENAME is $(hostname) with GPUs $CUDA_VISIBLE_DEVICES"
    output = demo.corral(*HEAD, "srun", "--nodes=2", "--gpus-per-node=8", "--chdir=/", "sh", "-c", script)
    log = demo.corral(*HEAD, "cat", "/var/log/corral/corral-agent.log")
    launched = compute_instances(demo)
    hosts = [f"ip-{one['PrivateIpAddress'].replace('.', '-')}" for one in launched]
    ran = re.findall(r"^(train-\d) is (\S+) with GPUs 0,1,2,3,4,5,6,7$", output, re.MULTILINE)
    expect(
        {
            "it ran on two nodes with 8 GPUs each": sorted(node for node, _ in ran) == ["train-1", "train-2"],
            "it ran on the instances that were launched for it": sorted(host for _, host in ran) == sorted(hosts),
            f"they are from {TEMPLATE}": {tag(one, "corral:offer") for one in launched} == {TEMPLATE},
            "there was one launch": log.count(" launched ") == 1,
        }
    )


def train(demo: DemoSession) -> None:
    """Train a model on two machines; JAX and the program are on the shared file system."""
    version = "{}.{}".format(*sys.version_info)
    if f"Python {version}." not in demo.query("connect", "dev", "--box", "--", "python3", "-V"):
        raise Unexpected(
            f"the machines' Python cannot run the JAX of Python {version}: make clean PYTHON=/usr/bin/python3"
        )
    jax = Path(sysconfig.get_path("platlib"))
    packages = " ".join(name for name in JAX if (jax / name).exists())
    demo.shell(
        f"tar -C {jax} -c {packages} | "
        "corral connect dev --box -- sh -c 'mkdir /scratch/python; tar -x -C /scratch/python'"
    )
    demo.shell(f"corral connect dev --box -- sh -c 'cat >/scratch/train.py' <{PROGRAM}")
    job = _submit(demo)
    ended = wait_for_job_end(demo, job)
    output = demo.corral(*HEAD, "grep", r"processes\|[24]0 of\|ended", f"/scratch/jax-{job}.out")
    losses = demo.query(*_losses(job))
    values = [float(line.split()[2]) for line in losses.splitlines()]
    expect(
        {
            "the job completed without a restart": (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "0"),
            "it had two machines with 16 GPUs": (ended["NumNodes"], "gres/gpu=16" in ended["TRES"]) == ("2", True),
            "two processes trained together": ", 2 processes, continues after step 0\n" in output,
            f"it trained for {STEPS} steps": len(values) == STEPS,
            "the loss fell": values[-1] < values[0],
        }
    )
    demo.reference_run = ReferenceRun(job=job, losses=losses)


def interrupt_training(demo: DemoSession) -> None:
    """Give a spot notice to a node of the same training: it checkpoints, moves, and reaches the same losses."""
    if demo.reference_run is None:
        raise Unexpected("there is no training run to compare with")
    copy = "'cat >/scratch/slowly.sh; chmod +x /scratch/slowly.sh'"
    demo.shell(f"corral connect dev --box -- sh -c {copy} <{Path(__file__).with_name('slowly.sh')}")
    job = _submit(demo, "PYTHON=/scratch/slowly.sh")
    demo.wait_for(*_losses(job), text="\n2 ")
    before = expand_nodes(demo, demo.query(*HEAD, "squeue", "--noheader", "--jobs", str(job), "--format=%N").strip())
    demo.interrupted_node = before[0]
    notice = demo.corral("box", "fault", "spot-notice", demo.interrupted_node)
    ended = wait_for_job_end(demo, job)
    lines = "corral:\\|agrees\\|saved\\|continues"
    log = demo.corral(*HEAD, "grep", "--no-filename", lines, f"/scratch/jax-{job}.out")
    after = expand_nodes(demo, ended["NodeList"])
    expect_move(demo.interrupted_node, after, ended, log)
    demo.explain(f"The job moved from {' and '.join(before)} to {' and '.join(after)}.")
    if demo.query(*_losses(job)) != demo.reference_run.losses:
        raise Unexpected("the interrupted job has other losses than the uninterrupted one")
    demo.corral(*HEAD, "cmp", *(_losses(one)[-1] for one in (demo.reference_run.job, job)))
    demo.explain(f"The losses of all {STEPS} steps are bit for bit those of the uninterrupted job.")
    (reclaimed,) = re.findall(r"^(i-\w+):", notice, re.MULTILINE)
    demo.wait_until(
        lambda: reclaimed not in {one["InstanceId"] for one in running_instances(demo)}, f"{reclaimed} terminates"
    )
    demo.corral("status", "dev", "--box")


def expect_move(interrupted: str, after: list[str], ended: Mapping[str, str], log: str) -> None:
    """Raise Unexpected unless the notice moved the job, from a step that was saved because of the notice."""
    agreed = re.findall(r"process 0 agrees to a checkpoint after step (\d+)$", log, re.MULTILINE)
    started = re.findall(r"continues after step (\d+)$", log, re.MULTILINE)
    expect(
        {
            "the job completed": ended["JobState"] == "COMPLETED",
            "the notice interrupted it": int(ended["Restarts"]) >= 1,
            f"it left {interrupted} for another node": interrupted not in after and len(after) == 2,
            "it moved when its checkpoint was written": "corral: requeue, the checkpoint is written" in log,
            f"it continued after the step that it saved on request: {started}, {agreed}": started == ["0", *agreed[:1]]
            and 0 < int(started[-1]) < STEPS,
        }
    )


def lose_head(demo: DemoSession) -> None:
    """Terminate the head, as EC2 may do at any time."""
    # A slurmctld that dies before the autoscaler reports a new node takes that node for one that still boots.
    demo.wait_for(*HEAD, "cat", "/var/lib/corral/events.jsonl", text="train-2 is up")
    time.sleep(SAVED_S)
    (lost, address, volume), known, instances = head(demo), nodes_and_jobs(demo), compute_ids(demo)
    expect(
        {
            "two nodes are idle before": "train-1 idle\ntrain-2 idle\n" in known,
            "two instances of nodes run": len(instances) == 2,
        }
    )
    demo.client("ec2").terminate_instances(InstanceIds=[lost])
    demo.explain(f"The head {lost} is terminated.")
    demo.corral("up", "dev", "--box", "--yes")
    if (new := head(demo))[0] == lost or new[1:] != (address, volume):
        raise Unexpected(f"the new head is {new}; it should have address {address} and volume {volume}")
    demo.explain(f"The new head {new[0]} has the address {address} and the volume {volume} of the old one.")
    demo.wait_for(*HEAD, "sinfo", "--noheader")
    if (now := nodes_and_jobs(demo)) != known:
        raise Unexpected(f"the new head has these nodes and jobs: {now!r}; the old one had {known!r}")
    expect({"the nodes keep their instances": compute_ids(demo) == instances})
    demo.corral(*HEAD, "sinfo")
    demo.explain("It has the same nodes and jobs, and the instances of the nodes keep running.")


def wait_until_idle(demo: DemoSession) -> None:
    """After a minute without a job, only the head runs."""
    demo.wait_until(lambda: len(running_instances(demo)) == 1, "only the head runs")
    demo.corral("status", "dev", "--box")
    status = demo.query_json("status", "dev", "--box")
    expect(
        {
            "the status shows the running head": status["head"]["instance_id"] == head(demo)[0],
            "the status shows no other instance": status["instances"] == [],
        }
    )


def timeline(demo: DemoSession) -> None:
    """Draw the events of the head and the accounting of Slurm, before both are deleted."""
    demo.corral("timeline", "dev", "--box", "--html", str(PAGE))
    page = PAGE.read_text(encoding="utf-8")
    texts = re.findall(r"[^<>\"]*reclaimed[^<>\"]*", page)  # a failure says what it shows instead
    expect(
        {
            f"the page {PAGE} shows the job": "jax" in page,
            f"the page {PAGE} says that {demo.interrupted_node} is reclaimed: {texts}": any(
                f"{demo.interrupted_node} is reclaimed" in text for text in texts
            ),
        }
    )
    demo.events = _events(demo)
    notices = {name for name, kind, _ in demo.events if kind == "notice"}
    expect({f"the timeline marks the notice to {demo.interrupted_node}": demo.interrupted_node in notices})


def recorded_timeline(demo: DemoSession) -> None:
    """Draw the same from the history in the bucket."""
    demo.corral("timeline", "dev", "--box")
    lost = sorted(demo.events - _events(demo))
    expect({f"the history has every event that the head told; missing: {lost}": not lost})


def _events(demo: DemoSession) -> frozenset[tuple[str, str, str]]:
    """What the timeline marks: the name of the row, the kind of event, its time."""
    rows = demo.query_json("timeline", "dev", "--box")["rows"]
    return frozenset((row["name"], mark["kind"], mark["at"]) for row in rows for mark in row["marks"])


def _submit(demo: DemoSession, *variables: str) -> int:
    """The number of a new training job; the variables are added to those that it needs."""
    program = f"/scratch/train.py --steps {STEPS} --every 20 --nap 0.2 --layers 1"
    return _sbatch(
        demo, program, "PYTHONPATH=/scratch/python", "JAX_COMPILATION_CACHE_DIR=/scratch/compiled", *variables
    )


def _sbatch(demo: DemoSession, program: str, *variables: str) -> int:
    options = f"--chdir=/scratch --ntasks-per-node=1 --export={','.join(('ALL', *variables))}"
    output = demo.shell(f"corral connect dev --box -- sbatch {options} /opt/corral/jobs/train/jax.sbatch {program}")
    return int(output.split()[-1])


def _losses(job: int) -> tuple[str, ...]:
    return (*HEAD, "cat", f"/scratch/checkpoints/jax-{job}.losses")
