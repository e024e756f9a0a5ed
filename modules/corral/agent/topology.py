"""The order of ranks by the network's switches: neighbours in it share as many of them as they can.

EC2 names the switches on the way from the top of its network to an instance (`ec2_topology`). The keeper writes them
into the nodes' comments in Slurm, where every node can read them without asking EC2, which it may not. `switch_tree`
brings what `topology_conf` says to slurmctld. Pure, but for `paths_of` and `place_in_topology`.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from corral.agent import slurm
from corral.model.cluster import ClusterPlan
from corral.model.node_names import expand, fold, number_of, queue_of

SWITCHES = re.compile(r"nn-[0-9a-f]+(?:/nn-[0-9a-f]+)*")
_COMMENT = re.compile(r"\bComment=(\S+)")
_NAME = re.compile(r"\bNodeName=(\S+)")
_LINE = re.compile(r"^SwitchName=(\S+) (Nodes|Switches)=(\S+)$", re.MULTILINE)
_ROOT = "top"  # joins what shares no switch of EC2's; Slurm wants one tree

Switches = tuple[str, ...]  # network nodes as EC2 gives them, that of the top first

log = logging.getLogger("corral.agent")


def rank_order(paths: Mapping[str, Switches]) -> tuple[str, ...]:
    """The nodes, those below one switch side by side, at every layer; within the last by number.

    Groups stand in the order of their first node, so that what is known of no switch stays in Slurm's own order.
    """
    ordered = sorted(paths, key=_by_number)
    first: dict[Switches, int] = {}
    for place, node in enumerate(ordered):
        for depth in range(1, len(paths[node]) + 1):
            first.setdefault(paths[node][:depth], place)
    places = {node: place for place, node in enumerate(ordered)}

    def key(node: str) -> tuple[int, ...]:
        path = paths[node]
        return (*(first[path[:depth]] for depth in range(1, len(path) + 1)), places[node])

    return tuple(sorted(ordered, key=key))


def static_nodes(plan: ClusterPlan) -> tuple[str, ...]:
    """The nodes of queues whose nodes are all static: only these keep their places in the network."""
    return tuple(node for queue in plan.queues if queue.min_nodes == queue.max_nodes for node in queue.static_nodes)


def topology_conf(
    plan: ClusterPlan, paths: Mapping[str, Switches], nodes: Sequence[str], *, is_on: bool = False
) -> str | None:
    """The text of topology.conf for the queues whose nodes are all static; None where there is nothing to tell.

    `nodes`: all that slurmctld knows. Two switches are the least that is worth it; where slurmctld has a tree already
    (`is_on`) one is enough, since to take it away is a restart.
    """
    known = {node: paths[node] for node in static_nodes(plan) if paths.get(node)}
    return tree(known, nodes) if len(set(known.values())) >= (1 if is_on else 2) else None


def tree(known: Mapping[str, Switches], nodes: Sequence[str]) -> str:
    """The text of topology.conf with every one of the nodes in it, those without a known switch below one of their own.

    slurmctld lets no job come to a node that is not in it ("Requested node configuration is not available": tried).
    """
    below: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        below["/".join(known[node]) if node in known else f"elsewhere/{queue_of(node)}"].append(node)
    return "".join(f"{line}\n" for line in _tree(below))


def read_tree(text: str) -> Mapping[str, Switches]:
    """The switches above each node, as `tree` wrote them down; nodes below no known switch are left out."""
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
    """The switches above each of the nodes, by their comments in Slurm; empty for one without. Raises SlurmError."""
    if not nodes:
        return {}
    known = read_paths(slurm.scontrol("--oneliner", "show", "node", fold(sorted(nodes, key=_by_number))))
    return {node: known.get(node, ()) for node in nodes}


def read_paths(text: str) -> Mapping[str, Switches]:
    """The switches above each node, by `scontrol --oneliner show node`; a comment of somebody else's is none."""
    found = {}
    for line in text.splitlines():
        name, comment = _NAME.search(line), _COMMENT.search(line)
        if name and comment and SWITCHES.fullmatch(comment[1]):
            found[name[1]] = tuple(comment[1].split("/"))
    return found


def comments(wanted: Mapping[str, Switches], known: Mapping[str, Switches]) -> Mapping[str, tuple[str, ...]]:
    """Which nodes get which new comment: one entry a path, for a call of scontrol each, of what has changed."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in sorted(wanted, key=_by_number):
        if wanted[node] != known.get(node, ()):
            found["/".join(wanted[node])].append(node)
    return {comment: tuple(nodes) for comment, nodes in found.items()}


def place_in_topology(
    instances: Mapping[str, str], switches: Callable[[Sequence[str]], Mapping[str, Switches]]
) -> Mapping[str, Switches]:
    """The switches above each node, after they were written into the nodes' comments.

    `instances`: the running instance of each node that has come up lately. `switches`: `Ec2Topology.switches`. It takes
    one call of EC2 for 100 nodes, a second apart, and one of scontrol for the nodes below each last switch.
    Raises Ec2Error, SlurmError; then it can be repeated.
    """
    if not instances:
        return {}
    found = switches(sorted(instances.values()))
    wanted = {node: found.get(instance, ()) for node, instance in instances.items()}
    for comment, nodes in comments(wanted, paths_of(sorted(instances))).items():
        log.info("place %s: %s", fold(nodes), comment or "no switch known")
        for start in range(0, len(nodes), slurm.AT_ONCE):
            some = nodes[start : start + slurm.AT_ONCE]
            slurm.scontrol("update", f"nodename={fold(some)}", f"comment={comment}")
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
