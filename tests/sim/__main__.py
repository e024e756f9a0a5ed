"""`python -m sim [N] [FIRST]`: lives N clusters, by their seeds from FIRST on."""

from __future__ import annotations

import sys
import time

from sim.claims import lives


def main() -> int:
    number, first = (int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((1, 1000), (2, 1)))
    began, failed = time.monotonic(), 0
    for seed, found in lives(number, first):
        failed += bool(found)
        for text in found[:3]:
            sys.stdout.write(f"seed {seed}: {text}\n")
    sys.stdout.write(f"{number} lives, {failed} failed, {time.monotonic() - began:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
