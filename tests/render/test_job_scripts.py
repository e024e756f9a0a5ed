"""Job scripts: they fit the queue, pass shellcheck, and start srun with the right arguments."""

import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from corral.model.accounts import AccountsPlan, QosPlan
from corral.model.cluster import ClusterPlan, GresPlan, JobsPlan, QueuePlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.job_scripts import job_files
from corral.spec.rules.name_rules import name_problem
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT
from render.plans import cpu, dev, train

TRAINING = ("accelerate", "deepspeed", "jax", "lightning", "megatron", "sweep", "torchrun")
SCRIPTS = tuple(sorted((*TRAINING, "jupyter", "nccl-tests")))
WITHOUT_ACCELERATORS = ("accelerate", "jax", "jupyter", "lightning", "sweep", "torchrun")
# A fake Slurm: two nodes, and an srun that logs its arguments and environment.
SLURM = {
    "scontrol": """case "$*" in
"show hostnames "*) printf 'train-1\\ntrain-2\\n' ;;
"show node "*) echo "NodeName=$3 NodeAddr=10.64.1.${3#train-} NodeHostName=x" ;;
esac
""",
    "srun": """{
    env
    [ -z "${SLURM_HOSTFILE:-}" ] || sed 's/^/host /' "$SLURM_HOSTFILE"
    printf 'argument %s\\n' "$@"
} >srun.log
[ ! -r output ] || cat output
""",
}
ENVIRONMENT = {
    "SLURM_JOB_ID": "17",
    "SLURM_JOB_NAME": "name",
    "SLURM_JOB_NODELIST": "train-[1-2]",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_NTASKS": "4",
    "SLURM_CPUS_PER_TASK": "12",
    "ALL_REDUCE_PERF": "/bin/true",
}


def p5() -> QueuePlan:
    return replace(train(), instance_type="p5.48xlarge")


@cache
def environment(name: str) -> ClusterPlan:
    """A shipped environment, as it is planned."""
    inputs = read_environment(PROJECT, name)
    return plan_cluster(inputs.cluster, plan_base(inputs.base))


def shipped(name: str) -> QueuePlan:
    """A queue of the shipped environment `mixed`."""
    return environment("mixed").queue(name)


def trn1() -> QueuePlan:
    return shipped("trainium")


def single_gpu(max_nodes: int = 4) -> QueuePlan:
    """Machines with one GPU, and neither EFA nor a spot market."""
    node = replace(train().node, gres=GresPlan(type="a10g", count=1))
    return replace(train(max_nodes), efa=False, nics=cpu().nics, node=node, offers=())


def text_of(script: str, queue: QueuePlan | None = None) -> str:
    """The script of this queue, or of the p4d machines."""
    queue = queue or train()
    return job_files(dev(queue))[f"jobs/{queue.name}/{script}.sbatch"]


def scripts(plan: ClusterPlan) -> dict[str, tuple[str, ...]]:
    """The names of the scripts of each queue."""
    found = [path.removesuffix(".sbatch").split("/") for path in job_files(plan)]
    return {queue.name: tuple(name for _, where, name in found if where == queue.name) for queue in plan.queues}


def options(script: str, queue: QueuePlan | None = None) -> set[str]:
    lines = text_of(script, queue).splitlines()
    return {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH ")}


def test_each_queue_has_the_scripts_that_its_machines_can_run() -> None:
    assert scripts(environment("mixed")) == {
        "train": SCRIPTS,
        "eval": SCRIPTS,
        "trainium": ("jupyter", "sweep", "torchrun"),
    }


def test_a_cluster_of_one_queue_has_them_below_its_name_too() -> None:
    assert list(job_files(dev())) == [f"jobs/train/{script}.sbatch" for script in SCRIPTS]


def test_a_queue_without_accelerators_has_the_scripts_that_need_none() -> None:
    assert scripts(dev(train(), cpu())) == {"train": SCRIPTS, "cpu": WITHOUT_ACCELERATORS}


@pytest.mark.parametrize(("max_nodes", "measured"), [(1, {"jupyter"}), (2, {"jupyter", "nccl-tests"})])
def test_a_single_gpu_has_no_bandwidth_test(max_nodes: int, measured: set[str]) -> None:
    assert {*scripts(dev(single_gpu(max_nodes)))["train"]} - {*TRAINING} == measured


@pytest.mark.parametrize("name", ["..", ".", "a/b", "/etc", "Train", "train.sbatch", "-", ""])
def test_no_queue_has_a_name_that_leads_elsewhere(name: str) -> None:
    assert name_problem(name) is not None


@pytest.mark.parametrize(
    ("queue", "requested"),
    [
        ("train", {"--partition=train", "--gpus-per-node=8", "--gpus-per-node=1"}),
        ("eval", {"--partition=eval", "--gpus-per-node=4", "--gpus-per-node=1"}),
        ("trainium", {"--partition=trainium", "--gres=neuron:16", "--gres=neuron:1"}),
    ],
)
def test_every_script_names_its_own_queue_and_its_devices(queue: str, requested: set[str]) -> None:
    kinds = ("--partition", "--gpus", "--gres")
    texts = [text for path, text in job_files(environment("mixed")).items() if f"/{queue}/" in path]
    lines = {line for text in texts for line in text.splitlines() if line.startswith("#SBATCH")}
    assert {line.removeprefix("#SBATCH ") for line in lines if line.split()[1].startswith(kinds)} == requested


@pytest.mark.parametrize("queue", ["train", "eval", "trainium"])
def test_every_script_names_its_source(queue: str) -> None:
    found = {path: text for path, text in job_files(environment("mixed")).items() if f"/{queue}/" in path}
    assert [path for path, text in found.items() if f"#     cp /opt/corral/{path} .\n" not in text] == []


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (shipped("eval"), "# Queue eval: g6e.12xlarge with 4 x l40s a node."),
        (single_gpu(), "# Queue train: p4d.24xlarge with 1 x a10g a node, no EFA between them."),
        (cpu(), "# Queue cpu: m7i.2xlarge a node."),
    ],
)
def test_a_script_describes_its_queue(queue: QueuePlan, text: str) -> None:
    assert text_of("torchrun", queue).splitlines()[6] == text


