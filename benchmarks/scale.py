"""Measure `corral plan` and `corral render` for 27,500 p5.48xlarge in ten queues, and for `dev`: seconds and MiB.

It measures in two ways, alternately, and prints medians and their ratio. *Commands*: both commands of a project
directory with its two YAML files, from the start of the process to its end, with the peak memory of the process.
*Functions*: reading, planning and rendering inside one running Python, from dicts, with nothing printed or written. The
exit code is 1 if plan and render together exceed LIMITS for the large environment either way; the CPU time next to the
wall time shows how much of it was waiting for other processes. tests/plan/test_scale.py asserts the plan.
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
LIMITS = {"s": 2.0, "MiB": 200.0}  # of the large environment: a wait that nobody notices, on any machine


class CommandUsage(NamedTuple):
    """The wall time, peak memory and CPU time of a command."""

    s: float
    mib: float
    cpu_s: float


def spec(name: str, nodes: int, queues: int) -> dict[str, object]:
    """A cluster with this many nodes and queues."""
    capacity = [{"market": "spot"}, {"market": "on-demand"}]
    each = {"instance_type": "p5.48xlarge", "nodes": {"max": nodes // queues}, "capacity": capacity}
    return {"base": name, "queues": [{"name": f"q{number}", **each} for number in range(queues)]}


def measure_functions(nodes: int, queues: int) -> None:
    """Read, plan and render such a cluster once; print seconds, MiB, bytes and the warning about the VPC."""
    start = time.perf_counter()
    from corral import render
    from corral.forecast.cost.catalog_prices import catalog_prices
    from corral.forecast.cost.environment_cost import forecast_cost
    from corral.forecast.warnings import plan_warnings
    from corral.plan.base import plan_base
    from corral.plan.cluster import plan_cluster
    from corral.spec.loader import parse_base, parse_cluster
    from corral.spec.validation_context import ValidationContext

    base = parse_base(BASE, name="big", where="base", context=ValidationContext(region="us-east-1"))
    context = ValidationContext(region="us-east-1", base=base)
    cluster = parse_cluster(spec("big", nodes, queues), name="big", where="cluster", context=context)
    inputs = plan_base(base)
    plan, prices = plan_cluster(cluster, inputs), catalog_prices("us-east-1")
    forecast_cost(inputs, plan, prices)
    warnings = plan_warnings(inputs, plan, prices)
    files = render.cluster_files(plan)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    vpc = next((warning.text for warning in warnings if warning.about == "VPC"), "")
    print(f"{seconds:.3f} {peak:.0f} {sum(map(len, files.values()))} {vpc}")


def write_project(directory: Path, name: str, nodes: int, queues: int) -> None:
    """Write a project that declares such a cluster and its base in YAML files."""
    for kind, spec_of_kind in (("base", BASE), ("cluster", spec(name, nodes, queues))):
        folder = directory / "stacks" / kind
        folder.mkdir(parents=True)
        content = {"config": {"aws:region": "us-east-1", f"corral-{kind}:spec": spec_of_kind}}
        (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def command(line: Sequence[str]) -> CommandUsage:
    """Run a corral command and measure its process. Raises CalledProcessError if it fails."""
    # Without this variable, Python caches compiled modules, as in a normal installation.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    child = subprocess.Popen([str(CORRAL), *line], env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)  # wait4 has reaped it: Popen must not
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, [str(CORRAL), *line])
    return CommandUsage(s=seconds, mib=used.ru_maxrss / 1024, cpu_s=used.ru_utime + used.ru_stime)


def commands(nodes: int, queues: int) -> Mapping[str, CommandUsage]:
    """The usage of `corral plan`, and of `corral render` into a new directory, by name."""
    with tempfile.TemporaryDirectory() as directory:
        write_project(Path(directory), "big", nodes, queues)
        plan = command(["plan", "big", "--project", directory])
        return {"plan": plan, "render": command(["render", "big", "--project", directory, "--out", f"{directory}/out"])}


def functions(nodes: int, queues: int) -> list[str]:
    """The output of `measure_functions` in a process of its own, as four words."""
    code = f"import scale; scale.{measure_functions.__name__}({nodes}, {queues})"
    line, here = [sys.executable, "-c", code], ROOT / "benchmarks"
    return subprocess.run(line, cwd=here, capture_output=True, text=True, check=True).stdout.strip().split(" ", 3)


def exceeded_limits(found: Mapping[str, float], method: str) -> list[str]:
    """A sentence for each limit that these figures, by unit, exceed."""
    return [
        f"{NODES:,} nodes take {found[unit]:g} {unit} as {method}, the limit is {limit:g} {unit}"
        for unit, limit in LIMITS.items()
        if found[unit] > limit
    ]


def main() -> int:
    """Measure both sizes alternately and print the medians; return 1 if a limit is exceeded."""
    sizes = {"dev's size (4 nodes, 1 queue)": SMALL, f"{NODES:,} nodes, {QUEUES} queues": (NODES, QUEUES)}
    inside: dict[str, list[list[str]]] = {name: [] for name in sizes}
    outside: dict[str, list[Mapping[str, CommandUsage]]] = {name: [] for name in sizes}
    commands(*SMALL)  # warms the disk cache, and does not count
    for _ in range(ROUNDS):
        for name, size in sizes.items():
            inside[name].append(functions(*size))
            outside[name].append(commands(*size))
    small, large = (_commands(name, outside[name]) for name in sizes)
    small_inside, large_inside = (_functions(name, inside[name]) for name in sizes)
    print(f"ratio {large['s'] / small['s']:.2f} as commands, {large_inside['s'] / small_inside['s']:.2f} as functions")
    print(f"the plan warns: {inside[list(sizes)[1]][0][3]}")
    errors = [*exceeded_limits(large, "commands"), *exceeded_limits(large_inside, "functions")]
    for sentence in errors:
        print(sentence, file=sys.stderr)
    return 1 if errors else 0


def _commands(size: str, runs: Sequence[Mapping[str, CommandUsage]]) -> dict[str, float]:
    """Print the medians of both commands; return their total seconds and the peak MiB."""
    medians = {
        name: CommandUsage(*(statistics.median(run[name][at] for run in runs) for at in range(3))) for name in runs[0]
    }
    text = ", ".join(
        f"{name} {one.s:.2f} s ({one.cpu_s:.2f} s CPU time) and {one.mib:.0f} MiB" for name, one in medians.items()
    )
    both = sum(one.s for one in medians.values())
    print(f"commands   {size:<30} {text}; together {both:.2f} s")
    return {"s": both, "MiB": max(one.mib for one in medians.values())}


def _functions(name: str, runs: Sequence[Sequence[str]]) -> dict[str, float]:
    """Print the medians of the functions; return seconds and MiB."""
    seconds, mib = (statistics.median(float(run[at]) for run in runs) for at in (0, 1))
    print(f"functions  {name:<30} {seconds:.2f} s, {mib:.0f} MiB, {int(runs[0][2]):,} bytes of files")
    return {"s": seconds, "MiB": mib}


if __name__ == "__main__":
    sys.exit(main())
