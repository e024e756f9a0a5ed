"""One comparison of Slurm with EC2 at 27,500 nodes in ten queues, 1 % of them powered: corral beside clustermgtd.

Both get the same made-up nodes from a fake scontrol, each in the format that it asks for, and the same instances from
an EC2 that only answers. Twice: where there is nothing to do, and where the machines of all the powered nodes are gone.
Counted is the second turn of each: what it takes of the processor, and the most memory that the process ever had.
clustermgtd sleeps for 5 s of every turn.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ec2_answers import answering, described
from ground import REGION, RESOURCE, RIVAL, ROOT, calls_of_slurm, cluster_plan, write_programs, write_records
from nodes import Node, text
from resume import run, write_configuration
from table import Row, print_table

from corral.box import control
from corral.model.node_names import fold

NODES, QUEUES, POWERED, ROUNDS = 27_500, 10, 275, 3
EACH = NODES // QUEUES
MOST_MIB = 152  # 160 MB
_UP = {"state": "IDLE+CLOUD", "started": "2026-11-21T20:01:00"}


def main() -> int:
    """Measures both sides in turns and prints the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """What was measured, as rows of the table: medians."""
    found = []
    for what, gone, most in (("nothing to do", False, 1.0), ("1 % to do", True, 1.5)):
        theirs = _median([measured("parallelcluster", gone=gone) for _ in range(rounds)])
        ours = _median([measured("corral", gone=gone) for _ in range(rounds)])
        name = f"compare at {NODES:,} nodes, {what}"
        found += [
            Row(what=f"{name}: {called}", unit=unit, ours=ours[key], theirs=theirs[key], most=limit)
            for called, unit, key, limit in (
                ("processor", "s", "cpu_s", most),
                ("peak memory", "MiB", "peak_mib", MOST_MIB),
                ("time", "s", "wall_s", None),
            )
        ]
    return found


def measured(side: str, *, gone: bool) -> Mapping[str, float]:
    """What the second turn of one side took."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as made:
        place = Path(made)
        _furnish(place, oneliner=side == "corral")
        with answering(_instances(gone=gone)) as url:
            keys = {"AWS_ACCESS_KEY_ID": control.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": "corral-box"}
            own = {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": REGION}
            environment = {**_clean(), **write_programs(place), **keys, **own}
            _write_texts(place, oneliner=side == "corral")
            python = sys.executable if side == "corral" else str(RIVAL)
            script = ROOT / "benchmarks" / f"reconcile_{side}.py"
            run([python, "-W", "ignore", str(script), str(place)], environment, place / "said.log")
        found = json.loads((place / f"{side}.json").read_text(encoding="utf-8"))
        _check(place, gone=gone)
    took = f"{found['cpu_s']:.2f} s of a processor, {found['peak_mib']:.0f} MiB, {found['wall_s']:.1f} s"
    print(f"  {side}: {took}, of which {found['slept_s']:.1f} s asleep; {dict(found['requests'])}", file=sys.stderr)
    return found


def _clean() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _furnish(place: Path, *, oneliner: bool) -> None:
    """The configuration of either."""
    if oneliner:
        write_records(place, cluster_plan(NODES, QUEUES), "lt-1", "Z1")
        return
    write_configuration(place, "clustermgtd", "Z1")
    mapping = {f"q{queue}": f"q{queue}-dy-{RESOURCE}-[1-{EACH}]" for queue in range(QUEUES)}
    file = place / "fake/etc/pcluster/parallelcluster_partition_nodelist_mapping.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(mapping), encoding="utf-8")


def _write_texts(place: Path, *, oneliner: bool) -> None:
    middle = "-" if oneliner else f"-dy-{RESOURCE}-"
    names = [(f"q{queue}", f"q{queue}{middle}{number}") for queue in range(QUEUES) for number in range(1, EACH + 1)]
    powered = list(_addresses().items())
    up = [
        Node(name=name, partition=queue, address=address, instance=instance, **_UP)
        for (queue, name), (instance, address) in zip(names, powered, strict=False)
    ]
    down = [Node(name=name, partition=queue) for queue, name in names[len(up) :]]
    (place / "nodes").write_text(text([*up, *down], oneliner=oneliner), encoding="utf-8")
    partitions = "".join(f"PartitionName=q{queue}\n   State=UP TotalNodes={EACH}\n\n" for queue in range(QUEUES))
    (place / "partitions").write_text(partitions, encoding="utf-8")
    spans = ",".join(f"q{queue}{middle}[1-{EACH}]" for queue in range(QUEUES))
    (place / "names").write_text(spans + "\n", encoding="utf-8")


def _addresses() -> Mapping[str, str]:
    return {f"i-{number:017x}": f"10.64.{number // 250}.{number % 250 + 4}" for number in range(POWERED)}


def _instances(*, gone: bool) -> str:
    tags = {
        "corral:cluster": "bench",
        "corral:nodes": fold(f"q0-{number}" for number in range(1, POWERED + 1)),
        "corral:offer": cluster_plan(NODES, QUEUES).queues[0].offers[0].key,
        "aws:ec2launchtemplate:version": "1",
    }
    return described({} if gone else _addresses(), tags)


def _check(place: Path, *, gone: bool) -> None:
    """Ends the benchmark where a side has not done what there is to do, or has done something else."""
    lines = (place / "calls").read_text(encoding="utf-8").splitlines()
    acted = [line for line in lines if " update " in line]
    if bool(acted) != gone:
        logs = "\n".join(file.read_text(encoding="utf-8")[-3000:] for file in place.glob("*.log"))
        raise SystemExit(f"{calls_of_slurm(place)} calls of Slurm, among them {acted[:2]}\n{logs}")


def _median(found: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    return {key: statistics.median(one[key] for one in found) for key in ("cpu_s", "peak_mib", "wall_s")}


if __name__ == "__main__":
    sys.exit(main())
