"""Whether queues start jobs, as slurmctld reports its partitions. One call for all of them."""

from collections.abc import Mapping, Sequence

from corral.agent.slurm import lines, scontrol

# States in which a partition starts no job. A draining one accepts no new jobs, but starts those it has.
# Source: scontrol(1), "SPECIFICATIONS FOR UPDATE COMMAND, PARTITIONS", State.
_STARTS_NONE = ("DOWN", "INACTIVE")


def stopped() -> frozenset[str]:
    """The queues that start no job now, for any reason. Raises SlurmError."""
    return frozenset(queue for queue, state in _states().items() if state in _STARTS_NONE)


def not_open(queues: Sequence[str]) -> tuple[str, ...]:
    """The queues that accept no job or start none, sorted. Raises SlurmError."""
    held = _states()
    return tuple(sorted(queue for queue in queues if held.get(queue, "UP") != "UP"))


def _states() -> Mapping[str, str]:
    shown = lines(scontrol("--oneliner", "show", "partition"))
    found = (dict(part.split("=", 1) for part in line.split() if "=" in part) for line in shown)
    return {one["PartitionName"]: one["State"] for one in found if {"PartitionName", "State"} <= one.keys()}
