"""Steps of processes that wait for each other, as in training: python3 synchronous.py SLOW DIRECTORY.

On the machine SLOW each step takes three times as long, so the others wait for it. They meet in a directory that all
share: a file for each process has the number of the last step that it has done. A file `end` there ends all of them.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from corral_step import StepRecorder  # type: ignore[import-not-found]  # the job script puts it on the path

OWN_S, STEPS, TOKENS = 0.1, 2000, 4096  # ten minutes at most


def main(slow: str, directory: Path) -> None:
    """Do steps, each together with all processes of the job, until there is the file `end`."""
    rank, processes = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    own_s = 3 * OWN_S if os.environ["SLURMD_NODENAME"] == slow else OWN_S
    directory.mkdir(exist_ok=True)
    with StepRecorder() as steps:
        for step in range(1, STEPS + 1):
            time.sleep(own_s)
            if (directory / "end").exists():
                break
            with steps.communication():
                _meet(directory, rank, processes, step)
            steps.end_step(tokens=TOKENS)
    _report(directory, rank, STEPS)  # the others may not have seen the file yet, and wait for nobody


def _meet(directory: Path, rank: int, processes: int, step: int) -> None:
    """Return when all processes have done the step."""
    _report(directory, rank, step)
    while any(_done(directory / str(other)) < step for other in range(processes)):
        time.sleep(0.005)


def _report(directory: Path, rank: int, step: int) -> None:
    written = directory / f"{rank}.new"
    written.write_text(str(step))
    written.replace(directory / str(rank))


def _done(file: Path) -> int:
    return int(file.read_text()) if file.exists() else 0


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
