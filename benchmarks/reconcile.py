"""Compare one reconciliation of Slurm with EC2, at 27,500 nodes in ten queues, 1 % powered: corral and clustermgtd.

Both get the same synthetic nodes from a fake scontrol, each in its own format, and the same instances from a stand-in
for EC2. There are two cases: nothing to do, and the machines of all powered nodes gone. The second reconciliation of
each process counts: its CPU time, and the peak memory of the process. clustermgtd sleeps for 5 s in each loop.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_inputs import (
    PARALLELCLUSTER,
    REGION,
    RESOURCE,
    ROOT,
    cluster_plan,
    count_slurm_calls,
    write_programs,
    write_records,
)
from ec2_stub import describe_instances_response, running_ec2
from resume import run, write_configuration
from scontrol_output import Node, text
from table import Row, print_table

from corral.model.node_names import fold

NODES, QUEUES, POWERED, ROUNDS = 27_500, 10, 275, 3
EACH = NODES // QUEUES
MAX_MIB = 152  # 160 MB
_UP = {"state": "IDLE+CLOUD", "started": "2026-11-21T20:01:00"}


def main() -> int:
    """Measure both sides alternately and print the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """The medians, as rows of the table."""
    found = []
    for what, gone, limit_s in (("nothing to do", False, 1.0), ("1 % to do", True, 1.5)):
        theirs = _median([measured("parallelcluster", gone=gone) for _ in range(rounds)])
        ours = _median([measured("corral", gone=gone) for _ in range(rounds)])
        name = f"compare at {NODES:,} nodes, {what}"
        found += [
            Row(what=f"{name}: {figure}", unit=unit, ours=ours[key], theirs=theirs[key], limit=limit)
            for figure, unit, key, limit in (
                ("CPU time", "s", "cpu_s", limit_s),
                ("peak memory", "MiB", "peak_mib", MAX_MIB),
                ("time", "s", "wall_s", None),
            )
        ]
    return found


def measured(side: str, *, gone: bool) -> Mapping[str, float]:
    """The usage of one side's second reconciliation."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as temporary:
        directory = Path(temporary)
        _write_configuration(directory, oneliner=side == "corral")
        with running_ec2(_instances(gone=gone)) as url:
            keys = {"AWS_ACCESS_KEY_ID": "AKIACORRALBENCH00000", "AWS_SECRET_ACCESS_KEY": "corral"}
            endpoint = {"AWS_ENDPOINT_URL": url, "AWS_DEFAULT_REGION": REGION}
            environment = {**_clean(), **write_programs(directory), **keys, **endpoint}
            _write_scontrol_output(directory, oneliner=side == "corral")
            python = sys.executable if side == "corral" else str(PARALLELCLUSTER)
            script = ROOT / "benchmarks" / f"reconcile_{side}.py"
            run([python, "-W", "ignore", str(script), str(directory)], environment, directory / "output.log")
        found: Mapping[str, Any] = json.loads((directory / f"{side}.json").read_text(encoding="utf-8"))
        _check(directory, gone=gone)
    usage = f"{found['cpu_s']:.2f} s CPU time, {found['peak_mib']:.0f} MiB, {found['wall_s']:.1f} s"
    print(f"  {side}: {usage}, of which {found['slept_s']:.1f} s asleep; {dict(found['requests'])}", file=sys.stderr)
    return found


def _clean() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _write_configuration(directory: Path, *, oneliner: bool) -> None:
    """Write the configuration of one side."""
    if oneliner:
        write_records(directory, cluster_plan(NODES, QUEUES), "lt-1", "Z1")
        return
    write_configuration(directory, "clustermgtd", "Z1")
    mapping = {f"q{queue}": f"q{queue}-dy-{RESOURCE}-[1-{EACH}]" for queue in range(QUEUES)}
    file = directory / "fake/etc/pcluster/parallelcluster_partition_nodelist_mapping.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(mapping), encoding="utf-8")


def _write_scontrol_output(directory: Path, *, oneliner: bool) -> None:
    middle = "-" if oneliner else f"-dy-{RESOURCE}-"
    names = [(f"q{queue}", f"q{queue}{middle}{number}") for queue in range(QUEUES) for number in range(1, EACH + 1)]
    powered = list(_addresses().items())
    up = [
        Node(name=name, partition=queue, address=address, instance=instance, **_UP)
        for (queue, name), (instance, address) in zip(names, powered, strict=False)
    ]
    down = [Node(name=name, partition=queue) for queue, name in names[len(up) :]]
    (directory / "nodes").write_text(text([*up, *down], oneliner=oneliner), encoding="utf-8")
    partitions = "".join(f"PartitionName=q{queue}\n   State=UP TotalNodes={EACH}\n\n" for queue in range(QUEUES))
    (directory / "partitions").write_text(partitions, encoding="utf-8")
    spans = ",".join(f"q{queue}{middle}[1-{EACH}]" for queue in range(QUEUES))
    (directory / "names").write_text(spans + "\n", encoding="utf-8")


def _addresses() -> Mapping[str, str]:
    return {f"i-{number:017x}": f"10.64.{number // 250}.{number % 250 + 4}" for number in range(POWERED)}


def _instances(*, gone: bool) -> str:
    tags = {
        "corral:cluster": "bench",
        "corral:nodes": fold(f"q0-{number}" for number in range(1, POWERED + 1)),
        "corral:offer": cluster_plan(NODES, QUEUES).queues[0].offers[0].key,
        "aws:ec2launchtemplate:version": "1",
    }
    return describe_instances_response({} if gone else _addresses(), tags)


def _check(directory: Path, *, gone: bool) -> None:
    """Raise SystemExit if a side did not act when it had to, or acted when it should not."""
    lines = (directory / "calls").read_text(encoding="utf-8").splitlines()
    updates = [line for line in lines if " update " in line]
    if bool(updates) != gone:
        logs = "\n".join(file.read_text(encoding="utf-8")[-3000:] for file in directory.glob("*.log"))
        raise SystemExit(f"{count_slurm_calls(directory)} calls of Slurm, including {updates[:2]}\n{logs}")


def _median(found: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    return {key: statistics.median(one[key] for one in found) for key in ("cpu_s", "peak_mib", "wall_s")}


if __name__ == "__main__":
    sys.exit(main())
