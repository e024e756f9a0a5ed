"""Update topology.conf with the nodes of a new slurm.conf: a node that is missing from it gets no jobs."""

from pathlib import Path

from corral.agent.config.merge import nodes_of
from corral.agent.file_install import Placement
from corral.agent.topology.rank_order import read_tree, tree

TREE = "/etc/slurm/topology.conf"


def topology_conf_for(root: Path, slurm_conf: str) -> tuple[Placement, ...]:
    """Return topology.conf for the nodes of this slurm.conf, with its known switches; empty if there is no file."""
    file = root / TREE.lstrip("/")
    if not file.exists():
        return ()
    nodes = tuple(nodes_of(slurm_conf))
    known = {node: path for node, path in read_tree(file.read_text(encoding="utf-8")).items() if node in nodes}
    return (Placement(path=TREE, content=tree(known, nodes).encode()),)
