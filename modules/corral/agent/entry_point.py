"""Start `corral-agent` from its own files: `python3 -I entry_point.py ARGUMENTS`.

An isolated Python (`-I`) has neither the working directory nor PYTHONPATH on its path, where a user could put an
`argparse.py` that root would run. This file puts there the agent and its library, as installed next to each other.
"""

import sys
from pathlib import Path


def _main() -> int:
    agent = Path(__file__).parents[2]
    sys.path[:0] = [str(agent), str(agent.with_name("library"))]
    from corral.agent.__main__ import main

    return main()


if __name__ == "__main__":
    sys.exit(_main())
