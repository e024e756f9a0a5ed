"""Resuming 1,000 nodes, from slurmctld's call to all addresses set: corral beside AWS ParallelCluster's slurm_resume.

Both against an AWS in a box of their own, new for each round, with the same launch template, the same fake scontrol and
the same wish: one job that waits for all of the nodes. *Own* is what is not waiting for an answer of AWS and not
waiting for what EC2 allows a second. ParallelCluster's program does all of it itself, so it is counted from the start
of its process to its end. corral's is two: the program that slurmctld starts, as well from start to end, and what
the keeper, which runs all the time, does then.
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

from ground import (
    CLUSTER,
    QUEUE,
    REGION,
    RESOURCE,
    RIVAL,
    ROOT,
    ZONE,
    Ground,
    calls_of_slurm,
    cluster_plan,
    new_ground,
    write_records,
)
from nodes import Node, text
from programs import resume_program
from table import Row, Taken, print_table

NODES, ROUNDS = 1000, 3


def main() -> int:
    """Measures both sides in turns and prints the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """What was measured, as rows of the table: medians."""
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(measured(parallelcluster))
        ours.append(measured(corral))
    mine, other = _median(ours), _median(theirs)
    what = f"resume of {NODES:,} nodes"
    return [
        Row(what=f"{what}: own time", unit="s", ours=mine.own_s, theirs=other.own_s, times=3),
        Row(what=f"{what}: processor", unit="s", ours=mine.cpu_s, theirs=other.cpu_s, times=3),
        Row(what=f"{what}: requests to AWS", unit="", ours=mine.requests, theirs=other.requests, times=2),
        Row(what=f"{what}: calls of scontrol", unit="", ours=mine.commands, theirs=other.commands, times=2),
    ]


