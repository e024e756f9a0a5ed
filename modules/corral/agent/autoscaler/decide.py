"""Decide what to do about differences between Slurm and EC2. Pure: nodes, instances and the time in, actions out.

Differences arise when the autoscaler or slurmctld dies between two steps, and when EC2 terminates an instance. EC2
shows changes late, so a difference counts only after a while. Nodes with waiting power requests are left alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.agent.cluster.launch_errors import (
    BACKOFF_POLICIES,
    OWN_SHUTDOWN,
    BackoffPolicy,
    LaunchErrorKind,
    of_reserved,
    termination_error_kind,
)
from corral.agent.cluster.models import NOT_BY_HAND, SLURMS_DRAINS, Instance, SlurmNode
from corral.agent.cluster.state import AutoscalerState, BootFailures, back_off, known_instances
from corral.agent.health.drain_reason import instance_in
from corral.model.node_names import queue_of

# Slurm itself marks a node down that does not register in time: model.timeouts.RESUME_TIMEOUT_S, its ResumeTimeout.
ORPHAN_AFTER_S = 120.0  # for an instance without a node; slurm-gcp waits 90 s, ParallelCluster 300 s
LOST_AFTER_S = 60.0  # for a node whose instance is gone; Slurm itself would take 180 s (SlurmdTimeout)
ENDED_AFTER_S = 10.0  # for a node that powers up and whose machine has ended; requests take a second
FAILURES_IN_A_ROW = 10  # failed boots of a queue before it is stopped; as ParallelCluster's protected mode
# An instance that ends within this time of its launch means that the offer lacks capacity, not that EC2 reclaims it.
EARLY_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminate:
    """Terminate these instances."""

    instance_ids: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkDown:
    """Set these nodes DOWN and power them down: their jobs are requeued, and the nodes can be launched again.

    `keeps_reason`: a person drained them; their reason stays.
    """

    nodes: tuple[str, ...]
    reason: str
    keeps_reason: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Power these nodes down as soon as no job uses them. `keeps_reason`: they are drained; their reason stays."""

    nodes: tuple[str, ...]
    reason: str
    keeps_reason: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrain:
    """Return these nodes to service: the cause of their drain is gone with their machine."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerUp:
    """Power these nodes up."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisablePartition:
    """Set the partition of this queue DOWN: it starts no more jobs."""

    queue: str
    reason: str


