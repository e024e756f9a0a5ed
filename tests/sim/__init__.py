"""A cluster in memory: Slurm and EC2 as state machines, with the real autoscaler between them.

`python -m sim N` simulates N clusters, each from another seed: jobs, faults and crashes of the autoscaler between any
two of its effects, then quiet hours. `invariants` lists what must hold. A failure prints its seed, which reproduces it.
"""

import os
import random

SEED_VARIABLE = "CORRAL_SIMULATION_SEED"


def first_seed() -> int:
    """The first seed of this test run: that of the environment, or a new one, which child processes inherit."""
    return int(os.environ.setdefault(SEED_VARIABLE, str(random.SystemRandom().randrange(1, 10**9))))
