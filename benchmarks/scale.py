"""What `corral plan` and `corral render` take for 27,500 p5.48xlarge in ten queues, and for `dev`: seconds and MiB.

Measured in two ways, in turns; shown are medians and their ratio. *Commands*: both commands of a project directory, the
environment in its two YAML files, from the start of the process to its end, with the child's own peak memory as the
kernel counted it. *Functions*: reading, planning and rendering within one Python that runs already, from dicts, without
a word shown or a file written. It ends with 1 where the large one takes more than LIMITS in either way, plan and render
together; the processor's seconds beside them tell how much of it was waiting for other processes. What is planned is
asserted by tests/plan/test_scale.py.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
CORRAL = Path(sys.executable).with_name("corral")
NODES, QUEUES = 27_500, 10
SMALL = (4, 1)  # nodes and queues of the shipped dev
BASE = {"network": {"cidr": "10.64.0.0/16", "zones": ["use1-az1", "use1-az2", "use1-az6"]}}
ROUNDS = 5
LIMITS = {"s": 2.0, "MiB": 200.0}  # of the large one: what somebody waits for without a thought, on any machine


class Taken(NamedTuple):
    """What one command took: seconds, MiB at most, and seconds of a processor."""

    s: float
    mib: float
    processor_s: float


def spec(name: str, nodes: int, queues: int) -> dict[str, object]:
    """A cluster of so many nodes in so many queues."""
    capacity = [{"market": "spot"}, {"market": "on-demand"}]
    each = {"instance_type": "p5.48xlarge", "nodes": {"max": nodes // queues}, "capacity": capacity}
    return {"base": name, "queues": [{"name": f"q{number}", **each} for number in range(queues)]}


def once(nodes: int, queues: int) -> None:
    """Reads, plans, notes and renders such a cluster; prints seconds and MiB."""
    begun = time.perf_counter()
    from corral import render
    from corral.forecast.catalogue import catalogue_prices
    from corral.forecast.cost import forecast_cost
    from corral.forecast.notes import notes
    from corral.plan.base import plan_base
    from corral.plan.cluster import plan_cluster
    from corral.spec.parse import parse_base, parse_cluster
    from corral.spec.surroundings import Surroundings

    base = parse_base(BASE, name="big", where="base", around=Surroundings(region="us-east-1"))
    around = Surroundings(region="us-east-1", base=base)
    cluster = parse_cluster(spec("big", nodes, queues), name="big", where="cluster", around=around)
    ground = plan_base(base)
    plan, prices = plan_cluster(cluster, ground), catalogue_prices("us-east-1")
    forecast_cost(ground, plan, prices)
    told = notes(ground, plan, prices)
    files = render.cluster_files(plan)
    seconds = time.perf_counter() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    vpc = next((note.text for note in told if note.about == "VPC"), "")
    print(f"{seconds:.3f} {most:.0f} {sum(map(len, files.values()))} {vpc}")


def write_project(directory: Path, name: str, nodes: int, queues: int) -> None:
    """A project that declares such a cluster and its base, as the files that people write."""
    for kind, wishes in (("base", BASE), ("cluster", spec(name, nodes, queues))):
        folder = directory / "stacks" / kind
        folder.mkdir(parents=True)
        content = {"config": {"aws:region": "us-east-1", f"corral-{kind}:spec": wishes}}
        (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def command(line: Sequence[str]) -> Taken:
    """What this corral command takes, from the start of its process to its end. Raises where it fails."""
    # Without the variable Python keeps what it compiled, as it does wherever corral is installed.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    child = subprocess.Popen([str(CORRAL), *line], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)  # it is waited for: Popen need not
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, [str(CORRAL), *line])
    return Taken(s=seconds, mib=used.ru_maxrss / 1024, processor_s=used.ru_utime + used.ru_stime)


def commands(nodes: int, queues: int) -> Mapping[str, Taken]:
    """What is taken by `corral plan` and of `corral render` into a new directory, by their names."""
    with tempfile.TemporaryDirectory() as place:
        write_project(Path(place), "big", nodes, queues)
        plan = command(["plan", "big", "--project", place])
        return {"plan": plan, "render": command(["render", "big", "--project", place, "--out", f"{place}/out"])}


def functions(nodes: int, queues: int) -> list[str]:
    """What `once` prints in a process of its own: seconds, MiB, bytes of files, and what the plan says of the VPC."""
    code = f"import scale; scale.once({nodes}, {queues})"
    line, here = [sys.executable, "-c", code], ROOT / "benchmarks"
    return subprocess.run(line, cwd=here, capture_output=True, text=True, check=True).stdout.strip().split(" ", 3)


def broken(found: Mapping[str, float], way: str = "") -> list[str]:
    """The limits that these figures, by unit, are beyond: a sentence for each."""
    return [
        f"{NODES:,} nodes take {found[unit]:g} {unit}{way}, the limit is {limit:g} {unit}"
        for unit, limit in LIMITS.items()
        if found[unit] > limit
    ]


def main() -> int:
    """Measures both sizes in turns and prints the medians; 1 where a limit is broken."""
    sizes = {"dev's size (4 nodes, 1 queue)": SMALL, f"{NODES:,} nodes, {QUEUES} queues": (NODES, QUEUES)}
    inside: dict[str, list[list[str]]] = {name: [] for name in sizes}
    outside: dict[str, list[Mapping[str, Taken]]] = {name: [] for name in sizes}
    commands(*SMALL)  # warms the disk up, and is not counted
    for _ in range(ROUNDS):
        for name, size in sizes.items():
            inside[name].append(functions(*size))
            outside[name].append(commands(*size))
    small, large = (_commands(name, outside[name]) for name in sizes)
    small_inside, large_inside = (_functions(name, inside[name]) for name in sizes)
    print(f"ratio {large['s'] / small['s']:.2f} as commands, {large_inside['s'] / small_inside['s']:.2f} as functions")
    print(f"and the plan says: {inside[list(sizes)[1]][0][3]}")
    said = [*broken(large, " as commands"), *broken(large_inside, " as functions")]
    for sentence in said:
        print(sentence, file=sys.stderr)
    return 1 if said else 0


def _commands(name: str, runs: Sequence[Mapping[str, Taken]]) -> dict[str, float]:
    """Prints the medians of both commands; seconds of both together, and the most MiB of one."""
    medians = {
        which: Taken(*(statistics.median(run[which][at] for run in runs) for at in range(3))) for which in runs[0]
    }
    told = ", ".join(
        f"{which} {one.s:.2f} s ({one.processor_s:.2f} s of a processor) and {one.mib:.0f} MiB"
        for which, one in medians.items()
    )
    both = sum(one.s for one in medians.values())
    print(f"commands   {name:<30} {told}; together {both:.2f} s")
    return {"s": both, "MiB": max(one.mib for one in medians.values())}


def _functions(name: str, runs: Sequence[Sequence[str]]) -> dict[str, float]:
    """Prints the medians of one process; its seconds and MiB."""
    seconds, mib = (statistics.median(float(run[at]) for run in runs) for at in (0, 1))
    print(f"functions  {name:<30} {seconds:.2f} s, {mib:.0f} MiB, {int(runs[0][2]):,} bytes of files")
    return {"s": seconds, "MiB": mib}


if __name__ == "__main__":
    sys.exit(main())
