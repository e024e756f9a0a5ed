"""Run a command next to a real slurmctld on this machine, as on the head of a cluster with the files of a directory.

For example `.venv/bin/python -m tools.slurm_head DIRECTORY -- sinfo`, after `corral render ENV --box --out DIRECTORY`.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.slurm_head.controller import SlurmError, read_files, running_slurmctld


def main(arguments: Sequence[str]) -> int:
    """Run the command next to a slurmctld with the files of the directory; return its exit code."""
    if len(arguments) < 3 or arguments[1] != "--":
        print("usage: python -m tools.slurm_head DIRECTORY -- COMMAND...", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="corral-slurm-") as state:
        try:
            with running_slurmctld(read_files(Path(arguments[0])), Path(state)) as controller:
                done = controller.run(*arguments[2:])
        except (SlurmError, OSError) as error:
            print(error, file=sys.stderr)
            return 1
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
