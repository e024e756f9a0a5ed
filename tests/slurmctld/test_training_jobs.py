"""The job scripts on a real node: programs get their address and their signal, and jobs survive their time limit.

torch is not installed. Fake launchers do what matters here: they start the worker in its own session and would die of
the signal. The worker handles the signal as the real library does. Worker and test communicate through pipes, one pair
for each job, so nothing waits longer than necessary; jobs with a whole history run concurrently. JAX is installed, so
the program in examples/train runs unchanged.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tools.slurm_head.controller import Controller

import slurms
from render.plans import dev, train

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(os.geteuid() != 0, reason="a node with devices of its own needs root: run the tests as root"),
]

PATIENCE_S = 120  # slurmctld checks some things every 30 s
REVOKED_S = 2  # a job that restarts sooner can be killed by the expiry of its own credential
TRAINING = ("accelerate", "deepspeed", "jax", "lightning", "megatron", "sweep", "torchrun")
# Their library ends the run after a checkpoint; the others train until the time limit.
ENDING = ("lightning", "megatron")
LIMIT_S = 17  # two seconds more than the margin of a requeue

# A launcher starts its workers in their own sessions and does not handle SIGUSR1.
LAUNCHER = """#!/bin/sh
echo "$*" >"/mnt/$SLURM_JOB_NAME.arguments"
setsid --wait /usr/bin/python3 /mnt/bin/worker
"""
PYTHON = """#!/bin/sh
echo "$*" >"/mnt/$SLURM_JOB_NAME.arguments"
case $SLURM_JOB_NAME in
    deepspeed) setsid --wait /usr/bin/python3 /mnt/bin/worker ;;
    *) exec /usr/bin/python3 /mnt/bin/worker ;;
esac
"""
WORKER = """
import os, signal, subprocess, sys
from pathlib import Path

kind = os.environ["SLURM_JOB_NAME"]
pipe = f"/mnt/{kind}{os.environ.get('SLURM_ARRAY_TASK_ID', '')}"
events = open(f"{pipe}.events", "w", buffering=1)
checkpoints = Path(os.environ["CHECKPOINT_DIR"])
before = sorted(path.name for path in checkpoints.iterdir())
newest = max(before, default="nothing")

def save(*_):
    (checkpoints / f"step-{len(before) + 1}").touch()
    print("saved", file=events)

def save_and_requeue(*_):
    save()
    subprocess.call(["scontrol", "requeue", os.environ["SLURM_JOB_ID"]])

def save_and_end(*_):
    save()
    sys.exit(0)

if kind == "megatron":
    signal.signal(signal.SIGTERM, save_and_end)
elif kind != "lightning":
    signal.signal(signal.SIGUSR1, save)
elif signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:  # Lightning leaves alone a signal that somebody has set
    signal.signal(signal.SIGUSR1, save_and_requeue)
