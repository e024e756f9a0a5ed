"""Where Slurm and EC2 have come apart, and what mends it. Pure: nodes, instances and the time in, actions out.

They come apart when the keeper or slurmctld dies between two steps, and when EC2 ends a machine by itself. EC2 shows
new things late, so nothing is wrong that was not wrong for a while; what the notes still ask for is left alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.agent.health_reason import instance_in
from corral.agent.memory import Failures, Memory, chilled
from corral.agent.memory import instances as known_instances
from corral.agent.refusals import OWN_SHUTDOWN, RESTS, Kind, Rest, kind_of_death
from corral.agent.world import NOT_BY_HAND, SLURMS_DRAINS, Instance, SlurmNode
from corral.model.node_names import queue_of

ORPHAN_AFTER_S = 120.0  # of an instance that no node wants; slurm-gcp waits 90 s, ParallelCluster 300 s
LOST_AFTER_S = 60.0  # of a node whose instance is gone; Slurm itself would take 180 s (SlurmdTimeout)
ENDED_AFTER_S = 10.0  # of a node that is powered up and whose machine has ended; a note is answered within a second
FAILURES_IN_A_ROW = 10  # boots of a queue that failed, until it is stopped; as ParallelCluster's protected mode
# How long after its launch an end says that the offer cannot give machines, and not that it takes one back.
EARLY_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """End these instances."""

    instance_ids: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Let Slurm forget the machines of these nodes: their jobs are requeued, and the nodes can be launched again.

    `silently`: somebody has drained them, and their reason stays that.
    """

    nodes: tuple[str, ...]
    why: str
    silently: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Let Slurm end the machines of these nodes as soon as no job uses them. `drained`: they are already."""

    nodes: tuple[str, ...]
    why: str
    drained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain:
    """Let Slurm use these nodes again: what they were drained for went with their machine."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Let Slurm power these nodes up."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Let Slurm start no more jobs of this queue."""

    queue: str
    why: str


Action = Terminate | Forget | Replace | Undrain | Wake | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Slurm and EC2 at one moment. `shown`: the cluster's instances, also those that have ended.

    `strangers`: nodes that the cluster has no more, and that go when they are free.
    `static`: nodes that are always there. `asked_for`: nodes of notes that wait for an answer. `versions`: of the
    launch template of each offer. `zones`: of the offers of queues whose nodes must be in one to work together.
    `stopped`: queues that start no job now, whoever stopped them.
    """

    nodes: Sequence[SlurmNode]
    shown: Sequence[Instance]
    static: frozenset[str]
    asked_for: frozenset[str]
    versions: Mapping[str, str]
    now: float
    strangers: frozenset[str] = frozenset()
    rests: Mapping[Kind, Rest] = field(default_factory=lambda: RESTS)
    zones: Mapping[str, str] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()


def decide(world: World, memory: Memory) -> tuple[tuple[Action, ...], Memory]:
    """What to do now, and what the keeper knows then."""
    held: dict[str, list[Instance]] = defaultdict(list)
    instances = known_instances(memory, world.shown, world.now)
    for instance in instances:
        held[instance.node].append(instance)
    by_name = {node.name: node for node in world.nodes}
    settled = [node for node in world.nodes if node.name not in world.asked_for]
    wanting = [node for node in settled if node.wants_machine]
    gone = _seen_to_end(world.shown)

    orphans = [
        one.instance_id for one in instances if one.node not in world.asked_for and _is_orphan(by_name.get(one.node))
    ]
    doubles = [one.instance_id for node in wanting for one in _surplus(node, held[node.name])]
    lost = [node.name for node in wanting if not held[node.name]]
    failed = [node.name for node in wanting if node.failed and held[node.name]]
    stuck = [node.name for node in settled if node.failed and "POWERED_DOWN" in node.states]
    wrong = {key: memory.wrong.get(key, world.now) for key in (*orphans, *doubles, *lost, *failed)}
    # What EC2 showed last of it has ended: its jobs need not wait. Of a node that is powered up this may be the machine
    # before, until the note that asks for another has been answered.
    ended = [name for name in lost if name in gone]
    surely = {name for name in ended if "POWERING_UP" not in by_name[name].states}
    # Slurm has requeued its jobs, and they must not run elsewhere while they still run there.
    silent = {name for name in failed if by_name[name].reason.startswith("Not responding")}

    memory, stops = _counted(world, replace(memory, wrong=wrong))
    stopped = world.stopped.union(stop.queue for stop in stops)
    due = (*_due(lost, wrong, world.now, LOST_AFTER_S), *_due(ended, wrong, world.now, ENDED_AFTER_S))
    drained = frozenset(node.name for node in world.nodes if node.drained_by_hand)
    actions: tuple[Action, ...] = (
        Terminate(instance_ids=_due(orphans, wrong, world.now, ORPHAN_AFTER_S), why="no node wants it"),
        Terminate(instance_ids=_due(doubles, wrong, world.now, ORPHAN_AFTER_S), why="its node has another"),
        *_forgotten({*due, *surely}, drained, "its machine is gone"),
        *_forgotten({*_due(failed, wrong, world.now, LOST_AFTER_S), *silent}, drained, "it did not answer"),
        *_forgotten(stuck, drained, "it did not boot"),
        Replace(nodes=_sick(wanting, held), why="its machine is sick", drained=True),
        Replace(nodes=_outdated(wanting, held, world.versions), why="its launch template is outdated"),
        Replace(nodes=_leaving(wanting, world.strangers), why="its queue has it no more"),
        Replace(nodes=_apart(wanting, held, world), why="the idle nodes of its queue are in another zone"),
        Undrain(nodes=_healed(settled, held)),
        Wake(nodes=_asleep(settled, world.static, stopped)),
        *stops,
    )
    return tuple(action for action in actions if _concerns(action)), memory


