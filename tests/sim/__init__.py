"""A cluster in memory: Slurm and EC2 as state machines, with the real autoscaler between them.

`python -m sim N` simulates N clusters, each from another seed: jobs, faults and crashes of the autoscaler between any
two of its effects, then quiet hours. `invariants` lists what must hold. A failure prints its seed, which reproduces it.
"""