@pytest.mark.parametrize(("queue", "expected"), [("eval", False), ("train", True)])
def test_only_queues_with_spot_machines_mention_spot(queue: str, expected: bool) -> None:
    assert ("spot" in text_of("torchrun", shipped(queue))) is expected


def test_an_example_for_a_queue_of_one_node_requests_one_node() -> None:
    alone = train(1)
    examples = {line for line in text_of("torchrun", alone).splitlines() if line.startswith("#     sbatch")}
    assert (examples, "--nodes=1" in options("torchrun", alone)) == (
        {"#     sbatch --nodes=1 torchrun.sbatch train.py --your options"},
        True,
    )


@pytest.mark.parametrize(("max_nodes", "at_once"), [(1, "%1 "), (8, "%4 ")])
def test_a_sweeps_example_starts_no_more_runs_than_there_are_nodes(max_nodes: int, at_once: str) -> None:
    assert f"--array=1-$(wc -l <runs.txt){at_once}" in text_of("sweep", train(max_nodes))


@pytest.mark.parametrize(
    ("queue", "word"),
    [(train(), "per GPU"), (trn1(), "per NeuronCore"), (cpu(), "per node")],
    ids=["GPU", "Neuron", "CPU"],
)
def test_a_script_describes_the_resources_of_a_process(queue: QueuePlan, word: str) -> None:
    assert f"one process {word}." in text_of("torchrun", queue)


@pytest.mark.parametrize("script", ["accelerate", "sweep", "torchrun"])
@pytest.mark.parametrize(("queue", "threads"), [(cpu(), 4), (train(), 1)], ids=["CPUs", "GPUs"])
def test_a_process_on_cpus_alone_has_a_thread_for_each_core(script: str, queue: QueuePlan, threads: int) -> None:
    assert f"export OMP_NUM_THREADS=${{OMP_NUM_THREADS:-{threads}}}\n" in text_of(script, queue)


@pytest.mark.parametrize("script", ["sweep", "torchrun"])
def test_scripts_of_neuron_machines_request_devices_by_gres_name(script: str) -> None:
    requested = {option for option in options(script, trn1()) if "gpu" in option or "gres" in option}
    assert requested == {"--gres=neuron:16"}


def test_neuron_machines_run_one_process_a_core() -> None:
    assert "--nproc-per-node=32 " in text_of("torchrun", trn1())


@pytest.mark.parametrize(("queue", "option"), [("train", "--gpus-per-node=8"), ("eval", "--gpus-per-node=4")])
def test_scripts_of_gpu_machines_request_all_gpus(queue: str, option: str) -> None:
    assert [line for line in options("torchrun", shipped(queue)) if "gpu" in line] == [option]


@pytest.mark.parametrize("script", TRAINING)
def test_script_is_signalled_requeued_and_appends(script: str) -> None:
    assert {"--signal=B:USR1@120", "--requeue", "--open-mode=append", "--exclusive"} - options(script) == set()


def test_a_measurement_is_not_repeated_by_itself() -> None:
    assert {"--no-requeue", "--time=20"} - options("nccl-tests") == set()


def test_a_notebook_has_one_gpu_its_cores_and_the_time_of_a_day_of_work() -> None:
    wanted = {"--gpus-per-node=1", "--cpus-per-task=12", "--nodes=1", "--time=480", "--no-requeue"}
    assert wanted - options("jupyter") == set()
    assert [one for one in options("jupyter") if one.startswith(("--exclusive", "--mem"))] == []


