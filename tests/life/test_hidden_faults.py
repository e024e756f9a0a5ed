"""Jobs with faults are hidden among healthy ones, and `corral diagnose` finds each fault and nothing else.

The faults are in the programs and machines, not in what is recorded of them. A seed shuffles the jobs:
CORRAL_HIDDEN_FAULTS_SEED chooses another (default: 18). The first set is here, the second one, of somebody else, in
second_faults.py. The second has every kind of fault that the first has, so it runs alone by default, for time:
CORRAL_HIDDEN_FAULTS_SETS='first second' hides both.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import second_faults
from clusters import UP_IN_S, Cluster
from hidden_runs import HOME, Run
from people import as_person
from public_outputs import (
    BACK_TO_TCP,
    CHANNELS_OVER_TCP,
    CUDA_OUT_OF_MEMORY,
    OLD_CUDA_OUT_OF_MEMORY,
    OVER_EFA,
    TCP_ON_ONE_NODE,
)

import boxes
from agent.health_fixtures import RECORDED
from corral.box.vpc.capabilities import probe_host
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
PROGRAMS = Path(__file__).parent / "programs"
SEED = os.environ.get("CORRAL_HIDDEN_FAULTS_SEED", "18")
SETS = os.environ.get("CORRAL_HIDDEN_FAULTS_SETS", "second").split()
ALL_S = 2400.0
READING_S = 15.0  # nvidia-smi's next answer
# As an owner does who wants jobs to keep to their memory where machines have no cgroups.
OVER_MEMORY = "JobAcctGatherParams=OverMemoryKill\\nJobAcctGatherFrequency=task=1\\n"
NCCL_OF_OLD = (
    "FI_PROVIDER=efa FI_EFA_USE_DEVICE_RDMA=1 NCCL_IB_DISABLE=1 NCCL_ASYNC_ERROR_HANDLING=1 NCCL_DEBUG=INFO "
    "NCCL_SOCKET_IFNAME=ens32"
)


HEALTHY: Mapping[str, Run] = {
    "steady": Run(),
    "short steps": Run(options="--step 0.03 --noise 0.05", tasks=1),
    "long steps": Run(options="--step 0.1 --noise 0.06"),
    "sequences of all lengths": Run(options="--vary 0.5 --noise 0.06"),
    "compiles at first": Run(options="--warm-up 4 --warm-up-steps 3"),
    "reads its index at first": Run(options="--first-batch 9"),
    "all evaluate": Run(options="--evaluate-every 100 --evaluation 1.5 --all-evaluate"),
    "the first process evaluates": Run(options="--evaluate-every 150 --evaluation 2"),
    "saves now and then": Run(options="--save-every 250 --saving 0.4"),
    "all save now and then": Run(options="--save-every 250 --saving 0.3 --all-save"),
    "saves in the background": Run(options="--save-every 100 --saving 4 --save-behind"),
    "a new epoch starts its loader": Run(options="--late 0.7 --late-every 300"),
    "some layers more on one half": Run(options="--imbalance 0.06"),
    "of Lightning": Run(script="lightning", options="--no-communication"),
    "of Megatron": Run(script="megatron", tasks=4),
    "of a sweep": Run(script="sweep", nodes=1, tasks=1, sbatch="--mem=2G --array=1"),
    "ended soon": Run(options="--seconds 4"),
    "cancelled": Run(options="--seconds 600", until="cancelled"),
    "runs": Run(options="--seconds 900", until="runs"),
    "runs and saves": Run(options="--seconds 900 --save-every 250 --saving 0.3", until="runs"),
    "waits": Run(sbatch="--mem=2G --begin=now+2hours", until="waits"),
    "a mistake in one process": Run(options="--fail key --fail-in 1"),
    "ended by itself": Run(options="--fail exit"),
    "another state": Run(options=f"--fail state --fail-text @{HOME}/state.txt"),
    "a module is missing": Run(options="--fail import"),
    "records nothing": Run(options="--unrecorded"),
    "records nothing and is cancelled": Run(options="--unrecorded --seconds 600", until="cancelled"),
    "tried a larger batch first": Run(options=f"--show {HOME}/tried.txt"),
    "tried a larger batch first, and runs": Run(options=f"--seconds 900 --show {HOME}/tried.txt", until="runs"),
    "tried a larger batch first, then a mistake": Run(options=f"--show {HOME}/tried.txt --fail key"),
    "over TCP until it was requeued": Run(
        options=f"--seconds 900 --show-once {HOME}/back-to-tcp.txt", until="runs again"
    ),
    "variables of old": Run(variables=NCCL_OF_OLD, options=f"--show {HOME}/efa.txt"),
    "on one node": Run(nodes=1, tasks=4, variables="NCCL_DEBUG=INFO", options=f"--show {HOME}/one-node.txt"),
}
FAULTY: Mapping[str, Run] = {
    "loader": Run(fault="data-loader", options="--produce 0.09"),
    "loader of one process": Run(fault="data-loader", options="--produce 0.1 --slow-loader-of 3"),
    "loader now and then": Run(fault="data-loader", options="--seconds 900 --late 1 --late-every 40", until="runs"),
    "network": Run(fault="communication", options="--exchange 0.04"),
    "limping node": Run(
        fault="straggler", on="train-2", where="train-[1-2]", options="--in-pieces --step 0.08 --mark limps"
    ),
    "saves in the way": Run(fault="checkpoint-stalls", options="--save-every 120 --saving 2.5 --seconds 60"),
    "all save in the way": Run(
        fault="checkpoint-stalls", options="--seconds 900 --save-every 100 --saving 2 --all-save", until="runs"
    ),
    "file system": Run(
        fault="slow-file-system",
        directory=f"{HOME}/slow",
        options=f"--seconds 60 --data {HOME}/slow/tokens --save-every 40 --saving 0",
    ),
    "memory of the job": Run(fault="out-of-memory", options="--fail grow --fail-in 2", sbatch="--mem=150M"),
    "memory of a process": Run(fault="out-of-memory", options="--fail host --fail-in 1"),
    "memory of a GPU": Run(fault="out-of-memory", options=f"--fail cuda --fail-in 2 --fail-text @{HOME}/cuda.txt"),
    "memory of a GPU, old": Run(
        fault="out-of-memory", options=f"--unrecorded --fail state --fail-in 3 --fail-text @{HOME}/old-cuda.txt"
    ),
    "no NVLink": Run(fault="wrong-network-settings", variables="NCCL_P2P_DISABLE=1"),
    "back to TCP": Run(fault="wrong-network-settings", options=f"--show {HOME}/back-to-tcp.txt"),
    "channels over TCP": Run(fault="wrong-network-settings", options=f"--show {HOME}/channels.txt"),
}
# After all others, since it takes a node away.
HOT = Run(
    fault="throttled-gpu",
    on="train-4",
    where="train-[3-4]",
    options="--in-pieces --step 0.08 --mark hot --seconds 900",
    until="runs",
)
TEXTS = {
    "state": "Error(s) in loading state_dict for Decoder: size mismatch for memory.weight: copying a param with shape "
    "torch.Size([512, 1024]) from checkpoint, the shape in current model is torch.Size([512, 2048]).",
    "tried": f"batch 64: {CUDA_OUT_OF_MEMORY}going on with batch 32",
    "efa": OVER_EFA,
    "one-node": TCP_ON_ONE_NODE,
    "cuda": CUDA_OUT_OF_MEMORY,
    "old-cuda": OLD_CUDA_OUT_OF_MEMORY,
    "back-to-tcp": BACK_TO_TCP,
    "channels": CHANNELS_OVER_TCP,
}


def test_hidden_faults_are_found_and_healthy_jobs_have_no_finding(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("hidden")
    with ExitStack() as stack:
        box = stack.enter_context(boxes.running_box(directory / "box", machines=True))
        cluster = Cluster(life=begin(directory, box), name="dev")
        come_up(cluster)
        stack.enter_context(slow_directory(cluster, "slow", "tokens", 0.4, 1))
        archive = (second_faults.ARCHIVE_REQUEST_S, second_faults.ARCHIVE_MIB)
        stack.enter_context(slow_directory(cluster, "archive", "shards", *archive))
        runs = chosen_runs()
        jobs = submit_all(cluster, {name: run for name, run in runs.items() if not run.readings})
        limp(cluster, "train-2", "limps")
        limp(cluster, "train-3", "stumbles", "60", "140")
        found = diagnose_all(cluster, runs, jobs)
        if "first" in SETS:
            runs, found["hot GPU"] = {**runs, "hot GPU": HOT}, diagnose_hot_node(cluster)
        report(runs, found)
        expected = {name: {"first": run.fault, "nodes": run.on} for name, run in runs.items()}
        with step("each faulty job has its finding first, and no healthy one has any"):
            assert {name: first(one, runs[name]) for name, one in found.items()} == expected
        name, node = next((one, run.on) for one, run in runs.items() if run.fault == "straggler")
        healthy = next(one for one, run in runs.items() if not run.fault and run.until == "ends")
        with step("the screen of a faulty job has its finding and what to do"):
            screen = cluster.life.corral("diagnose", "dev", jobs[name], "--box").out
            assert node in screen and "scontrol" in screen
        with step("the screen of a healthy job reports that nothing is wrong"):
            assert node not in cluster.life.corral("diagnose", "dev", jobs[healthy], "--box").out
        cluster.life.done("down", "dev")


def chosen_runs() -> dict[str, Run]:
    """The jobs of the chosen sets."""
    first = {**HEALTHY, **FAULTY} if "first" in SETS else {}
    second = {**second_faults.HEALTHY, **second_faults.FAULTY} if "second" in SETS else {}
    assert not first.keys() & second.keys()
    return {**first, **second}


def come_up(cluster: Cluster) -> None:
    """The cluster, its user and her files, with its eight nodes up."""
    text = cluster.spec.read_text().replace("max: 4", "max: 8")
    assert "max: 8" in text
    lines = "    access:\n      users:\n        ada: {uid: 2000}\n    monitoring: {prometheus: true}\n"
    cluster.spec.write_text(text + lines)
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
    cluster.until(lambda: cluster.on_head("id", "ada"))
    script = f"printf '{OVER_MEMORY}' >> /etc/slurm/own.conf && scontrol reconfigure"
    cluster.on_head("sh", "-c", script)
    home = cluster.home() / "ada"
    files = {name: (PROGRAMS / name).read_text() for name in ("trains.py", "learns.py", "slows_down.py")}
    files |= {f"{name}.txt": text for name, text in (*TEXTS.items(), *second_faults.TEXTS.items())}
    files |= {"runs.txt": "--step 0.05\n--step 0.06\n"}
    for name, text in files.items():
        (home / name).write_text(text)
        (home / name).chmod(0o644)
    boots = as_person(cluster, "ada", "sbatch --parsable --nodes=8 --wrap='sleep 1' --output=/dev/null")
    assert cluster.end(int(boots)) == ("COMPLETED", "0")


@contextmanager
def slow_directory(cluster: Cluster, name: str, data: str, request_s: float, mib_per_s: float) -> Iterator[None]:
    """A directory of ada's that is slow on each machine, with a file of data."""
    as_person(cluster, "ada", f"mkdir {HOME}/{name}")
    source = cluster.home() / "ada" / name
    (source / data).write_bytes(random.Random(SEED).randbytes(4 << 20))
    with ExitStack() as stack:
        for machine in (cluster.head(), *cluster.nodes().values()):
            mounts = cluster.on(machine, "readlink", "/proc/self/ns/mnt")
            pid = next(one.parts[2] for one in Path("/proc").glob("[0-9]*/ns/mnt") if target(one) == mounts)
            program = [sys.executable, str(PROGRAMS / "slow_file_system.py")]
            words = [*program, pid, f"{HOME}/{name}", str(source), str(request_s), str(mib_per_s)]
            server = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
            stack.callback(server.kill)
            assert server.stdout and server.stdout.readline() == "mounted\n"
        yield


