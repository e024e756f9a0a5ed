"""Compare the resume of 1,000 nodes, from slurmctld's call until all addresses are set, with ParallelCluster's.

Each round of each side has a new box, with the same launch template, the same fake scontrol and the same request: one
job that waits for all of the nodes. *Own time* excludes waiting for AWS's responses and for EC2's request rates.
ParallelCluster's slurm_resume does all the work itself, so its time is that of its process. corral's time is that of
the program that slurmctld starts, plus the work of the autoscaler, which already runs.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_inputs import (
    CLUSTER,
    PARALLELCLUSTER,
    QUEUE,
    REGION,
    RESOURCE,
    ROOT,
    ZONE,
    BenchInputs,
    cluster_plan,
    count_slurm_calls,
    new_inputs,
    write_records,
)
from resume_program import resume_program
from scontrol_output import Node, text
from table import Row, Usage, print_table

NODES, ROUNDS = 1000, 3


def main() -> int:
    """Measure both sides alternately and print the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """The medians, as rows of the table."""
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(measured(parallelcluster))
        ours.append(measured(corral))
    own, other = _median(ours), _median(theirs)
    what = f"resume of {NODES:,} nodes"
    return [
        Row(what=f"{what}: own time", unit="s", ours=own.own_s, theirs=other.own_s, factor=3),
        Row(what=f"{what}: CPU time", unit="s", ours=own.cpu_s, theirs=other.cpu_s, factor=3),
        Row(what=f"{what}: requests to AWS", unit="", ours=own.requests, theirs=other.requests, factor=2),
        Row(
            what=f"{what}: calls of scontrol",
            unit="",
            ours=own.commands,
            theirs=other.commands,
            factor=2,
        ),
    ]