Action = Terminate | MarkDown | Replace | Undrain | PowerUp | DisablePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Slurm and EC2 at one time. `shown`: the cluster's instances, including ended ones.

    `static`: nodes that always run. `requested`: nodes whose power requests wait. `versions`: of each offer's launch
    template. `zones`: of the offers of queues with EFA. `unknown_nodes`: nodes that the cluster no longer declares;
    they are powered down when idle. `stopped_queues`: queues that start no job now, for any reason. `reserved`: offers
    with reserved capacity.
    """

    nodes: Sequence[SlurmNode]
    shown: Sequence[Instance]
    static: frozenset[str]
    requested: frozenset[str]
    versions: Mapping[str, str]
    now: float
    unknown_nodes: frozenset[str] = frozenset()
    policies: Mapping[LaunchErrorKind, BackoffPolicy] = field(default_factory=lambda: BACKOFF_POLICIES)
    zones: Mapping[str, str] = field(default_factory=dict)
    stopped_queues: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()


def decide(cluster: ClusterState, state: AutoscalerState) -> tuple[tuple[Action, ...], AutoscalerState]:
    """The actions to take now, and the new state."""
    held: dict[str, list[Instance]] = defaultdict(list)
    instances = known_instances(state, cluster.shown, cluster.now)
    for instance in instances:
        held[instance.node].append(instance)
    by_name = {node.name: node for node in cluster.nodes}
    settled = [node for node in cluster.nodes if node.name not in cluster.requested]
    wanting = [node for node in settled if node.wants_machine]
    gone = _newest_has_ended(cluster.shown)

    orphans = [
        one.instance_id for one in instances if one.node not in cluster.requested and _is_orphan(by_name.get(one.node))
    ]
    duplicates = [one.instance_id for node in wanting for one in _surplus(node, held[node.name])]
    lost = [node.name for node in wanting if not held[node.name]]
    failed = [node.name for node in wanting if node.failed and held[node.name]]
    stuck = [node.name for node in settled if node.failed and "POWERED_DOWN" in node.states]
    wrong = {key: state.wrong_since.get(key, cluster.now) for key in (*orphans, *duplicates, *lost, *failed)}
    # The newest instance of the node has ended, so its jobs need not wait. On a node that powers up this may be the
    # previous machine, until its power request is served.
    ended = [name for name in lost if name in gone]
    surely = {name for name in ended if "POWERING_UP" not in by_name[name].states}
    # Slurm has requeued their jobs, which must not start elsewhere while they still run here.
    silent = {name for name in failed if by_name[name].reason.startswith("Not responding")}

    state, stops = _count_failures(cluster, replace(state, wrong_since=wrong))
    stopped = cluster.stopped_queues.union(stop.queue for stop in stops)
    due = (*_due(lost, wrong, cluster.now, LOST_AFTER_S), *_due(ended, wrong, cluster.now, ENDED_AFTER_S))
    drained = frozenset(node.name for node in cluster.nodes if node.drained_by_hand)
    actions: tuple[Action, ...] = (
        Terminate(instance_ids=_due(orphans, wrong, cluster.now, ORPHAN_AFTER_S), reason="no node wants it"),
        Terminate(instance_ids=_due(duplicates, wrong, cluster.now, ORPHAN_AFTER_S), reason="its node has another"),
        *_mark_down({*due, *surely}, drained, "its machine is gone"),
        *_mark_down({*_due(failed, wrong, cluster.now, LOST_AFTER_S), *silent}, drained, "it did not answer"),
        *_mark_down(stuck, drained, "it did not boot"),
        Replace(nodes=_sick(wanting, held), reason="its machine is sick", keeps_reason=True),
        Replace(nodes=_outdated(wanting, held, cluster.versions), reason="its launch template is outdated"),
        Replace(nodes=_removed(wanting, cluster.unknown_nodes), reason="its queue no longer has it"),
        Replace(
            nodes=_outside_main_zone(wanting, held, cluster), reason="the idle nodes of its queue are in another zone"
        ),
        Undrain(nodes=_recovered(settled, held)),
        PowerUp(nodes=_static_nodes_off(settled, cluster.static, stopped)),
        *stops,
    )
    return tuple(action for action in actions if _has_targets(action)), state


def needs_stopped_queues(cluster: ClusterState, state: AutoscalerState) -> bool:
    """Whether `decide` needs the stopped queues: a static node is off, or boots have failed."""
    return bool(state.failures) or bool(_static_nodes_off(cluster.nodes, cluster.static, frozenset()))


def record_boot_failures(state: AutoscalerState, instances: Iterable[Instance]) -> AutoscalerState:
    """The state with these failed boots counted."""
    failures = dict(state.failures)
    for one in instances:
        queue = queue_of(one.node)
        before = failures.get(queue, BootFailures(count=0, since=one.launched_at))
        failures[queue] = BootFailures(count=before.count + 1, since=min(before.since, one.launched_at))
    return replace(state, failures=failures)


def _count_failures(
    cluster: ClusterState, state: AutoscalerState
) -> tuple[AutoscalerState, tuple[DisablePartition, ...]]:
    """The state after counting each ended instance once, and the partitions to disable."""
    up = {node.name: node.address for node in cluster.nodes if node.registered}
    booting = {node.name for node in cluster.nodes if "POWERING_UP" in node.states}
    new = [one for one in cluster.shown if one.ended and one.instance_id not in state.counted]
    for one in new:
        kind = termination_error_kind(one.reason)
        if kind and one.node in booting and cluster.now - one.launched_at < EARLY_S:
            kind = of_reserved(kind) if one.offer in cluster.reserved else kind
            state = back_off(state, one.offer, kind, one.reason, cluster.now, cluster.policies)
        elif one.reason == OWN_SHUTDOWN and one.node not in up and _was_wanted(one, cluster.nodes):
            state = record_boot_failures(state, [one])
    newest: dict[str, float] = {}
    for one in cluster.shown:
        if one.active and up.get(one.node) == one.address:
            newest[queue_of(one.node)] = max(newest.get(queue_of(one.node), 0.0), one.launched_at)
    failures = {
        queue: held
        for queue, held in state.failures.items()
        # A stopped queue starts counting again: boots in progress may still fail.
        if newest.get(queue, -1.0) < held.since and queue not in cluster.stopped_queues
    }
    stops = tuple(
        DisablePartition(queue=queue, reason=f"{held.count} machines in a row did not boot")
        for queue, held in sorted(failures.items())
        if held.count >= FAILURES_IN_A_ROW
    )
    counted = (*state.counted, *(one.instance_id for one in new))
    return replace(state, failures=failures, counted=counted), stops


def _mark_down(nodes: Iterable[str], drained: frozenset[str], reason: str) -> tuple[MarkDown, ...]:
    names = set(nodes)
    return (
        MarkDown(nodes=tuple(sorted(names - drained)), reason=reason),
        MarkDown(nodes=tuple(sorted(names & drained)), reason=reason, keeps_reason=True),
    )


def _was_wanted(instance: Instance, nodes: Sequence[SlurmNode]) -> bool:
    """Whether Slurm still expects this machine. A node that Slurm suspended may shut its machine down itself."""
    return any(node.name == instance.node and node.wants_machine for node in nodes)


def _newest_has_ended(shown: Sequence[Instance]) -> frozenset[str]:
    """The nodes whose newest instance has ended."""
    newest: dict[str, Instance] = {}
    for one in shown:
        if one.node not in newest or newest[one.node].launched_at <= one.launched_at:
            newest[one.node] = one
    return frozenset(name for name, one in newest.items() if one.ended)


def _is_orphan(node: SlurmNode | None) -> bool:
    """True if the node does not exist or is off. A node that powers down still has its machine for a moment."""
    return node is None or "POWERED_DOWN" in node.states


def _surplus(node: SlurmNode, held: Sequence[Instance]) -> Sequence[Instance]:
    """All instances of a node except the one with its address, or the first if none has it."""
    known = [one for one in held if one.address == node.address] or list(held[:1])
    return [one for one in held if one not in known[:1]]


def _sick(wanting: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]]) -> tuple[str, ...]:
    """Idle nodes that were drained for a fault of their current machine, or by Slurm itself."""
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
    """Idle nodes whose machine was launched from an older launch template."""
    return tuple(
        sorted(
            node.name
            for node in wanting
            if node.idle and "DRAIN" not in node.states and any(_is_old(one, versions) for one in held[node.name])
        )
    )


def _removed(wanting: Sequence[SlurmNode], unknown: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        sorted(node.name for node in wanting if node.name in unknown and node.idle and "DRAIN" not in node.states)
    )


def _is_old(instance: Instance, versions: Mapping[str, str]) -> bool:
    """True also if its offer no longer exists. An instance without a version tag is left alone."""
    return bool(instance.version) and versions.get(instance.offer) != instance.version


def _outside_main_zone(
    wanting: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]], cluster: ClusterState
) -> tuple[str, ...]:
    """Idle EFA nodes outside the zone with the most of them: a job could get nodes of two zones.

    A zone with machines in reserved capacity stays before one without: other markets are left for it.
    """
    idle: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    reserved: dict[str, Counter[str]] = defaultdict(Counter)
    for node in wanting:
        if node.idle and node.name not in cluster.static and "DRAIN" not in node.states:
            for one in held[node.name][:1]:
                if zone := cluster.zones.get(one.offer):
                    idle[queue_of(node.name)][zone].append(node.name)
                    reserved[queue_of(node.name)][zone] += one.offer in cluster.reserved
    found: list[str] = []
    for queue, by_zone in idle.items():
        stays = max(sorted(by_zone), key=lambda zone: (reserved[queue][zone], len(by_zone[zone])))
        found += (name for zone, names in by_zone.items() if zone != stays for name in names)
    return tuple(sorted(found))


def _recovered(settled: Sequence[SlurmNode], held: Mapping[str, Sequence[Instance]]) -> tuple[str, ...]:
    """Nodes drained for a machine that they no longer have. Nodes that a person drained stay so."""
    return tuple(
        sorted(
            node.name
            for node in settled
            # DOWN: power_down sets it first, and powering down does not always clear it.
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


def _static_nodes_off(settled: Sequence[SlurmNode], static: frozenset[str], stopped: frozenset[str]) -> tuple[str, ...]:
    """Static nodes to power up. Not those of a stopped queue: slurmctld would launch them again and again."""
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


def _due(keys: Iterable[str], wrong_since: Mapping[str, float], now: float, after_s: float) -> tuple[str, ...]:
    return tuple(sorted(key for key in keys if now - wrong_since[key] >= after_s))


def _has_targets(action: Action) -> bool:
    match action:
        case Terminate():
            return bool(action.instance_ids)
        case DisablePartition():
            return True
        case _:
            return bool(action.nodes)