def target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def submit_all(cluster: Cluster, runs: Mapping[str, Run]) -> dict[str, str]:
    """The jobs' ids by name, in the order of their numbers, which the seed chooses."""
    names = list(runs)
    random.Random(SEED).shuffle(names)
    return {name: submit(cluster, runs[name]) for name in names}


def submit(cluster: Cluster, run: Run) -> str:
    resources = f"--nodes={run.nodes} --ntasks-per-node={run.tasks} --cpus-per-task=1 {run.sbatch}"
    resources += f" --gpus-per-node={run.gpus}"
    where = f"--nodelist={run.where}" if run.where else f"--exclude={','.join(second_faults.GPU_NODES)}"
    program = f"{HOME}/{run.program} {run.options}"
    program = f"{HOME}/runs.txt {program}" if run.script == "sweep" else program
    printed = as_person(
        cluster,
        "ada",
        f"cd {run.directory} && {run.variables} PYTHON=/usr/bin/python3 LAUNCHER=/usr/bin/python3 "
        f"sbatch --parsable --oversubscribe {resources} {where} /opt/corral/jobs/train/{run.script}.sbatch {program}",
    )
    assert printed.isdecimal(), printed
    return f"{printed}_1" if run.script == "sweep" else printed


def limp(cluster: Cluster, node: str, word: str, *milliseconds: str) -> None:
    """Stop what has this word on its command line again and again, on one machine, from now on."""
    command = (
        f"setsid /usr/bin/python3 {HOME}/slows_down.py {' '.join((word, *milliseconds))} </dev/null >/dev/null 2>&1 &"
    )
    cluster.on(cluster.instance_of(node), "sh", "-c", command)