def measured(side: Callable[[BenchInputs], Usage]) -> Usage:
    """One round of one side, in a new box."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as directory, new_inputs(Path(directory)) as inputs:
        return side(inputs)


def corral(inputs: BenchInputs) -> Usage:
    """Run the program that slurmctld starts, then the autoscaler."""
    directory = inputs.dir
    write_records(directory, cluster_plan(NODES), inputs.template, inputs.hosted_zone)
    nodes = f"{QUEUE}-[1-{NODES}]"
    environment = {**inputs.environment, "SLURM_RESUME_FILE": _resume_file(directory, nodes)}
    program = resume_program(directory)
    line = [sys.executable, str(ROOT / "benchmarks" / "resume_corral.py"), str(directory)]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, env=environment, stdin=pipe, stdout=pipe, text=True) as autoscaler:
        assert autoscaler.stdout is not None  # it is a pipe
        autoscaler.stdout.readline()
        wall_s, cpu_s = run([str(program), nodes], environment, directory / "output.log")
        autoscaler.communicate("process\n")
    if autoscaler.returncode:
        raise SystemExit((directory / "corral.log").read_text(encoding="utf-8")[-2000:])
    found = json.loads((directory / "corral.json").read_text(encoding="utf-8"))
    return _usage(directory, found, wall_s + found["wall_s"], cpu_s + found["cpu_s"])


def parallelcluster(inputs: BenchInputs) -> Usage:
    """Run slurm_resume, from start to end."""
    directory = inputs.dir
    names = [f"{QUEUE}-dy-{RESOURCE}-{number}" for number in range(1, NODES + 1)]
    nodes_shown = (Node(name=name, partition=QUEUE, state="IDLE+CLOUD+POWERING_UP") for name in names)
    (directory / "nodes").write_text(text(nodes_shown, oneliner=False), encoding="utf-8")
    nodes = f"{QUEUE}-dy-{RESOURCE}-[1-{NODES}]"
    write_configuration(directory, "slurm_resume", inputs.hosted_zone)
    environment = {
        **inputs.environment,
        "SLURM_RESUME_FILE": _resume_file(directory, nodes),
        "CONFIG_FILE": str(directory / "slurm_resume.conf"),
    }
    line = [
        str(PARALLELCLUSTER),
        "-W",
        "ignore",
        str(ROOT / "benchmarks" / "resume_parallelcluster.py"),
        str(directory),
        nodes,
    ]
    wall_s, cpu_s = run(line, environment, directory / "output.log")
    found = json.loads((directory / "parallelcluster.json").read_text(encoding="utf-8"))
    return _usage(directory, found, wall_s, cpu_s)


def write_configuration(directory: Path, program: str, hosted_zone: str) -> None:
    """Write the configuration of one of ParallelCluster's programs, as on a head; the rest has defaults."""
    fleet = {QUEUE: {RESOURCE: {"Api": "run-instances", "Instances": [{"InstanceType": "c7i.large"}]}}}
    (directory / "fleet.json").write_text(json.dumps(fleet), encoding="utf-8")
    (directory / "heartbeat").write_text(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f%z"), encoding="utf-8")
    settings = {
        "cluster_name": CLUSTER,
        "region": REGION,
        "dynamodb_table": CLUSTER,
        "hosted_zone": hosted_zone,
        "dns_domain": ZONE,
        "head_node_private_ip": "10.64.0.10",
        "head_node_hostname": "head",
        "instance_id": "i-0123456789abcdef0",
        "clustermgtd_heartbeat_file_path": directory / "heartbeat",
        "heartbeat_file_path": directory / "heartbeat",
        "fleet_config_file": directory / "fleet.json",
        "logging_config": directory / "logging.conf",
    }
    lines = [f"[{program}]", *(f"{key} = {value}" for key, value in settings.items())]
    (directory / f"{program}.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    installed = PARALLELCLUSTER.parent.parent / "lib"
    (logging_config,) = installed.glob(
        f"*/site-packages/slurm_plugin/logging/parallelcluster_{program.removeprefix('slurm_')}*"
    )
    logs = logging_config.read_text(encoding="utf-8").replace("/var/log/parallelcluster", str(directory))
    (directory / "logging.conf").write_text(logs, encoding="utf-8")


def run(line: Sequence[str], environment: Mapping[str, str], output: Path) -> tuple[float, float]:
    """Run a process to its end; return its wall time and its CPU time with children, in seconds.

    `output`: the file of its stdout and stderr.
    """
    with output.open("ab") as stream:
        start = time.perf_counter()
        child = subprocess.Popen(line, env=dict(environment), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(
            f"{' '.join(line)} exited with {child.returncode}\n{output.read_text(encoding='utf-8')[-3000:]}"
        )
    return seconds, used.ru_utime + used.ru_stime


def _usage(directory: Path, found: Mapping[str, Any], wall_s: float, cpu_s: float) -> Usage:
    requests = ", ".join(f"{count} {action}" for action, count in sorted(found["requests"].items()))
    waited = f"{found['waited_s']:.2f} s waiting for AWS and {found['slept_s']:.2f} s for its rates"
    usage = f"{wall_s:.2f} s, of which {waited}; {cpu_s:.2f} s CPU time"
    print(f"  {requests}; {count_slurm_calls(directory)} of scontrol; {usage}", file=sys.stderr)
    _check(directory)
    return Usage(
        own_s=wall_s - found["waited_s"] - found["slept_s"],
        cpu_s=cpu_s,
        requests=sum(found["requests"].values()),
        commands=count_slurm_calls(directory),
    )


def _check(directory: Path) -> None:
    """Raise SystemExit unless every node has an address."""
    lines = (directory / "calls").read_text(encoding="utf-8").splitlines()
    addresses = [line.partition(" nodeaddr=")[2].partition(" ")[0] for line in lines if " nodeaddr=" in line]
    addressed = sum(len(listed.split(",")) for listed in addresses)
    if addressed != NODES:
        logs = (path.read_text(encoding="utf-8", errors="replace")[-3000:] for path in directory.glob("*.log"))
        raise SystemExit("\n".join([f"{addressed} of {NODES} nodes have an address:", *logs]))


def _resume_file(directory: Path, nodes: str) -> str:
    job = {
        "extra": None, "features": None, "job_id": 1, "nodes_alloc": nodes, "nodes_resume": nodes,
        "oversubscribe": "OK", "partition": QUEUE, "reservation": None,
    }  # fmt: skip
    file = directory / "resume.json"
    file.write_text(json.dumps({"all_nodes_resume": nodes, "jobs": [job]}), encoding="utf-8")
    return str(file)


def _median(usages: Sequence[Usage]) -> Usage:
    return Usage(*(statistics.median(values) for values in zip(*usages, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
