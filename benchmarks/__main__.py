"""`make bench`: compare corral with AWS ParallelCluster, and with targets, in one run and one table.

The results are not asserted, because absolute times depend on the machine as much as on corral. The exit code is 1 if
a measurement fails. benchmarks/box_run.py measures a cluster in the box.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence

import layouts
import reconcile
import resume
import resume_program
from table import Row, print_table

PARTS: Sequence[tuple[str, Callable[[int], list[Row]], int]] = (
    ("ResumeProgram", resume_program.rows, resume_program.ROUNDS),
    ("resume, each side in a box of its own", resume.rows, resume.ROUNDS),
    ("comparison of Slurm with EC2", reconcile.rows, reconcile.ROUNDS),
    ("search for training layouts", layouts.rows, layouts.ROUNDS),
)


def main() -> int:
    """Measure all parts and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="measurements of each side (default: depends on the part)")
    requested, start, rows = parser.parse_args().rounds, time.monotonic(), list[Row]()
    for name, measure, rounds in PARTS:
        print(f"{name}:", file=sys.stderr, flush=True)
        rows += measure(requested or rounds)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    load, duration_s = os.getloadavg()[0], time.monotonic() - start
    print(f"medians; {machine}, load {load:.1f}; measured in {duration_s:.0f} s\n")
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