def measured(side: Callable[[Ground], Taken]) -> Taken:
    """One round of one side, in a new box."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as place, new_ground(Path(place)) as ground:
        return side(ground)


def corral(ground: Ground) -> Taken:
    """The program that slurmctld starts, and the answer of the keeper."""
    place = ground.dir
    write_records(place, cluster_plan(NODES), ground.template, ground.hosted_zone)
    nodes = f"{QUEUE}-[1-{NODES}]"
    environment = {**ground.environment, "SLURM_RESUME_FILE": _resume_file(place, nodes)}
    program = resume_program(place)
    line = [sys.executable, str(ROOT / "benchmarks" / "resume_corral.py"), str(place)]
    with subprocess.Popen(line, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        keeper.stdout.readline()
        wall_s, cpu_s = run([str(program), nodes], environment, place / "said.log")
        keeper.communicate("answer\n")
    if keeper.returncode:
        raise SystemExit((place / "corral.log").read_text(encoding="utf-8")[-2000:])
    found = json.loads((place / "corral.json").read_text(encoding="utf-8"))
    return _taken(place, found, wall_s + found["wall_s"], cpu_s + found["cpu_s"])


def parallelcluster(ground: Ground) -> Taken:
    """slurm_resume, from its start to its end."""
    place = ground.dir
    names = [f"{QUEUE}-dy-{RESOURCE}-{number}" for number in range(1, NODES + 1)]
    shown = (Node(name=name, partition=QUEUE, state="IDLE+CLOUD+POWERING_UP") for name in names)
    (place / "nodes").write_text(text(shown, oneliner=False), encoding="utf-8")
    nodes = f"{QUEUE}-dy-{RESOURCE}-[1-{NODES}]"
    write_configuration(place, "slurm_resume", ground.hosted_zone)
    environment = {
        **ground.environment,
        "SLURM_RESUME_FILE": _resume_file(place, nodes),
        "CONFIG_FILE": str(place / "slurm_resume.conf"),
    }
    line = [str(RIVAL), "-W", "ignore", str(ROOT / "benchmarks" / "resume_parallelcluster.py"), str(place), nodes]
    wall_s, cpu_s = run(line, environment, place / "said.log")
    found = json.loads((place / "parallelcluster.json").read_text(encoding="utf-8"))
    return _taken(place, found, wall_s, cpu_s)


def write_configuration(place: Path, program: str, hosted_zone: str) -> None:
    """What a head of ParallelCluster has for one of its programs; what is not here is its default."""
    fleet = {QUEUE: {RESOURCE: {"Api": "run-instances", "Instances": [{"InstanceType": "c7i.large"}]}}}
    (place / "fleet.json").write_text(json.dumps(fleet), encoding="utf-8")
    (place / "heartbeat").write_text(datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f%z"), encoding="utf-8")
    settings = {
        "cluster_name": CLUSTER,
        "region": REGION,
        "dynamodb_table": CLUSTER,
        "hosted_zone": hosted_zone,
        "dns_domain": ZONE,
        "head_node_private_ip": "10.64.0.10",
        "head_node_hostname": "head",
        "instance_id": "i-0123456789abcdef0",
        "clustermgtd_heartbeat_file_path": place / "heartbeat",
        "heartbeat_file_path": place / "heartbeat",
        "fleet_config_file": place / "fleet.json",
        "logging_config": place / "logging.conf",
    }
    lines = [f"[{program}]", *(f"{key} = {value}" for key, value in settings.items())]
    (place / f"{program}.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
    installed = RIVAL.parent.parent / "lib"
    (its,) = installed.glob(f"*/site-packages/slurm_plugin/logging/parallelcluster_{program.removeprefix('slurm_')}*")
    logs = its.read_text(encoding="utf-8").replace("/var/log/parallelcluster", str(place))
    (place / "logging.conf").write_text(logs, encoding="utf-8")


def run(line: Sequence[str], environment: Mapping[str, str], said: Path) -> tuple[float, float]:
    """How long a process took from its start to its end: seconds, and seconds of a processor with its children.

    `said`: where its words go.
    """
    with said.open("ab") as words:
        begun = time.perf_counter()
        child = subprocess.Popen(line, env=dict(environment), stdin=subprocess.DEVNULL, stdout=words, stderr=words)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(line)} ended with {child.returncode}\n{said.read_text(encoding='utf-8')[-3000:]}")
    return seconds, used.ru_utime + used.ru_stime


def _taken(place: Path, found: Mapping[str, object], wall_s: float, cpu_s: float) -> Taken:
    asked = ", ".join(f"{count} {action}" for action, count in sorted(found["requests"].items()))
    waited = f"{found['waited_s']:.2f} s AWS and {found['slept_s']:.2f} s its rates"
    took = f"{wall_s:.2f} s, of which {waited}; {cpu_s:.2f} s of a processor"
    print(f"  {asked}; {calls_of_slurm(place)} of scontrol; {took}", file=sys.stderr)
    _check(place)
    return Taken(
        own_s=wall_s - found["waited_s"] - found["slept_s"],
        cpu_s=cpu_s,
        requests=sum(found["requests"].values()),
        commands=calls_of_slurm(place),
    )


def _check(place: Path) -> None:
    """Ends the benchmark where not every node has got an address: then it has not done the same."""
    lines = (place / "calls").read_text(encoding="utf-8").splitlines()
    addresses = [line.partition(" nodeaddr=")[2].partition(" ")[0] for line in lines if " nodeaddr=" in line]
    placed = sum(len(held.split(",")) for held in addresses)
    if placed != NODES:
        logs = (path.read_text(encoding="utf-8", errors="replace")[-3000:] for path in place.glob("*.log"))
        raise SystemExit("\n".join([f"{placed} of {NODES} nodes have got an address:", *logs]))


def _resume_file(place: Path, nodes: str) -> str:
    job = {
        "extra": None, "features": None, "job_id": 1, "nodes_alloc": nodes, "nodes_resume": nodes,
        "oversubscribe": "OK", "partition": QUEUE, "reservation": None,
    }  # fmt: skip
    file = place / "resume.json"
    file.write_text(json.dumps({"all_nodes_resume": nodes, "jobs": [job]}), encoding="utf-8")
    return str(file)


def _median(taken: Sequence[Taken]) -> Taken:
    return Taken(*(statistics.median(values) for values in zip(*taken, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
