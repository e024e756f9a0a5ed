"""`make bench`: everything that is measured beside AWS ParallelCluster, or against a figure, in one run and one table.

Nothing is asserted by what was measured: absolute times say more about the machine than about corral. It ends with 1
where something could not be measured. The figures of a life in the box are benchmarks/life.py's.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence

import layouts
import programs
import reconcile
import resume
from table import Row, print_table

PARTS: Sequence[tuple[str, Callable[[int], list[Row]], int]] = (
    ("the ResumeProgram", programs.rows, programs.ROUNDS),
    ("resuming, each side in a box of its own", resume.rows, resume.ROUNDS),
    ("comparing Slurm with EC2", reconcile.rows, reconcile.ROUNDS),
    ("choosing layouts of training", layouts.rows, layouts.ROUNDS),
)


def main() -> int:
    """Measures all parts and prints the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="how often each side of a part is measured (default: its own)")
    wanted, begun, rows = parser.parse_args().rounds, time.monotonic(), list[Row]()
    for name, measure, rounds in PARTS:
        print(f"{name}:", file=sys.stderr, flush=True)
        rows += measure(wanted or rounds)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    busy, taken_s = os.getloadavg()[0], time.monotonic() - begun
    print(f"medians; {machine}, load {busy:.1f}; measured in {taken_s:.0f} s\n")
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