def diagnose_all(cluster: Cluster, runs: Mapping[str, Run], jobs: dict[str, str]) -> dict[str, list[Finding]]:
    """What `corral diagnose` finds in each job, when it has ended, or has run for long enough.

    Jobs with readings are submitted here, each when its nodes are free.
    """
    found: dict[str, list[Finding]] = {}
    requeued: set[str] = set()
    began: dict[str, float] = {}
    deadline = time.monotonic() + ALL_S
    while len(found) < len(runs):
        assert time.monotonic() < deadline, f"{sorted(runs.keys() - found)}\n{cluster.story()}"
        time.sleep(2)
        for name in next_with_readings(runs, jobs, found):
            show_readings(cluster, runs[name], 0)
            jobs[name] = submit(cluster, runs[name])
        queued = dict(line.split() for line in cluster.on_head("squeue", "-rho", "%A %T").splitlines())
        for name, run in runs.items():
            number = jobs.get(name, "").partition("_")[0]
            state = queued.get(number, "")
            if name in found or not number:
                continue
            if state == "RUNNING":
                began.setdefault(name, time.monotonic())
                show_readings(cluster, run, time.monotonic() - began[name])
            is_early = state == "RUNNING" and (
                run.until == "ends"
                or time.monotonic() < began[name] + run.after_s
                or (not run.after_s and not has_run(cluster, run, jobs[name], 1 + (name in requeued)))
            )
            if is_early or (state in ("PENDING", "COMPLETING") and run.until != "waits"):
                continue
            if run.until == "runs again" and name not in requeued:
                as_person(cluster, "ada", f"scontrol requeue {number}")
                requeued.add(name)
                continue
            if run.until == "cancelled" and state:
                as_person(cluster, "ada", f"scancel {number}")
                continue
            found[name] = diagnose(cluster, jobs[name], name)
            if run.until in ("runs", "runs again", "waits"):
                as_person(cluster, "ada", f"scancel {number}")
    return found


