"""`python -m sim [N] [FIRST]`: simulate N clusters, with seeds from FIRST on."""

from __future__ import annotations

import sys
import time

from sim.invariants import simulate


def main() -> int:
    number, first = (
        int(sys.argv[position]) if len(sys.argv) > position else usual for position, usual in ((1, 1000), (2, 1))
    )
    began, failed = time.monotonic(), 0
    for seed, found in simulate(number, first):
        failed += bool(found)
        for text in found[:3]:
            sys.stdout.write(f"seed {seed}: {text}\n")
    sys.stdout.write(f"{number} simulations, {failed} failed, {time.monotonic() - began:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
