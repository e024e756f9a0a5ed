"""A program that is like training: steps that depend on each other, a checkpoint on SIGUSR1, exact resume.

Each rank writes every step into a file of its own: the number, and a value that follows from all steps before it.
"""

import os
import signal
import sys
import time
from pathlib import Path

directory, rank = Path(os.environ["CHECKPOINT_DIR"]), os.environ["SLURM_PROCID"]
checkpoint, losses = directory / f"step-{rank}", directory.with_name(f"losses-{rank}")
signalled: list[int] = []
signal.signal(signal.SIGUSR1, lambda *_: signalled.append(1))

step, value = map(int, checkpoint.read_text().split()) if checkpoint.exists() else (0, 1)
with losses.open("a") as out:
    while step < int(sys.argv[1]):
        step, value = step + 1, value * 31 % 1_000_003
        print(step, value, file=out, flush=True)
        time.sleep(0.1)
        if signalled:
            checkpoint.with_suffix(".new").write_text(f"{step} {value}")
            checkpoint.with_suffix(".new").rename(checkpoint)
            signalled.clear()
            if rank == "0":
                time.sleep(0.5)  # the other ranks save, too
                Path(os.environ["CHECKPOINT_SAVED"]).touch()
                signal.pause()  # so that no step is done twice
