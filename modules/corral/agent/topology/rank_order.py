"""Order ranks by network switches, so that neighbouring ranks share as many switches as possible.

EC2 names the switches from the top of its network to an instance (`ec2_topology`). The autoscaler writes them into the
field Extra of nodes in Slurm, where every node can read them; nodes may not call EC2. `topology_sync` applies the text
of `topology_conf` to slurmctld. Pure, except `paths_of` and `update_switches`.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from corral.agent import slurm
from corral.model.cluster import ClusterPlan
from corral.model.node_names import expand, fold, number_of, queue_of

SWITCHES = re.compile(r"nn-[0-9a-f]+(?:/nn-[0-9a-f]+)*")
_EXTRA = re.compile(r"\bExtra=(\S+)")
_NAME = re.compile(r"\bNodeName=(\S+)")
_LINE = re.compile(r"^SwitchName=(\S+) (Nodes|Switches)=(\S+)$", re.MULTILINE)
_ROOT = "top"  # joins switches without a common EC2 switch; Slurm requires one tree

Switches = tuple[str, ...]  # EC2's network nodes, from the top of the network

log = logging.getLogger("corral.agent")


def rank_order(paths: Mapping[str, Switches]) -> tuple[str, ...]:
    """Return the nodes grouped by switch at every layer, and by number within the last.

    Groups are in the order of their first node, so nodes without known switches stay in Slurm's order.
    """
    ordered = sorted(paths, key=_by_number)
    first: dict[Switches, int] = {}
    for position, node in enumerate(ordered):
        for depth in range(1, len(paths[node]) + 1):
            first.setdefault(paths[node][:depth], position)
    positions = {node: position for position, node in enumerate(ordered)}

    def key(node: str) -> tuple[int, ...]:
        path = paths[node]
        return (*(first[path[:depth]] for depth in range(1, len(path) + 1)), positions[node])

    return tuple(sorted(ordered, key=key))


def nodes_of_static_queues(plan: ClusterPlan) -> tuple[str, ...]:
    """The nodes of queues whose nodes are all static: only these keep their positions in the network."""
    return tuple(node for queue in plan.queues if queue.min_nodes == queue.max_nodes for node in queue.static_nodes)


def topology_conf(
    plan: ClusterPlan, paths: Mapping[str, Switches], nodes: Sequence[str], *, is_on: bool = False
) -> str | None:
    """Return topology.conf for the queues whose nodes are all static; None if it is not worthwhile.

    `nodes`: all nodes that slurmctld knows. It takes two switches. If slurmctld already has a tree (`is_on`) one is
    enough, because removing a tree requires a restart.
    """
    known = {node: paths[node] for node in nodes_of_static_queues(plan) if paths.get(node)}
    return tree(known, nodes) if len(set(known.values())) >= (1 if is_on else 2) else None


def tree(known: Mapping[str, Switches], nodes: Sequence[str]) -> str:
    """Return topology.conf with all nodes; those without a known switch are below a separate one.

    slurmctld runs no job on a node that is missing ("Requested node configuration is not available": seen in tests).
    """
    below: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        below["/".join(known[node]) if node in known else f"elsewhere/{queue_of(node)}"].append(node)
    return "".join(f"{line}\n" for line in _tree(below))


def read_tree(text: str) -> Mapping[str, Switches]:
    """Parse the output of `tree`: the switches above each node. Nodes without a known switch are left out."""
    lines = _LINE.findall(text)
    above = {child: switch for switch, kind, names in lines if kind == "Switches" for child in names.split(",")}
    found = {}
    for switch, kind, names in lines:
        if kind == "Nodes" and switch.startswith("nn-"):
            path = [switch]
            while above.get(path[0], _ROOT) != _ROOT:
                path.insert(0, above[path[0]])
            found.update(dict.fromkeys(expand(names), tuple(path)))
    return found


def paths_of(nodes: Sequence[str]) -> Mapping[str, Switches]:
    """The switches above each of the nodes, by their Extra in Slurm; empty for one without. Raises SlurmError."""
    if not nodes:
        return {}
    known = read_paths(slurm.scontrol("--oneliner", "show", "node", fold(sorted(nodes, key=_by_number))))
    return {node: known.get(node, ()) for node in nodes}


def read_paths(text: str) -> Mapping[str, Switches]:
    """The switches above each node, by `scontrol --oneliner show node`; any other Extra is ignored."""
    found = {}
    for line in slurm.lines(text):
        name, extra = _NAME.search(line), _EXTRA.search(line)
        if name and extra and SWITCHES.fullmatch(extra[1]):
            found[name[1]] = tuple(extra[1].split("/"))
    return found


def changed_extras(wanted: Mapping[str, Switches], known: Mapping[str, Switches]) -> Mapping[str, tuple[str, ...]]:
    """The nodes that need another Extra, by Extra: one call of scontrol for each."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in sorted(wanted, key=_by_number):
        if wanted[node] != known.get(node, ()):
            found["/".join(wanted[node])].append(node)
    return {extra: tuple(nodes) for extra, nodes in found.items()}


def update_switches(
    instances: Mapping[str, str], switches: Callable[[Sequence[str]], Mapping[str, Switches]]
) -> Mapping[str, Switches]:
    """Write the switches above each node into its Extra in Slurm, and return them.

    Not into its comment, which is that of a spot notice.

    `instances`: the running instance of each node that has just come up. `switches`: `Ec2Topology.switches`. One EC2
    call per 100 nodes, a second apart, and one scontrol call for the nodes of each lowest switch.
    Raises Ec2Error, SlurmError; it can be repeated.
    """
    if not instances:
        return {}
    found = switches(sorted(instances.values()))
    wanted = {node: found.get(instance, ()) for node, instance in instances.items()}
    for extra, nodes in changed_extras(wanted, paths_of(sorted(instances))).items():
        log.info("switches of %s: %s", fold(nodes), extra or "unknown")
        for start in range(0, len(nodes), slurm.AT_ONCE):
            batch = nodes[start : start + slurm.AT_ONCE]
            slurm.scontrol("update", f"nodename={fold(batch)}", f"extra={extra}")
    return wanted


def _by_number(node: str) -> tuple[str, int]:
    return queue_of(node), number_of(node)


def _tree(below: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The lines of a tree: switches with nodes, then the switches above them up to one root."""
    lines = [f"SwitchName={_switch(path)} Nodes={fold(nodes)}" for path, nodes in below.items()]
    inner: dict[str, dict[str, None]] = {}
    for path in below:
        parts = path.split("/")
        for depth in range(len(parts) - 1, 0, -1):
            inner.setdefault("/".join(parts[:depth]), {})["/".join(parts[: depth + 1])] = None
        inner.setdefault("", {})[parts[0]] = None
    for path in sorted(inner, key=lambda path: (-path.count("/") if path else 1, path)):
        lines.append(f"SwitchName={_switch(path)} Switches={','.join(_switch(child) for child in inner[path])}")
    return lines


def _switch(path: str) -> str:
    return path.rpartition("/")[2] if path.startswith("nn-") else path.replace("/", "-") or _ROOT
