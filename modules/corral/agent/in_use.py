"""What of Slurm is in use now, as `leaving` asks it."""

from collections.abc import Callable, Sequence

from corral.agent.leaving import Used
from corral.agent.slurm import read_node


def read_used(run: Callable[[Sequence[str]], str]) -> Used:
    """Nodes that have a machine or soon will, and queues that a job is in. Raises HostError."""
    nodes = (read_node(line) for line in run(("scontrol", "--all", "--oneliner", "show", "nodes")).splitlines() if line)
    queues = run(("squeue", "--all", "--noheader", "--format=%P")).replace(",", "\n").split()
    return Used(
        nodes=frozenset(node.name for node in nodes if "POWERED_DOWN" not in node.states),
        queues=frozenset(queues),
    )
