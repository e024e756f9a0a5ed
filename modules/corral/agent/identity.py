"""Which node a machine is: the tag that its launch gave to all machines of one call, and its place among them.

Nothing but EC2 knows this mapping; so anybody can recompute it from DescribeInstances, and no database has to be right.
"""

from dataclasses import dataclass

from corral.agent import metadata
from corral.agent.errors import AgentError
from corral.model.node_names import name_at, queue_of

NODES_TAG = "corral:nodes"


class IdentityError(AgentError):
    """A machine that does not say which node it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A compute machine's node and its queue."""

    node: str
    queue: str


def own_identity(service: str = metadata.SERVICE) -> Identity:
    """Which node this machine is. Raises IdentityError, MetadataError."""
    nodes, index = metadata.instance_tag(NODES_TAG, service), metadata.read("ami-launch-index", service)
    if nodes is None or index is None:
        raise IdentityError(f"this machine was not launched as a node: it has no tag {NODES_TAG}")
    return identity_in(nodes, int(index))


def identity_in(nodes: str, launch_index: int) -> Identity:
    """The node at this place of a launch's folded list. Raises IdentityError."""
    try:
        node = name_at(nodes, launch_index)
    except ValueError as error:
        raise IdentityError(f"the tag {NODES_TAG}={nodes}: {error}") from error
    return Identity(node=node, queue=queue_of(node))