def test_a_notebook_has_no_more_time_than_its_queue_gives() -> None:
    assert "--time=90" in options("jupyter", replace(train(), time_limit_s=5400))


@pytest.mark.parametrize("time", ["soon", "1h", "-1", "1.5"])
def test_a_notebook_refuses_an_idle_time_that_is_no_number_of_seconds(time: str) -> None:
    environment = {"IDLE_S": time, "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    done = subprocess.run(["bash", "-s"], input=text_of("jupyter"), capture_output=True, text=True, env=environment)
    expected = f"corral: IDLE_S={time} is no number of seconds - write 3600, or 0 for never\n"
    assert (done.returncode, done.stderr) == (2, expected)


def test_a_notebook_without_accelerators_has_four_cores() -> None:
    assert "--cpus-per-task=4" in options("jupyter", cpu())


@pytest.mark.parametrize("script", ["accelerate", "deepspeed", "sweep", "torchrun"])
def test_a_launcher_is_one_task_with_the_whole_node(script: str) -> None:
    assert {"--ntasks-per-node=1", "--cpus-per-task=96", "--gpus-per-node=8"} - options(script) == set()


@pytest.mark.parametrize("script", ["jax", "lightning", "megatron", "nccl-tests"])
def test_without_a_launcher_it_is_one_task_a_gpu(script: str) -> None:
    assert {"--ntasks-per-node=8", "--cpus-per-task=12", "--gpus-per-node=8"} - options(script) == set()


def test_an_array_task_has_one_node_and_its_own_output() -> None:
    assert {"--nodes=1", "--output=%x-%A_%a.out"} - options("sweep") == set()


def test_scripts_of_machines_without_accelerators_request_none() -> None:
    options = ("--gpus", "--gres")
    assert [text for text in job_files(dev(cpu())).values() if any(word in text for word in options)] == []


def every_shell() -> list[str]:
    """Scripts of all shipped queues and of other kinds; one of those that differ in numbers and comments alone."""
    others = [p5(), single_gpu(), single_gpu(1), replace(p5(), efa=False), train(1), cpu(), replace(cpu(), max_nodes=2)]
    plans = [*(environment(name) for name in ("dev", "mixed", "train")), *map(dev, others), preempting("23.11")]
    plans += [preempting("24.05"), replace(preempting("24.05"), queues=(train(),))]
    texts = [text for plan in plans for text in job_files(plan).values()]
    return list({re.sub(r"^#(?! shellcheck).*|\d+", "", text, flags=re.MULTILINE): text for text in texts}.values())


def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    for number, text in enumerate(every_shell()):
        (tmp_path / str(number)).write_text(text)
    done = subprocess.run(["shellcheck", *tmp_path.iterdir()], capture_output=True, text=True)
    assert done.stdout == ""


@pytest.mark.parametrize("script", TRAINING)
def test_a_script_without_a_program_prints_its_usage(script: str) -> None:
    done = subprocess.run(["bash", "-s"], input=text_of(script), capture_output=True, text=True)
    assert (done.returncode, done.stderr.split(":")[0]) == (2, "usage")


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeSlurm:
    """A directory in which scripts run with fakes of Slurm's commands."""

    directory: Path

    def program(self, name: str, text: str) -> Path:
        """An executable of this name, next to Slurm's."""
        file = self.directory / "bin" / name
        file.write_text(f"#!/bin/bash\n{text}")
        file.chmod(0o755)
        return file

    def run(
        self, script: str, *arguments: str, plan: ClusterPlan | None = None, at: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """The finished script, with srun's arguments in the file `srun.log`. `plan`: None for the p4d machines.

        `at`: another path of the directory.
        """
        plan = plan or dev(train())
        text = job_files(plan)[f"jobs/{plan.queues[0].name}/{script}.sbatch"]
        text = text.replace("/opt/corral/bin/rank-order", str(self.directory / "bin/rank-order"))
        (self.directory / script).write_text(text)
        path = f"{self.directory / 'bin'}:{os.environ['PATH']}"
        where = at or self.directory
        environment = {"PATH": path, "HOME": str(self.directory), "PWD": str(where), **ENVIRONMENT, **more}
        command = ["bash", script, *arguments]
        return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=30)

    def srun_lines(self, beginning: str) -> list[str]:
        """The lines of srun.log with this beginning, without it."""
        lines = (self.directory / "srun.log").read_text().splitlines()
        return [line.removeprefix(beginning) for line in lines if line.startswith(beginning)]


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[FakeSlurm]:
    slurm = FakeSlurm(directory=tmp_path)
    (tmp_path / "bin").mkdir()
    for name, text in SLURM.items():
        slurm.program(name, text)
    yield slurm


def test_processes_meet_at_the_first_nodes_address(slurm: FakeSlurm) -> None:
    slurm.run("jax", "train.py")
    assert slurm.srun_lines("MASTER_ADDR=") == ["10.64.1.1"]


def test_without_a_command_of_the_site_slurm_orders_the_ranks(slurm: FakeSlurm) -> None:
    slurm.run("jax", "train.py")
    assert slurm.srun_lines("SLURM_HOSTFILE=") == []


def test_the_agents_command_orders_the_ranks_where_the_site_has_none(slurm: FakeSlurm) -> None:
    slurm.program("rank-order", "tac")
    slurm.run("jax", "train.py")
    assert slurm.srun_lines("host ") == ["train-2", "train-2", "train-1", "train-1"]


def test_a_sites_command_comes_before_the_agents(slurm: FakeSlurm) -> None:
    slurm.program("rank-order", "tac")
    slurm.run("jax", "train.py", CORRAL_RANK_ORDER=str(slurm.program("by-name", "sort")))
    assert slurm.srun_lines("SLURM_HOSTFILE=") == []


def test_slurms_own_order_needs_no_file(slurm: FakeSlurm) -> None:
    slurm.program("rank-order", "cat")
    done = slurm.run("jax", "train.py")
    assert (slurm.srun_lines("SLURM_HOSTFILE="), done.stderr) == ([], "")


def test_a_sites_command_orders_the_ranks_task_by_task(slurm: FakeSlurm) -> None:
    order = slurm.program("by-switch", "tac")
    slurm.run("jax", "train.py", CORRAL_RANK_ORDER=str(order))
    assert slurm.srun_lines("host ") == ["train-2", "train-2", "train-1", "train-1"]


def test_srun_follows_that_order(slurm: FakeSlurm) -> None:
    order = slurm.program("by-switch", "tac")
    slurm.run("jax", "train.py", CORRAL_RANK_ORDER=str(order))
    assert slurm.srun_lines("SLURM_DISTRIBUTION=") == ["arbitrary"]


def test_processes_meet_where_rank_0_runs(slurm: FakeSlurm) -> None:
    order = slurm.program("by-switch", "tac")
    slurm.run("torchrun", "train.py", CORRAL_RANK_ORDER=str(order))
    assert "--master-addr=10.64.1.2" in slurm.srun_lines("argument ")


@pytest.mark.parametrize("wrong", ["head -n 1", "cat; echo train-3", "exit 1", "cat; cat /etc/hostname"])
def test_an_order_that_is_not_of_the_jobs_nodes_is_not_followed(slurm: FakeSlurm, wrong: str) -> None:
    order = slurm.program("by-switch", wrong)
    done = slurm.run("jax", "train.py", CORRAL_RANK_ORDER=str(order))
    assert (slurm.srun_lines("SLURM_HOSTFILE="), "using Slurm's rank order" in done.stderr) == ([], True)


def test_the_file_with_the_order_is_gone_afterwards(slurm: FakeSlurm) -> None:
    order = slurm.program("by-switch", "tac")
    slurm.run("jax", "train.py", CORRAL_RANK_ORDER=str(order), TMPDIR=str(slurm.directory))
    assert list(slurm.directory.glob("tmp.*")) == []


NOTICED = """case "$*" in
"show hostnames "*) printf 'train-1\\ntrain-2\\n' ;;
"show node "*{node}*|"show node train-[1-2]") echo "Reason=corral: spot, ends at 12:00:00" ;;
"show job "*) echo "EndTime=Unknown" ;;
requeue*) touch requeued ;;
esac
"""
# It gets the signal from the script, saves, and trains on until its job is requeued or ends.
SAVES = """trap 'touch "$CHECKPOINT_SAVED"' USR1
for _ in {1..100}; do
    [ ! -e requeued ] && [ -e /proc/$PPID/exe ] || exit  # kill -0 finds a killed script, too, until it is waited for
    [ -e "$CHECKPOINT_SAVED" ] || kill -USR1 $PPID # again, as the script ignores a signal before it knows its task
    sleep 0.1
done
"""


@pytest.mark.parametrize("node", ["train-1", "train-2"])
def test_a_notice_to_any_node_of_a_job_moves_it_when_its_checkpoint_is_written(slurm: FakeSlurm, node: str) -> None:
    slurm.program("scontrol", NOTICED.replace("{node}", node))
    slurm.program("srun", SAVES)
    done = slurm.run("jax", "train.py", SLURMD_NODENAME="train-1")
    assert "corral: requeue, the checkpoint is written and a machine is being reclaimed" in done.stdout.splitlines()


PREEMPTED = """case "$*" in
"show hostnames "*) printf 'train-1\\ntrain-2\\n' ;;
"show job "*) echo "PreemptTime=2026-11-28T12:00:00 EndTime=Unknown" ;;
requeue*) touch requeued ;;
esac
"""
SAVES_AND_ENDS = "trap 'exit 0' USR1\nwhile sleep 0.1; do kill -USR1 $PPID; done\n"


def preempting(slurm_version: str) -> ClusterPlan:
    """A cluster on which one QOS preempts another."""
    qos = (QosPlan(name="day", preempts=("night",)), QosPlan(name="night", grace_s=60))
    return replace(dev(single_gpu(), slurm_version=slurm_version), accounts=AccountsPlan(qos=qos))


@pytest.mark.parametrize(
    ("slurm_version", "killed", "requeued"), [("23.11", False, True), ("24.05", True, False), ("26.05", True, False)]
)
@pytest.mark.parametrize(("script", "program"), [("jax", SAVES), ("megatron", SAVES_AND_ENDS)])
def test_a_preempted_job_ends_where_slurm_requeues_what_ends_and_requeues_itself_elsewhere(
    slurm: FakeSlurm, script: str, program: str, slurm_version: str, killed: bool, requeued: bool
) -> None:
    slurm.program("scontrol", PREEMPTED)
    slurm.program("srun", program)
    slurm.program("sleep", '[ "$1" != infinity ] || exit 0\nexec /bin/sleep "$@"')
    done = slurm.run(script, "train.py", plan=preempting(slurm_version))
    assert (done.returncode == -9, (slurm.directory / "requeued").exists()) == (killed, requeued)


@pytest.mark.parametrize(
    ("slurm_version", "call"), [("23.11", "scontrol requeue 17_2\n"), ("24.05", "scancel --batch --signal=KILL 17_2\n")]
)
def test_lightning_ends_its_job_in_its_grace_time(slurm: FakeSlurm, slurm_version: str, call: str) -> None:
    slurm.program("scontrol", PREEMPTED.replace("touch requeued", 'echo "scontrol $*" >calls'))
    slurm.program("scancel", 'echo "scancel $*" >calls')
    slurm.program("srun", "scontrol requeue 17_2")
    slurm.run("lightning", "train.py", plan=preempting(slurm_version))
    assert (slurm.directory / "calls").read_text() == call


@pytest.mark.parametrize("checkpoints", ["checkpoints", "of:a:name"])
def test_a_lightning_job_that_another_one_submitted_finds_slurms_own_scontrol(
    slurm: FakeSlurm, tmp_path_factory: pytest.TempPathFactory, checkpoints: str
) -> None:
    submitters = tmp_path_factory.mktemp("corral-scontrol.")
    passes_on = f'[ "$1" != requeue ] || touch looped; exec {slurm.directory}/bin/scontrol "$@"'
    (submitters / "scontrol").write_text(f"#!/bin/sh\n{passes_on}\n")
    (submitters / "scontrol").chmod(0o755)
    slurm.program("scontrol", PREEMPTED)
    slurm.program("scancel", "touch ended")
    slurm.program("srun", "scontrol requeue 17_2")
    path = f"{submitters}:{slurm.directory / 'bin'}:{os.environ['PATH']}"
    slurm.run("lightning", "train.py", plan=preempting("24.05"), PATH=path, CHECKPOINT_DIR=checkpoints)
    assert [(slurm.directory / name).exists() for name in ("ended", "looped")] == [True, False]


def test_lightning_requeues_its_job_before_a_time_limit(slurm: FakeSlurm) -> None:
    slurm.program("scontrol", PREEMPTED.replace("PreemptTime=2026-11-28T12:00:00", "PreemptTime=None"))
    slurm.program("srun", "scontrol requeue 17")
    slurm.run("lightning", "train.py", plan=preempting("24.05"))
    assert (slurm.directory / "requeued").exists()


def test_a_slurmctld_that_does_not_answer_is_no_time_limit(slurm: FakeSlurm) -> None:
    """`date --date=` of nothing is midnight, which would be a limit long ago."""
    away = 'if [ "$1 $2" = "show job" ] && ! [ -e seen ]; then touch seen; exit 1; fi\n'
    slurm.program("scontrol", away + NOTICED.replace("{node}", "train-1"))
    slurm.program("srun", SAVES)
    done = slurm.run("jax", "train.py", SLURMD_NODENAME="train-1")
    assert "before the time limit" not in done.stdout


def test_checkpoints_lie_in_a_directory_of_the_jobs_own(slurm: FakeSlurm) -> None:
    slurm.run("torchrun", "train.py")
    assert slurm.srun_lines("CHECKPOINT_DIR=") == [str(slurm.directory / "checkpoints/name-17")]


def test_each_array_task_has_its_own_directory(slurm: FakeSlurm) -> None:
    (slurm.directory / "runs.txt").write_text("--lr 1\n--lr 2\n")
    slurm.run("sweep", "runs.txt", "train.py", SLURM_ARRAY_JOB_ID="16", SLURM_ARRAY_TASK_ID="2", CHECKPOINT_DIR="here")
    assert slurm.srun_lines("CHECKPOINT_DIR=") == ["here/2"]


def test_steps_are_recorded_in_a_directory_of_the_jobs_own(slurm: FakeSlurm) -> None:
    slurm.run("torchrun", "train.py")
    directory = slurm.directory / ".corral/steps/17"
    assert slurm.srun_lines("CORRAL_STEP_DIR=") == [str(directory)]
    above = (directory, *directory.parents[:2], *directory.glob("python.*"))
    assert [f"{one.stat().st_mode:o}" for one in above] == ["40700"] * 4


def test_the_module_that_records_steps_has_a_path_that_nobody_guesses(slurm: FakeSlurm) -> None:
    """On the other nodes of a job, or later, the directory of this name may be somebody else's."""
    found = []
    for _ in range(2):
        slurm.run("torchrun", "train.py")
        found += slurm.srun_lines("PYTHONPATH=")
    known = re.escape(str(slurm.directory / ".corral/steps/17"))
    assert [bool(re.fullmatch(rf"{known}/python\.\w{{12}}", one)) for one in found] == [True, True]
    assert found[0] != found[1]


def test_steps_are_recorded_where_the_jobs_directory_is_and_not_at_a_link_to_it(slurm: FakeSlurm) -> None:
    """Whoever made the link could let it lead elsewhere."""
    link = slurm.directory / "link"
    link.symlink_to(slurm.directory)
    slurm.run("torchrun", "train.py", at=link)
    assert slurm.srun_lines("CORRAL_STEP_DIR=") == [f"{slurm.directory}/.corral/steps/17"]


STEP_DIRECTORIES = (".corral", ".corral/steps", ".corral/steps/17")


def refused(slurm: FakeSlurm, part: str) -> None:
    """Run a job that records nothing because of this directory, and takes no module from there."""
    done = slurm.run("torchrun", "train.py", CORRAL_STEP_DIR=str(slurm.directory / ".corral/steps/17"))
    message = f"corral: steps are not recorded: {slurm.directory}/{part} is no directory of yours that you alone can"
    assert (done.returncode, done.stderr) == (0, f"{message} write to\n")
    assert [*slurm.srun_lines("CORRAL_STEP_DIR="), *slurm.srun_lines("PYTHONPATH=")] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's directory needs root: run the tests as root")
@pytest.mark.parametrize("part", STEP_DIRECTORIES)
def test_a_directory_that_another_user_made_first_gets_no_steps_and_gives_no_module(
    slurm: FakeSlurm, part: str
) -> None:
    directory = slurm.directory / ".corral/steps/17"
    directory.mkdir(parents=True, mode=0o700)
    for one in (directory, *directory.parents[:2]):
        one.chmod(0o700)
    os.chown(slurm.directory / part, 65534, 65534)
    refused(slurm, part)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
@pytest.mark.parametrize("part", STEP_DIRECTORIES)
def test_a_directory_that_others_can_write_to_gets_no_steps_and_gives_no_module(
    slurm: FakeSlurm, part: str, mode: int
) -> None:
    directory = slurm.directory / ".corral/steps/17"
    directory.mkdir(parents=True)
    for one in (directory, *directory.parents[:2]):
        one.chmod(0o700)
    (slurm.directory / part).chmod(mode)
    refused(slurm, part)


@pytest.mark.parametrize("part", STEP_DIRECTORIES)
def test_nothing_is_written_through_a_link_that_somebody_left(slurm: FakeSlurm, part: str) -> None:
    own = slurm.directory / "own"
    own.mkdir(mode=0o700)
    link = slurm.directory / part
    link.parent.mkdir(parents=True, exist_ok=True)
    for one in (*link.parents,)[: part.count("/")]:
        one.chmod(0o700)
    link.symlink_to(own)
    refused(slurm, part)
    assert [one for one in own.rglob("*") if one.is_file()] == []


def test_a_jobs_own_path_of_python_modules_stays_behind_it(slurm: FakeSlurm) -> None:
    slurm.run("torchrun", "train.py", PYTHONPATH="/scratch/python")
    first, second = slurm.srun_lines("PYTHONPATH=")[0].split(":")
    assert (Path(first).parent, second) == (slurm.directory / ".corral/steps/17", "/scratch/python")


def test_the_output_of_a_job_can_be_found(slurm: FakeSlurm) -> None:
    """The script leaves where its own output goes: here, a pipe of the test's."""
    slurm.run("torchrun", "train.py")
    assert (slurm.directory / ".corral/steps/17/output").read_text().startswith("pipe:[")


def test_an_array_task_records_its_own_steps(slurm: FakeSlurm) -> None:
    (slurm.directory / "runs.txt").write_text("--seed 1\n--seed 2\n")
    slurm.run("sweep", "runs.txt", "train.py", SLURM_ARRAY_JOB_ID="17", SLURM_ARRAY_TASK_ID="2")
    assert slurm.srun_lines("CORRAL_STEP_DIR=") == [f"{slurm.directory}/.corral/steps/17_2"]


def test_a_job_whose_directory_cannot_be_written_runs_without_recording(slurm: FakeSlurm) -> None:
    (slurm.directory / ".corral").write_text("a file")
    done = slurm.run("torchrun", "train.py")
    assert (done.returncode, slurm.srun_lines("CORRAL_STEP_DIR=")) == (0, [])


def test_an_array_task_appends_its_line_to_the_options(slurm: FakeSlurm) -> None:
    (slurm.directory / "runs.txt").write_text("--lr 1\n--lr 2 --seed *\n")
    slurm.run("sweep", "runs.txt", "train.py", "--x", SLURM_ARRAY_JOB_ID="16", SLURM_ARRAY_TASK_ID="2")
    assert slurm.srun_lines("argument ")[-6:] == ["train.py", "--x", "--lr", "2", "--seed", "*"]


def test_launcher_starts_an_array_task(slurm: FakeSlurm) -> None:
    (slurm.directory / "runs.txt").write_text("--lr 1\n")
    given = {"SLURM_ARRAY_JOB_ID": "16", "SLURM_ARRAY_TASK_ID": "1", "LAUNCHER": "python3 -u"}
    slurm.run("sweep", "runs.txt", "train.py", **given)
    assert slurm.srun_lines("argument ")[-6:] == ["task", "python3", "-u", "train.py", "--lr", "1"]


def test_an_array_task_without_a_line_is_an_error(slurm: FakeSlurm) -> None:
    (slurm.directory / "runs.txt").write_text("--lr 1\n")
    done = slurm.run("sweep", "runs.txt", "train.py", SLURM_ARRAY_JOB_ID="16", SLURM_ARRAY_TASK_ID="2")
    assert (done.returncode, done.stderr) == (2, "corral: runs.txt has no line 2, or it is empty\n")


def test_deepspeed_gets_all_devices_of_all_nodes(slurm: FakeSlurm) -> None:
    slurm.run("deepspeed", "train.py")
    encoded = next(text for text in slurm.srun_lines("argument --world_info="))
    eight = [0, 1, 2, 3, 4, 5, 6, 7]
    assert json.loads(base64.urlsafe_b64decode(encoded)) == {"train-1": eight, "train-2": eight}


def test_accelerate_gets_the_total_number_of_processes(slurm: FakeSlurm) -> None:
    slurm.run("accelerate", "train.py")
    assert {"--num_machines=2", "--num_processes=16", "--multi_gpu"} - set(slurm.srun_lines("argument ")) == set()


def test_accelerates_options_are_the_users(slurm: FakeSlurm) -> None:
    slurm.run("accelerate", "train.py", ACCELERATE_OPTIONS="--config_file fsdp.yaml")
    assert slurm.srun_lines("argument ")[6:8] == ["--config_file", "fsdp.yaml"]


@pytest.mark.parametrize(
    ("queue", "nodes", "given", "words"),
    [
        (single_gpu(), "2", {}, {"--multi_gpu", "--num_processes=2"}),
        (single_gpu(), "1", {}, {"--num_processes=1"}),
        (single_gpu(), "2", {"ACCELERATE_OPTIONS": "--mixed_precision bf16"}, {"--multi_gpu", "--num_processes=2"}),
        (single_gpu(), "2", {"ACCELERATE_OPTIONS": "--use_fsdp"}, {"--use_fsdp", "--num_processes=2"}),
        (single_gpu(), "2", {"ACCELERATE_OPTIONS": "--multi_gpu"}, {"--multi_gpu", "--num_processes=2"}),
        (train(), "1", {}, {"--multi_gpu", "--num_processes=8"}),
        (cpu(), "2", {}, {"--multi_gpu", "--num_processes=2"}),
        (cpu(), "1", {}, {"--num_processes=1"}),
    ],
    ids=["two nodes", "one", "own options", "FSDP", "given already", "one with many", "two with CPUs", "one with CPUs"],
)
def test_accelerate_is_distributed_where_there_is_more_than_one_process(
    slurm: FakeSlurm, queue: QueuePlan, nodes: str, given: dict[str, str], words: set[str]
) -> None:
    slurm.run("accelerate", "train.py", plan=dev(queue), SLURM_JOB_NUM_NODES=nodes, **given)
    words_of_srun = slurm.srun_lines("argument ")
    kinds = ("--multi", "--use", "--num_processes")
    assert sorted(word for word in words_of_srun if word.startswith(kinds)) == sorted(words)


@pytest.mark.parametrize(("queue", "values"), [(cpu(), ["true"]), (train(), [])], ids=["CPUs", "GPUs"])
def test_accelerate_knows_where_there_are_cpus_alone(slurm: FakeSlurm, queue: QueuePlan, values: list[str]) -> None:
    slurm.run("accelerate", "train.py", plan=dev(queue))
    assert slurm.srun_lines("ACCELERATE_USE_CPU=") == values


def test_megatron_saves_and_loads_in_the_jobs_directory_by_default(slurm: FakeSlurm) -> None:
    slurm.run("megatron", "pretrain.py", "--save", "mine")
    at = slurm.srun_lines("argument ").index("pretrain.py")
    where = str(slurm.directory / "checkpoints/name-17")
    assert slurm.srun_lines("argument ")[at:] == [
        *("pretrain.py", "--save", where, "--load", where, "--exit-signal-handler"),
        *("--save", "mine"),
    ]


EFA = "NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 4 nics)\n"


def row(gb_per_s: float) -> str:
    return f" 17179869184 4294967296 float sum -1 413 41.5 {gb_per_s} 0 414 41.4 {gb_per_s} 0\n"


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (EFA + row(78.1), 0),
        (EFA + row(66.3), 0),
        (EFA + row(66.2), 1),
        (row(78.1), 1),
        (EFA.replace("4 nics", "1 nics") + row(78.1), 1),
        (EFA, 1),
    ],
    ids=["as measured", "85 % of it", "less", "over TCP", "an EFA device is missing", "no figure"],
)
def test_nccl_tests_compares_with_what_was_measured(slurm: FakeSlurm, output: str, code: int) -> None:
    (slurm.directory / "output").write_text(output)
    assert slurm.run("nccl-tests").returncode == code


