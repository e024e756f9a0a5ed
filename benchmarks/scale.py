"""What a plan and all its files cost at 27,500 p5.48xlarge in ten queues, beside `dev`: seconds, and peak memory.

Each in a process of its own, in turns; shown are medians and their ratio. Nothing is asserted here.
"""

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NODES, QUEUES = 27_500, 10
BASE = {"network": {"cidr": "10.64.0.0/16", "zones": ["use1-az1", "use1-az2", "use1-az6"]}}
ROUNDS = 5


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


def main() -> int:
    """Measures both sizes in turns and prints the medians."""
    sizes = {"dev's size (4 nodes, 1 queue)": (4, 1), f"{NODES:,} nodes, {QUEUES} queues": (NODES, QUEUES)}
    found: dict[str, list[list[str]]] = {name: [] for name in sizes}
    for _ in range(ROUNDS):
        for name, (nodes, queues) in sizes.items():
            code = f"import scale; scale.once({nodes}, {queues})"
            command, here = [sys.executable, "-c", code], ROOT / "benchmarks"
            ended = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
            found[name].append(ended.stdout.strip().split(" ", 3))
    medians = {}
    for name, runs in found.items():
        medians[name] = statistics.median(float(run[0]) for run in runs)
        most = statistics.median(float(run[1]) for run in runs)
        print(f"{name:<34} {medians[name]:.2f} s, {most:.0f} MiB, {int(runs[0][2]):,} bytes of files")
    small, large = medians.values()
    print(f"ratio {large / small:.2f}")
    print(f"and the plan says: {found[list(sizes)[1]][0][3]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
