"""A cluster that exists in memory only: Slurm and EC2 as state machines, with the real keeper between them.

`python -m sim N` lives N clusters, each with another seed: jobs, faults and crashes of the keeper between any two of
its effects, then quiet hours. What must hold is in `claims`. A failure prints its seed; the same seed fails again.
"""