def next_with_readings(runs: Mapping[str, Run], jobs: Mapping[str, str], found: Mapping[str, object]) -> list[str]:
    """Jobs with readings whose nodes no other such job has now."""
    taken = {node for name in jobs if name not in found for node in runs[name].readings}
    names = [name for name, run in runs.items() if run.readings and name not in jobs]
    random.Random(SEED).shuffle(names)
    free = []
    for name in names:
        if not taken & runs[name].readings.keys():
            free.append(name)
            taken |= runs[name].readings.keys()
    return free


def show_readings(cluster: Cluster, run: Run, seconds: float) -> None:
    """What nvidia-smi answers on the nodes of this job, so long after its start."""
    for node, texts in run.readings.items():
        health = Path(cluster.life.box.dir) / "machines/disks" / cluster.instance_of(node) / "box/health"
        health.mkdir(parents=True, exist_ok=True)
        text, file = texts[int(seconds / READING_S) % len(texts)], health / "gpu-load.csv"
        if not file.exists() or file.read_text() != text:
            new = health / ".new"
            new.write_text(text)
            new.replace(file)


def has_run(cluster: Cluster, run: Run, job: str, runs: int = 1) -> bool:
    """It has made many steps, in each of its runs."""
    directory = cluster.home() / run.directory.removeprefix("/home/")
    file = directory / f"{run.script}-{job}.out"
    return file.exists() and file.read_text().count("\nstep 500 ") >= runs


