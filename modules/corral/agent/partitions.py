"""Queues as slurmctld has them, which calls them partitions: whether they start jobs. For all of them at once."""

from collections.abc import Mapping

from corral.agent.slurm import scontrol

# Whose jobs wait, whoever set them so. One that drains takes no more jobs, and starts those that it has.
# Source: scontrol(1), "SPECIFICATIONS FOR UPDATE COMMAND, PARTITIONS", State.
_STARTS_NONE = ("DOWN", "INACTIVE")


def stopped() -> frozenset[str]:
    """The queues that start no job now. Raises SlurmError."""
    return starting_none(scontrol("--oneliner", "show", "partition"))


def starting_none(partitions: str) -> frozenset[str]:
    """The same by scontrol's lines about partitions."""
    found = (_fields(line) for line in partitions.splitlines())
    return frozenset(
        one["PartitionName"] for one in found if one.get("State") in _STARTS_NONE and "PartitionName" in one
    )


def _fields(line: str) -> Mapping[str, str]:
    return dict(part.split("=", 1) for part in line.split() if "=" in part)
