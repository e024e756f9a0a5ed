"""Queues as slurmctld has them, which calls them partitions: whether they start jobs. For all of them at once."""

from collections.abc import Mapping, Sequence

from corral.agent.slurm import scontrol

# Whose jobs wait, whoever set them so. One that drains takes no more jobs, and starts those that it has.
# Source: scontrol(1), "SPECIFICATIONS FOR UPDATE COMMAND, PARTITIONS", State.
_STARTS_NONE = ("DOWN", "INACTIVE")


def stopped() -> frozenset[str]:
    """The queues that start no job now. Raises SlurmError."""
    return frozenset(queue for queue, state in _states().items() if state in _STARTS_NONE)


def not_open(queues: Sequence[str]) -> tuple[str, ...]:
    """Those of these queues that take no job, or start none, sorted. Raises SlurmError."""
    held = _states()
    return tuple(sorted(queue for queue in queues if held.get(queue, "UP") != "UP"))


def _states() -> Mapping[str, str]:
    lines = scontrol("--oneliner", "show", "partition").splitlines()
    found = (dict(part.split("=", 1) for part in line.split() if "=" in part) for line in lines)
    return {one["PartitionName"]: one["State"] for one in found if {"PartitionName", "State"} <= one.keys()}
