"""Which node a machine is: the node list in its launch's tag, indexed by its launch index.

Only EC2 stores this mapping. It can be computed from DescribeInstances, so no database has to agree with it.
"""

from dataclasses import dataclass, replace

from corral.agent import imds_client
from corral.agent.errors import AgentError
from corral.model.node_names import name_at, queue_of
from corral.model.tags import MANIFEST_TAG, NODES_TAG


class IdentityError(AgentError):
    """A machine has no valid node identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """A compute machine's node and its queue. `zone_id`: empty if its metadata does not have it."""

    node: str
    queue: str
    zone_id: str = ""


def read_identity(service: str = imds_client.SERVICE) -> NodeIdentity:
    """Return the node that this machine is. Raises IdentityError, MetadataError."""
    nodes, index = imds_client.instance_tag(NODES_TAG, service), imds_client.read("ami-launch-index", service)
    if nodes is None or index is None:
        raise IdentityError(f"this machine was not launched as a node: it has no tag {NODES_TAG}")
    zone = imds_client.read("placement/availability-zone-id", service)
    return replace(identity_at(nodes, int(index)), zone_id=zone or "")


def manifest_version(service: str = imds_client.SERVICE) -> int:
    """Return the version of the manifest that the head had when it launched this machine; 0 if it named none."""
    return int(imds_client.instance_tag(MANIFEST_TAG, service) or 0)


def identity_at(nodes: str, launch_index: int) -> NodeIdentity:
    """Return the node at this index of a launch's folded node list. Raises IdentityError."""
    try:
        node = name_at(nodes, launch_index)
    except ValueError as error:
        raise IdentityError(f"the tag {NODES_TAG}={nodes}: {error}") from error
    return NodeIdentity(node=node, queue=queue_of(node))