print(f"continues from {newest}", file=events)
open(f"{pipe}.finish").read()
print("finished", file=events)
"""
# Jobs share the node, unlike the requests of the scripts.
SMALL = ("--oversubscribe", "--ntasks=1", "--cpus-per-task=1", "--mem=100M", "--gpus-per-node=1", "--time=10")
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job and its worker's pipes. `id`: in scontrol's form, with the array task."""

    controller: Controller
    directory: Path
    id: str
    pipe: str
    events: int

    def next_output(self) -> str:
        """The worker's next output; empty after a timeout."""
        output = b""
        while not output.endswith(b"\n") and select.select([self.events], [], [], PATIENCE_S)[0]:
            output += os.read(self.events, 1)
        return output.decode().strip()

    def next_output_after_saving(self) -> str:
        """The next output after `saved`: slurmctld, which checks every 30 s, may send the signal a second time."""
        while (word := self.next_output()) == "saved":
            pass
        return word

    def fields(self) -> Mapping[str, str]:
        """The job's fields, as scontrol shows them."""
        line = slurms.scontrol(self.controller, "--oneliner", "show", "job", self.id)
        return dict(word.split("=", 1) for word in line.split() if "=" in word)

    def signal_checkpoint(self) -> str:
        """The worker's output after the signal that the agent and users send."""
        slurms.must(self.controller.run("scancel", "--batch", "--signal=USR1", self.id))
        return self.next_output()

    def finish(self) -> str:
        """The worker's output when it may end."""
        (self.directory / f"{self.pipe}.finish").write_text("")
        return self.next_output()

    def state(self, expected: str) -> str:
        """The job's state, once it is the expected one or after a timeout."""
        deadline = time.monotonic() + PATIENCE_S
        while (state := self.fields()["JobState"]) != expected and time.monotonic() < deadline:
            time.sleep(0.1)  # Slurm has no notification for the end of a job
        return state

    def update(self, setting: str) -> None:
        """Change a field of the job."""
        slurms.scontrol(self.controller, "update", f"JobId={self.id}", setting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A cluster with one node that is up. `events`: where to read a worker's output, by the name of its pipes."""

    controller: Controller
    directory: Path
    events: Mapping[str, int]

    def submit(
        self, script: str, *options: str, program: Sequence[str] = (), checkpoints: str = "", **environment: str
    ) -> Job:
        """A job of this script with one task; of an array, its last task. `program`: replaces the worker."""
        variables = {
            "PATH": "/mnt/bin:/usr/bin:/bin",
            "PYTHON": "python",
            "CHECKPOINT_DIR": f"/mnt/checkpoints/{checkpoints}{script}",
            **environment,
        }
        exported = ",".join(f"{name}={value}" for name, value in variables.items())
        array = ("--array=1-2",) if script == "sweep" else ()
        settings = ("--output=/mnt/%x.out", f"--export=ALL,{exported}", "--nodes=1", "--ntasks=1", *array, *options)
        program = program or (("/mnt/runs.txt", "train.py") if script == "sweep" else ("train.py",))
        path = f"/opt/corral/jobs/train/{script}.sbatch"
        number = slurms.must(self.controller.run("sbatch", "--parsable", *settings, path, *program)).strip()
        return self.job(number, script, task=2 if array else None)

    def job(self, number: str, script: str, task: int | None) -> Job:
        """The job of this number, or one of its tasks."""
        id, pipe = (number, script) if task is None else (f"{number}_{task}", f"{script}{task}")
        events = self.events.get(pipe, -1)  # a measurement has no output
        return Job(controller=self.controller, directory=self.directory, id=id, pipe=pipe, events=events)

    def output(self) -> str:
        """The output of all jobs, to explain a failure."""
        return self.controller.run("sh", "-c", "squeue; tail -n 20 /mnt/*.out").stdout


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node train-1 that has registered."""
    directory = tmp_path_factory.mktemp("slurm")
    programs = {"torchrun": LAUNCHER, "accelerate": LAUNCHER, "python": PYTHON, "worker": WORKER}
    (directory / "bin").mkdir()
    for name, text in programs.items():
        (directory / "bin" / name).write_text(text)
        (directory / "bin" / name).chmod(0o755)
    (directory / "runs.txt").write_text("--seed 1\n--seed 2\n")
    pipes = [*(name for name in TRAINING if name != "sweep"), "sweep1", "sweep2"]
    for pipe in pipes:
        for end in ("events", "finish"):
            os.mkfifo(directory / f"{pipe}.{end}")
    plan = dev(train(max_nodes=1), slurm_version="22.05")
    with slurms.running_cluster_with_nodes(plan, directory) as controller:
        # A batch job would wait up to 30 s for slurmctld's next check of its nodes; srun does not.
        slurms.must(controller.run("srun", "true"))
        # Also open for writing: workers start and end without an end of file.
        events = {pipe: os.open(directory / f"{pipe}.events", os.O_RDWR) for pipe in pipes}
        yield Node(controller=controller, directory=directory, events=events)
        for descriptor in events.values():
            os.close(descriptor)


def test_a_node_fetches_all_files_from_the_head(node: Node) -> None:
    cached = (node.directory / "var/spool/slurmd/conf-cache").iterdir()
    assert {file.name for file in cached} >= {"slurm.conf", "host.conf", "own.conf", "gres.conf", "cgroup.conf"}


def test_a_job_sees_its_gpus(node: Node) -> None:
    done = node.controller.run("srun", "--gpus-per-node=8", "printenv", "CUDA_VISIBLE_DEVICES")
    assert done.stdout == "0,1,2,3,4,5,6,7\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """The history of a job from submission to end."""

    words: Sequence[str]
    restarts: str
    end: str


@pytest.fixture(scope="module")
def job_histories(node: Node) -> Mapping[str, JobHistory]:
    """Each training script's job: signalled shortly before its limit, requeued, and then finished."""
    jobs = {script: node.submit(script, *SMALL) for script in TRAINING}
    words: dict[str, list[str]] = {script: [job.next_output()] for script, job in jobs.items()}
    first = node.job(jobs["sweep"].id.partition("_")[0], "sweep", task=1)
    words["the sweep's other run"] = [first.next_output()]
    for script, job in jobs.items():
        if script not in ENDING:
            job.update(f"EndTime=now+{LIMIT_S}")
        words[script].append(job.signal_checkpoint())
    pending = {script: job.state("PENDING") for script, job in jobs.items()}
    assert set(pending.values()) == {"PENDING"}, node.output()
    time.sleep(REVOKED_S)
    for job in jobs.values():
        job.update("StartTime=now")
    for script, job in {**jobs, "the sweep's other run": first}.items():
        if job is not first:
            words[script].append(job.next_output_after_saving())
        words[script].append(job.finish())
    jobs["the sweep's other run"] = first
    ends = {script: job.state("COMPLETED") for script, job in jobs.items()}
    restarts = {script: job.fields()["Restarts"] for script, job in jobs.items()}
    return {s: JobHistory(words=tuple(words[s]), restarts=restarts[s], end=ends[s]) for s in jobs}


@pytest.mark.parametrize("script", TRAINING)
def test_a_job_saves_starts_again_and_continues_to_its_end(
    job_histories: Mapping[str, JobHistory], script: str
) -> None:
    words = ("continues from nothing", "saved", "continues from step-1", "finished")
    assert job_histories[script] == JobHistory(words=words, restarts="1", end="COMPLETED")


def test_a_restarted_array_task_leaves_the_others_alone(job_histories: Mapping[str, JobHistory]) -> None:
    words = ("continues from nothing", "finished")
    assert job_histories["the sweep's other run"] == JobHistory(words=words, restarts="0", end="COMPLETED")


def test_torchrun_meets_at_the_first_nodes_address(node: Node, job_histories: Mapping[str, JobHistory]) -> None:
    assert "--node-rank=0 --nnodes=1 --nproc-per-node=8 --master-addr=10.64.0.26" in arguments(node, "torchrun")


def test_accelerate_gets_its_rank_from_slurm(node: Node, job_histories: Mapping[str, JobHistory]) -> None:
    assert arguments(node, "accelerate").startswith("launch --machine_rank=0 --multi_gpu --num_machines=1 ")


def test_deepspeed_starts_its_own_launcher_of_a_node(node: Node, job_histories: Mapping[str, JobHistory]) -> None:
    assert arguments(node, "deepspeed").startswith("-u -m deepspeed.launcher.launch --node_rank=0 --world_info=")


def test_an_array_task_gets_its_own_parameters(node: Node, job_histories: Mapping[str, JobHistory]) -> None:
    assert arguments(node, "sweep").endswith("train.py --seed 2\n")


def arguments(node: Node, script: str) -> str:
    """The arguments of the launcher, or of Python, in the last run."""
    return (node.directory / f"{script}.arguments").read_text()


def test_a_job_signalled_twice_saves_twice_and_continues(node: Node) -> None:
    job = node.submit("torchrun", checkpoints="twice-")
    output = (
        job.next_output(),
        job.signal_checkpoint(),
        job.signal_checkpoint(),
        job.finish(),
        job.state("COMPLETED"),
    )
    assert output == ("continues from nothing", "saved", "saved", "finished", "COMPLETED")


def test_srun_takes_the_order_of_a_sites_command(node: Node) -> None:
    job = node.submit("jax", checkpoints="ordered-", CORRAL_RANK_ORDER="cat")
    assert (job.next_output(), job.finish(), job.state("COMPLETED")) == (
        "continues from nothing",
        "finished",
        "COMPLETED",
    )


def test_nccl_tests_shows_the_bandwidth(node: Node) -> None:
    row = " 17179869184 4294967296 float sum -1 413 41.5 77.8 0 414 41.4 77.8 0"
    (node.directory / "bin/all_reduce_perf").write_text(f"#!/bin/sh\necho '{row}'\n")
    (node.directory / "bin/all_reduce_perf").chmod(0o755)
    job = node.submit("nccl-tests", CORRAL_MPI="none", ALL_REDUCE_PERF="/mnt/bin/all_reduce_perf")
    shown = (job.state("COMPLETED"), (node.directory / "nccl-tests.out").read_text().splitlines()[-1])
    assert shown == ("COMPLETED", "corral: 77.8 GB/s bus bandwidth over 1 nodes")


@pytest.fixture(scope="module")
def failures(node: Node) -> Mapping[str, Job]:
    """Jobs of every training script whose program fails."""
    failing = node.directory / "failing"
    failing.mkdir()
    for name in ("torchrun", "accelerate", "python"):
        (failing / name).write_text("#!/bin/sh\nexit 3\n")
        (failing / name).chmod(0o755)
    # Each program ends before its shell waits for it.
    (failing / "slow").write_text('trap() { builtin trap "$@"; sleep 0.3; }\n')
    given = {"PATH": "/mnt/failing:/usr/bin:/bin", "BASH_ENV": "/mnt/failing/slow"}
    return {script: node.submit(script, *SMALL, checkpoints="failing-", **given) for script in TRAINING}


@pytest.mark.long
@pytest.mark.parametrize("script", TRAINING)
def test_a_program_that_fails_fails_the_job_with_its_code(failures: Mapping[str, Job], script: str) -> None:
    job = failures[script]
    assert (job.state("FAILED"), job.fields()["ExitCode"]) == ("FAILED", "3:0")


def wait_for_lines(file: Path, count: int) -> int:
    """The number of lines of the file, once it has that many or after a timeout."""
    deadline = time.monotonic() + PATIENCE_S
    while (lines := file.read_text().count("\n") if file.exists() else 0) < count and time.monotonic() < deadline:
        time.sleep(0.1)
    return lines


@pytest.mark.long
def test_the_example_that_starts_again_has_the_losses_of_one_that_does_not(node: Node) -> None:
    train = (str(EXAMPLES / "train/train.py"), "--steps", "40", "--every", "5", "--nap", "0.05", "--layers", "1")
    options = (*SMALL, "--ntasks=2", "--output=/mnt/example-%j.out")
    names = ("undisturbed-", "requeued-")
    given = {"PYTHON": sys.executable, "JAX_COMPILATION_CACHE_DIR": "/mnt/compiled"}
    undisturbed, requeued = (node.submit("jax", *options, program=train, checkpoints=name, **given) for name in names)
    losses = [node.directory / f"checkpoints/{name}jax.losses" for name in names]
    assert wait_for_lines(losses[1], 12) >= 12, node.output()
    slurms.scontrol(requeued.controller, "requeue", requeued.id)
    assert requeued.state("PENDING") == "PENDING"
    time.sleep(REVOKED_S)
    requeued.update("StartTime=now")
    assert [wait_for_lines(file, 40) for file in losses] == [40, 40], node.output()
    ends = tuple((job.state("COMPLETED"), job.fields()["Restarts"]) for job in (undisturbed, requeued))
    assert ends == (("COMPLETED", "0"), ("COMPLETED", "1")), node.output()
    output = (node.directory / f"example-{requeued.id}.out").read_text()
    starts = [int(line.split()[-1]) for line in output.splitlines() if "continues after step" in line]
    assert (starts[0], starts[1] >= 10) == (0, True)
    assert losses[1].read_text() == losses[0].read_text()


@pytest.mark.long
def test_an_array_starts_the_example_without_torchrun(node: Node) -> None:
    program = (str(EXAMPLES / "sweep/runs.txt"), str(EXAMPLES / "train/train.py"), "--steps", "3", "--layers", "1")
    job = node.submit("sweep", *SMALL, program=program, checkpoints="example-", LAUNCHER=sys.executable)
    first = node.job(job.id.partition("_")[0], "sweep", task=1)
    assert (first.state("COMPLETED"), job.state("COMPLETED")) == ("COMPLETED", "COMPLETED"), node.output()
    losses = [(node.directory / f"checkpoints/example-sweep/{task}.losses").read_text() for task in (1, 2)]
    assert (losses[0].count("\n"), losses[1].count("\n"), losses[0] == losses[1]) == (3, 3, False)


# A program that needs three seconds for its checkpoint when Slurm ends it.
SAVER = """#!/usr/bin/python3
import signal, sys, time
from pathlib import Path

def save(*_):
    time.sleep(3)
    Path("/mnt/saved").write_text(str(time.time()))
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
Path("/mnt/saves").touch()
while True:
    time.sleep(0.1)
"""
# The node's agent: listens for the head, checks a job that is stopped and continued, and gets a notice.
AGENT = """
import json, subprocess, sys, time
from datetime import UTC, datetime, timedelta
from corral.agent.node_identity import NodeIdentity
from corral.agent.node_jobs import jobs_on
from corral.agent.interruptions.spot import SpotProgress
from corral.agent.shutdown.head_liveness import answers
from corral.agent.interruptions.node_watcher import Reclaim, check_notice

here, job = NodeIdentity(node="train-1", queue="train"), sys.argv[1]
seen = {"answers": [answers("10.64.0.26") for _ in range(3)], "phases": []}
for signal in ("STOP", "CONT"):
    subprocess.run(["scancel", f"--signal={signal}", job], check=True)
    time.sleep(1)
    seen["phases"] += [one.phase for one in jobs_on("train-1") if one.job_id == job]
reclaim = Reclaim(end=datetime.now(UTC) + timedelta(seconds=27), progress=SpotProgress())
while not reclaim.progress.released:
    reclaim = check_notice(here, reclaim, datetime.now(UTC))
    seen["phases"] += sorted({one.phase for one in jobs_on("train-1")} - set(seen["phases"]))
    time.sleep(1)
seen["let go"] = time.time()
seen["left"] = (reclaim.end - datetime.now(UTC)).total_seconds()
print(json.dumps(seen))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a node's agent saw until it released the node, when the program had saved, then the job and its log."""

    seen: Mapping[str, Any]
    saved: float
    job: Mapping[str, str]
    log_errors: Sequence[str]


@pytest.fixture(scope="module")
def notice(tmp_path_factory: pytest.TempPathFactory) -> Notice:
    """A reclaimed spot node with a program that saves only on SIGTERM, in its own cluster."""
    directory = tmp_path_factory.mktemp("notice")
    (directory / "program").write_text(SAVER)
    with slurms.running_cluster_with_nodes(dev(train(max_nodes=1), slurm_version="22.05"), directory) as controller:
        slurms.must(controller.run("srun", "true"))
        before = len(slurms.unexpected_log_lines(controller))
        submit = ("sbatch", "--parsable", "--chdir=/mnt", "--output=/mnt/out", "/mnt/program")
        job = slurms.must(controller.run(*submit)).strip()
        deadline = time.monotonic() + PATIENCE_S
        while not (directory / "saves").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        seen = json.loads(slurms.must(controller.run(sys.executable, "-c", AGENT, job)))
        line = slurms.scontrol(controller, "--oneliner", "show", "job", job)
        return Notice(
            seen=seen,
            saved=float((directory / "saved").read_text()) if (directory / "saved").exists() else float("inf"),
            job=dict(word.split("=", 1) for word in line.split() if "=" in word),
            log_errors=slurms.unexpected_log_lines(controller)[before:],
        )


@pytest.mark.long
def test_a_job_is_on_its_node_while_it_is_stopped_while_it_runs_and_while_it_ends(notice: Notice) -> None:
    assert notice.seen["phases"] == ["runs", "runs", "ends"]


@pytest.mark.long
def test_a_program_that_saves_on_sigterm_has_its_seconds_before_its_node_is_let_go(notice: Notice) -> None:
    assert (notice.saved < notice.seen["let go"], notice.seen["left"] > 5) == (True, True)


@pytest.mark.long
def test_its_job_waits_for_another_node(notice: Notice) -> None:
    held = notice.job["Reason"] == "BadConstraints"  # for ever; see slurm.power_down
    assert (notice.job["JobState"], notice.job["Restarts"], held) == ("PENDING", "1", False)


@pytest.mark.long
def test_an_agent_that_listens_for_the_head_leaves_no_line_of_error_in_its_log(notice: Notice) -> None:
    assert (notice.seen["answers"], [line for line in notice.log_errors if "slurm_receive_msg" in line]) == (
        [True, True, True],
        [],
    )