def test_nccl_tests_over_other_numbers_of_nodes_only_shows_its_figure(slurm: FakeSlurm) -> None:
    (slurm.directory / "output").write_text(EFA + row(20))
    done = slurm.run("nccl-tests", SLURM_JOB_NUM_NODES="3", SLURM_NTASKS="24")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "corral: 20 GB/s bus bandwidth over 3 nodes")


def test_nccl_tests_shows_the_largest_measured_size(slurm: FakeSlurm) -> None:
    assert "    2) expected=487.0 ;;" in text_of("nccl-tests", p5()).splitlines()


def test_nccl_tests_without_efa_looks_for_none_and_sends_less(slurm: FakeSlurm) -> None:
    (slurm.directory / "output").write_text(row(0.3))
    done = slurm.run("nccl-tests", plan=dev(single_gpu()), SLURM_NTASKS="2")
    sizes = slurm.srun_lines("argument ")[4:8]
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, last, sizes) == (
        0,
        "corral: 0.3 GB/s bus bandwidth over 2 nodes",
        ["-b", "1M", "-e", "1G"],
    )


@pytest.mark.parametrize(
    "queue", [shipped("eval"), replace(p5(), efa=False), replace(p5(), max_nodes=1)], ids=["L40S", "no EFA", "one node"]
)
def test_nccl_tests_has_no_figure_without_a_measurement(queue: QueuePlan) -> None:
    text = text_of("nccl-tests", queue)
    assert ("no measured figure" in text, "expected" in text) == (True, False)


def test_nccl_tests_of_one_node_speaks_of_no_network() -> None:
    comments = [line for line in text_of("nccl-tests", train(1)).splitlines() if line.startswith("# ")]
    assert [line for line in comments if "EFA" in line or "TCP" in line or "two nodes" in line] == []


def test_secrets_are_read_by_name_into_the_jobs_environment(tmp_path: Path) -> None:
    plan = replace(dev(), jobs=JobsPlan(secrets={"HF_TOKEN": "team/hf", "WANDB_API_KEY": "team/wandb"}))
    text = job_files(plan)["jobs/train/torchrun.sbatch"]
    lines = text[text.index("secret() {") :].splitlines()[:5]
    (tmp_path / "aws").write_text('#!/bin/sh\necho "value of $6"\n')
    (tmp_path / "aws").chmod(0o755)
    script = "\n".join(["set -euo pipefail", *lines, 'echo "$HF_TOKEN, $WANDB_API_KEY"'])
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr) == ("value of team/hf, value of team/wandb\n", "")


def test_a_script_of_an_environment_without_secrets_reads_none() -> None:
    assert "secret" not in job_files(dev())["jobs/train/torchrun.sbatch"]
