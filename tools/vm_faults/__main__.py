"""`make vm-faults`: break a cluster of virtual machines, fault by fault, and write docs/vm-faults.md.

The cluster stays in dist/vm-faults until it is removed: the next run boots its machines from their disks. `ARGS='NAME
NAME'` chooses faults. Ends with 1 if the cluster did something else than it should; the page says what.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from time import monotonic

from tools.vm_faults.faults import FAULTS, Fault, two_nodes
from tools.vm_faults.page import Row, found_before, page
from tools.vm_life.cluster import CHECKOUT, Failed, VirtualCluster, new_cluster

from corral.box import client
from corral.box.switches import Machines

PAGE = CHECKOUT / "docs" / "vm-faults.md"
DIRECTORY = CHECKOUT / "dist" / "vm-faults"


def main() -> int:
    """Return 0 if the cluster did what it should after each fault, 1 if not."""
    parser = argparse.ArgumentParser(prog="make vm-faults")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="; ".join(f"{fault.name}: {fault.title}" for fault in FAULTS)
    )
    names = parser.parse_args().names
    if unknown := sorted(set(names) - {fault.name for fault in FAULTS}):
        parser.error(
            f"no fault is named {', '.join(unknown)}; expected some of {', '.join(fault.name for fault in FAULTS)}"
        )
    cluster = VirtualCluster(directory=DIRECTORY) if DIRECTORY.exists() else new_cluster(DIRECTORY)
    client.start(cluster.box, machines=Machines.VM, report=print)
    try:
        cluster.corral("up", "vm", "--box", "--yes")
        results = [_break(fault, cluster) for fault in FAULTS if not names or fault.name in names]
    except Failed as error:
        print(f"\nstopped: {error}", file=sys.stderr)
        return 1
    finally:
        client.stop(cluster.box)
    return 0 if all(results) else 1


def _break(fault: Fault, cluster: VirtualCluster) -> bool:
    """Break, look, and write the row. Raises Failed if there is no cluster to break."""
    two_nodes(cluster)
    print(f"{fault.name}: {fault.title} ...", flush=True)
    began = monotonic()
    try:
        found = fault.act(cluster)
        succeeded = True
    except Failed as error:
        found, succeeded = f"not so: {error}", False
    print(f"  {monotonic() - began:5.0f} s  {found}", flush=True)
    _write(fault.name, found)
    return succeeded


def _write(name: str, found: str) -> None:
    results = dict(found_before(PAGE.read_text(encoding="utf-8"))) if PAGE.exists() else {}
    results[name] = (found, f"{datetime.now(UTC):%Y-%m-%d}")
    rows = [
        Row(
            name=fault.name,
            title=fault.title,
            expected=fault.expected,
            found=results[fault.name][0],
            date=results[fault.name][1],
        )
        for fault in FAULTS
        if fault.name in results
    ]
    PAGE.write_text("\n".join(page(rows)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
