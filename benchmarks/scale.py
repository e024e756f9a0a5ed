"""What a plan and all its files cost at 27,500 p5.48xlarge in ten queues, beside `dev`: seconds, and peak memory.

Each in a process of its own, in turns; shown are medians and their ratio. It ends with 1 where the large one takes more
than LIMITS; what it plans is asserted by tests/plan/test_scale.py.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NODES, QUEUES = 27_500, 10
BASE = {"network": {"cidr": "10.64.0.0/16", "zones": ["use1-az1", "use1-az2", "use1-az6"]}}
ROUNDS = 5
LIMITS = {"s": 2.0, "MiB": 200.0}  # of the large one: what somebody waits for without a thought, on any machine


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


def broken(found: Mapping[str, float]) -> list[str]:
    """The limits that these figures, by unit, are beyond: a sentence for each."""
    return [
        f"{NODES:,} nodes take {found[unit]:g} {unit}, the limit is {limit:g} {unit}"
        for unit, limit in LIMITS.items()
        if found[unit] > limit
    ]


def main() -> int:
    """Measures both sizes in turns and prints the medians; 1 where a limit is broken."""
    sizes = {"dev's size (4 nodes, 1 queue)": (4, 1), f"{NODES:,} nodes, {QUEUES} queues": (NODES, QUEUES)}
    found: dict[str, list[list[str]]] = {name: [] for name in sizes}
    for _ in range(ROUNDS):
        for name, (nodes, queues) in sizes.items():
            code = f"import scale; scale.once({nodes}, {queues})"
            command, here = [sys.executable, "-c", code], ROOT / "benchmarks"
            ended = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
            found[name].append(ended.stdout.strip().split(" ", 3))
    medians = []
    for name, runs in found.items():
        medians.append(
            {unit: statistics.median(float(run[place]) for run in runs) for place, unit in enumerate(LIMITS)}
        )
        seconds, most = medians[-1].values()
        print(f"{name:<34} {seconds:.2f} s, {most:.0f} MiB, {int(runs[0][2]):,} bytes of files")
    small, large = medians
    print(f"ratio {large['s'] / small['s']:.2f}")
    print(f"and the plan says: {found[list(sizes)[1]][0][3]}")
    for sentence in broken(large):
        print(sentence, file=sys.stderr)
    return 1 if broken(large) else 0


if __name__ == "__main__":
    sys.exit(main())