def asks_for_stopped(world: World, memory: Memory) -> bool:
    """Whether it matters now which queues are stopped: a node would be woken, or boots have failed."""
    return bool(memory.failures) or bool(_asleep(world.nodes, world.static, frozenset()))


def failed_to_boot(memory: Memory, instances: Iterable[Instance]) -> Memory:
    """With boots that failed."""
    failures = dict(memory.failures)
    for one in instances:
        queue = queue_of(one.node)
        before = failures.get(queue, Failures(count=0, since=one.launched_at))
        failures[queue] = Failures(count=before.count + 1, since=min(before.since, one.launched_at))
    return replace(memory, failures=failures)


def _counted(world: World, memory: Memory) -> tuple[Memory, tuple[Stop, ...]]:
    """What the ends of instances say of their offers and their queues, each looked at once."""
    up = {node.name: node.address for node in world.nodes if node.registered}
    booting = {node.name for node in world.nodes if "POWERING_UP" in node.states}
    new = [one for one in world.shown if one.ended and one.instance_id not in memory.counted]
    for one in new:
        kind = kind_of_death(one.reason)
        if kind and one.node in booting and world.now - one.launched_at < EARLY_S:
            memory = chilled(memory, one.offer, kind, one.reason, world.now, world.rests)
        elif one.reason == OWN_SHUTDOWN and one.node not in up and _was_wanted(one, world.nodes):
            memory = failed_to_boot(memory, [one])
    newest: dict[str, float] = {}
    for one in world.shown:
        if one.coming and up.get(one.node) == one.address:
            newest[queue_of(one.node)] = max(newest.get(queue_of(one.node), 0.0), one.launched_at)
    failures = {
        queue: held
        for queue, held in memory.failures.items()
        # One that is stopped begins a new row: boots that were under way still fail then.
        if newest.get(queue, -1.0) < held.since and queue not in world.stopped
    }
    stops = tuple(
        Stop(queue=queue, why=f"{held.count} machines in a row did not boot")
        for queue, held in sorted(failures.items())
        if held.count >= FAILURES_IN_A_ROW
    )
    counted = (*memory.counted, *(one.instance_id for one in new))
    return replace(memory, failures=failures, counted=counted), stops


def _forgotten(nodes: Iterable[str], drained: frozenset[str], why: str) -> tuple[Forget, ...]:
    names = set(nodes)
    return (
        Forget(nodes=tuple(sorted(names - drained)), why=why),
        Forget(nodes=tuple(sorted(names & drained)), why=why, silently=True),
    )


def _was_wanted(instance: Instance, nodes: Sequence[SlurmNode]) -> bool:
    """Whether Slurm still reckons with it: a node that Slurm has let go may shut its machine down itself."""
    return any(node.name == instance.node and node.wants_machine for node in nodes)


