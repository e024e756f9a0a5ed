"""topology.conf where slurm.conf gets other nodes: those that come must be in it, or no job reaches them."""

from pathlib import Path

from corral.agent.install import Placement
from corral.agent.leaving import nodes_of
from corral.agent.topology import read_tree, tree

TREE = "/etc/slurm/topology.conf"


def retold(root: Path, slurm_conf: str) -> tuple[Placement, ...]:
    """The file for the nodes of this slurm.conf, with what it says of their switches; none where there is none."""
    file = root / TREE.lstrip("/")
    if not file.exists():
        return ()
    nodes = tuple(nodes_of(slurm_conf))
    known = {node: path for node, path in read_tree(file.read_text(encoding="utf-8")).items() if node in nodes}
    return (Placement(path=TREE, content=tree(known, nodes).encode()),)