Finding = tuple[str, Sequence[str], Sequence[str]]


def diagnose(cluster: Cluster, job: str, name: str) -> list[Finding]:
    shown = json.loads(cluster.life.corral("diagnose", "dev", job, "--box", "--json").out)
    if kept := os.environ.get("CORRAL_HIDDEN_FAULTS_KEEP"):  # a directory, for whoever looks at the evidence later
        Path(kept, f"{name}.json").write_text(json.dumps(shown, indent=1))
    return [(one["kind"], one["nodes"], one["evidence"]) for one in shown["findings"]]


def diagnose_hot_node(cluster: Cluster) -> list[Finding]:
    """A GPU of train-4 is so hot that it slows itself down: the check before another job there finds it."""
    disk = Path(cluster.life.box.dir) / "machines/disks" / cluster.instance_of("train-4") / "box/health"
    job = submit(cluster, HOT)
    limp(cluster, "train-4", "hot")
    cluster.until(lambda: has_run(cluster, HOT, job))
    disk.mkdir(parents=True, exist_ok=True)
    shutil.copy(RECORDED / "slowed-by-heat/nvidia-smi.csv", disk)
    words = "sbatch --parsable --nodelist=train-4 --gpus-per-node=1 --mem=1G --output=/dev/null --wrap=true"

    def drained() -> bool:
        as_person(cluster, "ada", words)
        time.sleep(10)
        return "DRAIN" in cluster.node("train-4")["State"]

    cluster.until(drained)
    found = diagnose(cluster, job, "hot GPU")
    as_person(cluster, "ada", "scancel --user=ada")
    return found


def first(findings: Sequence[Finding], run: Run) -> dict[str, str]:
    """The first finding, in the form of what is expected; all of them where none is."""
    if not run.fault:
        return {"first": "; ".join(kind for kind, _, _ in findings), "nodes": ""}
    kind, nodes, _ = findings[0] if findings else ("", [], [])
    return {"first": kind, "nodes": ",".join(nodes) if run.on else ""}


def report(runs: Mapping[str, Run], found: Mapping[str, Sequence[Finding]]) -> None:
    """Print a line for each job, for whoever reads a failure."""
    for name, run in runs.items():
        mark = "ok   " if first(found[name], run) == {"first": run.fault, "nodes": run.on} else "WRONG"
        sys.stdout.write(f"{mark} {name} | {run.fault or 'healthy'} | {found[name]}\n")
