"""Where Slurm and EC2 have come apart, and what mends it. Pure: nodes, instances and the time in, actions out.

They come apart when the keeper or slurmctld dies between two steps, and when EC2 ends a machine by itself. EC2 shows
new things late, so nothing is wrong that was not wrong for a while; what the notes still ask for is left alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from corral.agent.ec2 import Instance

ORPHAN_AFTER = timedelta(seconds=120)  # of an instance that no node wants; slurm-gcp waits 90 s, ParallelCluster 300 s
LOST_AFTER = timedelta(seconds=60)  # of a node whose instance is gone; Slurm itself would take 180 s (SlurmdTimeout)
_OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN"})  # the last: as soon as its job has completed
# Why slurmctld sets a node DOWN by itself. Where an administrator did it, it stays.
_SLURMS_REASONS = ("Not responding", "ResumeTimeout reached", "Node unexpectedly rebooted")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node as slurmctld has it. `states`: the base state and the flags."""

    name: str
    states: frozenset[str]
    address: str = ""
    reason: str = ""

    @property
    def wants_machine(self) -> bool:
        """Whether Slurm reckons with a machine."""
        return not self.states & _OFF

    @property
    def failed(self) -> bool:
        """Whether slurmctld has given the node up by itself."""
        return "DOWN" in self.states and self.reason.startswith(_SLURMS_REASONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """End these instances."""

    instance_ids: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Let Slurm forget the machines of these nodes: their jobs are requeued, and the nodes can be launched again."""

    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Let Slurm power these nodes up."""

    nodes: tuple[str, ...]


Action = Terminate | Forget | Wake
Seen = Mapping[str, datetime]  # since when an instance or a node looks wrong


def decide(
    nodes: Sequence[SlurmNode],
    instances: Sequence[Instance],
    *,
    static: frozenset[str],
    asked_for: frozenset[str],
    seen: Seen,
    now: datetime,
) -> tuple[tuple[Action, ...], Seen]:
    """What to do now, and what looks wrong since when. `asked_for`: the nodes of notes that wait for an answer."""
    by_name = {node.name: node for node in nodes}
    held: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        held[instance.node].append(instance)
    settled = [node for node in nodes if node.name not in asked_for]
    orphans = [one.instance_id for one in instances if one.node not in asked_for and _is_orphan(by_name.get(one.node))]
    doubles = [one.instance_id for node in settled if node.wants_machine for one in _surplus(node, held[node.name])]
    lost = [node.name for node in settled if node.wants_machine and not held[node.name]]
    failed = [node.name for node in settled if node.wants_machine and node.failed and held[node.name]]
    wrong = {key: seen.get(key, now) for key in (*orphans, *doubles, *lost, *failed)}
    asleep = sorted(
        node.name
        for node in settled
        if node.name in static and "POWERED_DOWN" in node.states and "DRAIN" not in node.states
    )
    actions = (
        Terminate(instance_ids=_due(orphans, wrong, now, ORPHAN_AFTER), why="no node wants it"),
        Terminate(instance_ids=_due(doubles, wrong, now, ORPHAN_AFTER), why="its node has another"),
        Forget(nodes=_due(lost, wrong, now, LOST_AFTER), why="its machine is gone"),
        Forget(nodes=_due(failed, wrong, now, LOST_AFTER), why="it did not answer"),
        Wake(nodes=tuple(asleep)),
    )
    return tuple(action for action in actions if _concerns(action)), wrong


def _is_orphan(node: SlurmNode | None) -> bool:
    """A node that is being powered down still has its machine for a moment."""
    return node is None or "POWERED_DOWN" in node.states


def _surplus(node: SlurmNode, held: Sequence[Instance]) -> Sequence[Instance]:
    """All instances of a node but the one that Slurm talks to, or the first where it talks to none."""
    known = [one for one in held if one.address == node.address] or list(held[:1])
    return [one for one in held if one not in known[:1]]


def _due(keys: Iterable[str], wrong: Seen, now: datetime, after: timedelta) -> tuple[str, ...]:
    return tuple(sorted(key for key in keys if now - wrong[key] >= after))


def _concerns(action: Action) -> bool:
    return bool(action.instance_ids if isinstance(action, Terminate) else action.nodes)