def _seen_to_end(shown: Sequence[Instance]) -> frozenset[str]:
    """The nodes whose newest instance has ended. An ended instance has no address any more."""
    newest: dict[str, Instance] = {}
    for one in shown:
        if one.node not in newest or newest[one.node].launched_at <= one.launched_at:
            newest[one.node] = one
    return frozenset(name for name, one in newest.items() if one.ended)


def _is_orphan(node: SlurmNode | None) -> bool:
    """A node that is being powered down still has its machine for a moment."""
    return node is None or "POWERED_DOWN" in node.states


def _surplus(node: SlurmNode, held: Sequence[Instance]) -> Sequence[Instance]:
    """All instances of a node but the one that Slurm talks to, or the first where it talks to none."""
    known = [one for one in held if one.address == node.address] or list(held[:1])
    return [one for one in held if one not in known[:1]]


def _sick(wanting: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]]) -> tuple[str, ...]:
    """Nodes without a job that were drained for what their own machine has, or by Slurm itself."""
    return tuple(
        sorted(
            node.name
            for node in wanting
            if node.idle
            and "DRAIN" in node.states
            and (_has_blamed(node, held[node.name]) or (held[node.name] and node.reason.startswith(SLURMS_DRAINS)))
        )
    )


def _outdated(
    wanting: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]], versions: Mapping[str, str]
) -> tuple[str, ...]:
    """Nodes without a job whose machine was launched from another template than one would be now."""
    return tuple(
        sorted(
            node.name
            for node in wanting
            if node.idle and "DRAIN" not in node.states and any(_is_old(one, versions) for one in held[node.name])
        )
    )


def _leaving(wanting: Sequence[SlurmNode], strangers: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        sorted(node.name for node in wanting if node.name in strangers and node.idle and "DRAIN" not in node.states)
    )


def _is_old(instance: Instance, versions: Mapping[str, str]) -> bool:
    """An offer that is no more is as old as can be; an instance that does not say what it came from is left alone."""
    return bool(instance.version) and versions.get(instance.offer) != instance.version


def _apart(wanting: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]], world: World) -> tuple[str, ...]:
    """Idle nodes that a job could be given together with idle nodes of another zone. Those of most nodes' zone stay."""
    idle: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for node in wanting:
        if node.idle and node.name not in world.static and "DRAIN" not in node.states:
            for one in held[node.name][:1]:
                if zone := world.zones.get(one.offer):
                    idle[queue_of(node.name)][zone].append(node.name)
    found: list[str] = []
    for by_zone in idle.values():
        stays = max(sorted(by_zone), key=lambda zone: len(by_zone[zone]))
        found += (name for zone, names in by_zone.items() if zone != stays for name in names)
    return tuple(sorted(found))


def _healed(settled: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]]) -> tuple[str, ...]:
    """Nodes that are drained for a machine that they do not have any more. What others drained stays so."""
    return tuple(
        sorted(
            node.name
            for node in settled
            # DOWN: as the keeper sets it before it powers it down, which does not always end it.
            if ("DRAIN" in node.states or {"DOWN", "POWERED_DOWN"} <= node.states)
            and node.reason.startswith(NOT_BY_HAND)
            and (
                "POWERED_DOWN" in node.states
                or (_blamed(node) and node.registered and held[node.name] and not _has_blamed(node, held[node.name]))
            )
        )
    )


def _blamed(node: SlurmNode) -> str:
    """The instance that the reason of a node names."""
    return instance_in(node.reason) or ""


def _has_blamed(node: SlurmNode, held: Sequence[Instance]) -> bool:
    return _blamed(node) in {one.instance_id for one in held}


def _asleep(settled: Sequence[SlurmNode], static: frozenset[str], stopped: frozenset[str]) -> tuple[str, ...]:
    """Nodes to wake. Not those of a queue that is stopped: slurmctld would launch them, one after another for ever."""
    return tuple(
        sorted(
            node.name
            for node in settled
            if node.name in static
            and "POWERED_DOWN" in node.states
            and "DRAIN" not in node.states
            and queue_of(node.name) not in stopped
        )
    )


def _due(keys: Iterable[str], wrong: Mapping[str, float], now: float, after_s: float) -> tuple[str, ...]:
    return tuple(sorted(key for key in keys if now - wrong[key] >= after_s))


def _concerns(action: Action) -> bool:
    match action:
        case Terminate():
            return bool(action.instance_ids)
        case Stop():
            return True
        case _:
            return bool(action.nodes)
