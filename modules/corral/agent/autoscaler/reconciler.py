"""Serve power requests, and reconcile Slurm with EC2, as `launch_planner` and `decide` plan it.

Everything that can fail is behind a protocol of `interfaces`, so that the tests' simulator can replace EC2 and Slurm,
and kill the autoscaler between any two steps.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from corral.agent.autoscaler import capacity_block, launch_planner, reserved_capacity
from corral.agent.autoscaler import decide as decisions
from corral.agent.autoscaler.capacity_block import Requeue, Vacate
from corral.agent.autoscaler.decide import Action, ClusterState, record_boot_failures
from corral.agent.autoscaler.interfaces import Cloud, DnsNames, Scheduler
from corral.agent.autoscaler.launch_planner import LaunchOutcome, LaunchRequest, LaunchStep, ReleaseStep
from corral.agent.autoscaler.request_queue import without_suspended
from corral.agent.autoscaler.reserved_capacity import ReservationUsage
from corral.agent.cluster import node_events, state
from corral.agent.cluster.ec2_client import Ec2Error
from corral.agent.cluster.launch_errors import (
    BACKOFF_POLICIES,
    FOUND_WITHIN_S,
    NEEDS_ACTION,
    BackoffPolicy,
    LaunchErrorKind,
    is_retryable,
    of_reserved,
)
from corral.agent.cluster.models import Instance, PowerRequest, SlurmNode
from corral.agent.cluster.state import AutoscalerState
from corral.agent.errors import AgentError
from corral.agent.events import Event, EventLog, timestamp
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.node_names import fold
from corral.model.timeouts import RESUME_TIMEOUT_S

_REASON_LENGTH = 200  # characters; what `sinfo -R` can still show

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """The last reconciliation's view: addresses by node, and the running instances of nodes that are up.

    The addresses include nodes launched since.
    """

    addresses: Mapping[str, str]
    running: Mapping[str, str]


class Autoscaler:
    """The autoscaler of one cluster.

    `save` persists its state; `clock` returns seconds since 1970. `stopped_queues` returns the queues that start no
    job, see `partition_state.stopped`.
    """

    def __init__(
        self,
        plan: ClusterPlan,
        deployed: Deployed,
        cloud: Cloud,
        scheduler: Scheduler,
        save: Callable[[AutoscalerState], None],
        clock: Callable[[], float],
        journal: EventLog,
        known: AutoscalerState,
        dns_names: DnsNames | None = None,
        policies: Mapping[LaunchErrorKind, BackoffPolicy] = BACKOFF_POLICIES,
        stopped_queues: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self.plan, self.deployed = plan, deployed
        self._configured_at = clock()  # a restart may follow the first configuration
        self.is_closing = False  # if true, static nodes are not powered up again
        self._cloud, self._scheduler, self._journal = cloud, scheduler, journal
        self._save, self._clock = save, clock
        self._dns_names, self._policies = dns_names, policies
        self.stopped_queues = stopped_queues
        self.state = known
        self.snapshot: ClusterSnapshot | None = None
        self.nodes: Sequence[SlurmNode] = ()  # as Slurm reported them at the last reconciliation
        self.instances: Sequence[Instance] = ()  # those of EC2 at the same time
        self._observation: node_events.Observation | None = None
        # When the capacity blocks of offers begin and end, as a background task last read from EC2.
        self.block_begins: Mapping[str, float] = {}
        self.block_ends: Mapping[str, float] = {}
        # The instances in ending blocks whose jobs were signalled and requeued.
        self._signalled, self._requeued = frozenset[str](), frozenset[str]()

    def configure(self, plan: ClusterPlan, deployed: Deployed) -> None:
        """Use another configuration from now on. It may have mended what an offer backs off for."""
        self.plan, self.deployed = plan, deployed
        self._configured_at = self._clock()
        self.state = state.end_fixable_backoffs(self.state)

    def process_requests(
        self, requests: Sequence[PowerRequest], done: Callable[[PowerRequest], None]
    ) -> frozenset[str]:
        """The nodes whose requests must wait: those of failed requests, and of later requests for the same nodes."""
        waiting = set[str]()
        for request, wanted in zip(requests, without_suspended(requests), strict=True):
            left = state.unserved(self.state, wanted)
            waiting |= self._process(left) if waiting.isdisjoint(left.nodes) else set(left.nodes)
            if waiting.isdisjoint(left.nodes) and not _is_removed(request, done):
                waiting.update(left.nodes)
        return frozenset(waiting)

    def reconcile(self, requested: frozenset[str], requests: Sequence[PowerRequest]) -> None:
        """Compare Slurm and EC2, and execute what `decide` plans. Raises AgentError; the next call tries again.

        `requested`: the nodes whose requests wait.
        """
        # Slurm first: a node requested in between has no instance yet, which is no difference for a minute.
        nodes = self.nodes = self._scheduler.nodes()
        shown = self._cloud.instances()
        utc_offset_s = float(time.localtime().tm_gmtoff)  # Slurm prints local times
        self._observation = node_events.log_new_events(
            self._journal, self._observation, nodes, shown, zone_s=utc_offset_s
        )
        self.state = state.prune(self.state, (request.key for request in requests), shown, self._clock())
        cluster = ClusterState(
            nodes=nodes,
            shown=shown,
            static=frozenset() if self.is_closing else _static(self.plan),
            requested=requested,
            unknown_nodes=frozenset(launch_planner.unknown_nodes(self.plan, [node.name for node in nodes])),
            versions={key: template.version for key, template in self.deployed.templates.items()},
            zones=_efa_zones(self.plan),
            reserved=reserved_capacity.reserved_offers(self.plan),
            now=self._clock(),
            policies=self._policies,
        )
        if decisions.needs_stopped_queues(cluster, self.state):
            cluster = replace(cluster, stopped_queues=self.stopped_queues())
        self._vacate_ending_blocks(cluster)
        actions, self.state = decisions.decide(cluster, self.state)
        self.instances = state.known_instances(self.state, shown, cluster.now)
        self.snapshot = _snapshot_of(cluster, self.instances)
        self._save(self.state)
        for action in actions:
            self._execute(action)

    def _vacate_ending_blocks(self, cluster: ClusterState) -> None:
        """Move jobs off machines whose capacity block is about to end."""
        self.state = self._with_block_backoffs(cluster.now)
        done = (self._signalled, self._requeued)
        for step in capacity_block.block_steps(self.block_ends, cluster.nodes, cluster.shown, *done, cluster.now):
            try:
                self._take(step, cluster)
            except AgentError as error:  # e.g. a job that may not be requeued; all else goes on
                log.error("leave a capacity block: %s; will retry", error)

    def _take(self, step: Vacate | Requeue | decisions.MarkDown, cluster: ClusterState) -> None:
        match step:
            case Vacate():
                self._scheduler.drain(step.to_drain, step.reason)
                self._scheduler.request_checkpoints(step.nodes)
                self._signalled |= _instances_of(step.nodes, cluster.shown)
                self._log_nodes(Event.DRAINING, step.nodes, step.reason.removeprefix("corral: "))
            case Requeue():
                self._scheduler.requeue_jobs(step.nodes)
                self._requeued |= _instances_of(step.nodes, cluster.shown)
            case decisions.MarkDown():
                self._execute(step)

    def _with_block_backoffs(self, now: float) -> AutoscalerState:
        """The state with offers backing off whose blocks end soon or have not begun."""
        return state.back_off_blocks_not_begun(
            capacity_block.back_off_ending_blocks(self.state, self.block_ends, now), self.block_begins, now
        )

    def _process(self, request: PowerRequest) -> frozenset[str]:
        """The nodes that must wait; none if the request is served or has expired."""
        try:
            if request.verb == "resume":
                return self._resume(request)
            self._terminate_machines(request)
        except AgentError as error:
            log.error("%s %s: %s; will retry", request.verb, fold(request.nodes), error)
            return frozenset(request.nodes)
        except Exception:  # an unexpected error must not block the requests of all other nodes
            log.exception("%s %s failed; will retry", request.verb, fold(request.nodes))
            return frozenset(request.nodes)
        return frozenset()

    def _resume(self, request: PowerRequest) -> frozenset[str]:
        """Launch machines for the nodes, and return the nodes that wait for reserved capacity."""
        # slurmctld has set the nodes DOWN by now, and requests them again if a job still needs them.
        if self._clock() > request.requested_at + RESUME_TIMEOUT_S:
            log.warning("give up %s: requested more than %s s ago", fold(request.nodes), RESUME_TIMEOUT_S)
            return frozenset()
        # Raises if slurmctld does not answer, so nothing is launched: a stopped queue must not cost more.
        stopped = self.stopped_queues()
        shown = self._cloud.instances()
        self.state = self._with_block_backoffs(self._clock())
        waiting = set[str]()
        for launch in launch_planner.launch_requests(self.plan, request):
            if launch.queue.name in stopped:
                self._fail_nodes(request, launch.nodes, f"queue {launch.queue.name} is stopped")
                continue
            done = self._serve(launch, shown)
            if addresses := {one.node: one.address for one in done.instances if one.address}:
                self._scheduler.set_addresses(addresses)
                self._name(addresses)
            self._give_up(request, launch, done)
            waiting.update(done.waiting)
        unknown = launch_planner.unknown_nodes(self.plan, request.nodes)
        if unknown:
            self._fail_nodes(request, unknown, f"cluster {self.plan.name} has no such queue")
        if waiting:
            self._record_waiting(request, frozenset(waiting))
        return frozenset(waiting)

    def _record_waiting(self, request: PowerRequest, waiting: frozenset[str]) -> None:
        """Save which nodes still wait, so that a retry leaves the others alone."""
        if request.key not in self.state.served:
            nodes = fold(node for node in request.nodes if node in waiting)
            self._journal.log_event(
                Event.LAUNCH_WAITS, f"{nodes}: their reserved capacity is being cleaned", nodes=nodes
            )
        self.state = state.record_served(self.state, request, waiting)
        self._save(self.state)

    def _name(self, addresses: Mapping[str, str]) -> None:
        """Publish the addresses. A failure is only logged: no node waits for its name, and ZoneCleanup retries."""
        if self.snapshot:  # first: ZoneCleanup removes names that the snapshot lacks
            self.snapshot = replace(self.snapshot, addresses={**self.snapshot.addresses, **addresses})
        try:
            if self._dns_names:
                self._dns_names.publish(addresses)
        except AgentError as error:
            log.error("name %s: %s", fold(addresses), error)

    def _serve(self, launch: LaunchRequest, shown: Sequence[Instance]) -> LaunchOutcome:
        while True:
            now = self._clock()
            usage = self._reservation_usage(launch, shown)
            until = now + self._policies[LaunchErrorKind.RESERVED].longest_s
            self.state = reserved_capacity.renew_backoffs(self.state, usage, until, now)
            step = launch_planner.next_launch_step(
                launch, state.known_instances(self.state, shown, now), self.state, now, usage
            )
            match step:
                case LaunchStep():
                    self._launch(launch, step)
                case ReleaseStep():
                    self._terminate(step.instance_ids)
                    self._journal.log_event(
                        Event.RELEASED,
                        f"{fold(launch.nodes)}: the offer lacks capacity for all of them",
                        nodes=fold(launch.nodes),
                        instances=list(step.instance_ids),
                    )
                case LaunchOutcome():
                    return step

    def _reservation_usage(self, launch: LaunchRequest, shown: Sequence[Instance]) -> Mapping[str, ReservationUsage]:
        """The places of the queue's reservations that have refused a launch; EC2 is not called without one."""
        refusing = reserved_capacity.refusing_reservations(launch.queue, self.state.backoffs)
        if not refusing:
            return {}
        capacities = self._cloud.reserved_capacity(sorted(set(refusing.values())))
        offers = (offer for queue in self.plan.queues for offer in queue.offers)
        return reserved_capacity.usage_of(refusing, capacities, offers, shown, self.state, self._clock())

    def _launch(self, launch: LaunchRequest, step: LaunchStep) -> None:
        """Save the intent, launch, and record the outcome: instances, or a backoff of the offer."""
        intent = step.intent
        if self.state.intents.get(launch.key) != intent:
            self.state = state.record_intent(self.state, launch.key, intent)
            self._save(self.state)
        try:
            made = self._launch_instances(launch, step)
        except Ec2Error as error:
            if is_retryable(error.kind, self._clock() - self._configured_at):
                raise
            if error.kind is LaunchErrorKind.STALE:
                self.state = state.record_launch(self.state, launch.key, ())
                return
            kind = LaunchErrorKind.REQUEST if error.kind is LaunchErrorKind.NOT_FOUND else error.kind
            self._record_refusal(launch, step, kind, str(error), ())
            return
        live = tuple(one for one in made if not one.ended)
        if short := _unserved(intent.nodes, live):
            dead = ", ".join(sorted({one.reason for one in made if one.ended and one.reason}))
            self._record_refusal(launch, step, LaunchErrorKind.CAPACITY, dead or f"no capacity for {fold(short)}", live)
        else:
            self.state = state.clear_backoff(state.record_launch(self.state, launch.key, live), intent.offer)
            self._save(self.state)
        if live:
            names = fold(one.node for one in live)
            self._journal.log_event(
                Event.LAUNCHED,
                f"{names} from {intent.offer}",
                nodes=names,
                offer=intent.offer,
                instances={one.node: one.instance_id for one in live},
                instance_type=launch.queue.instance_type,
                market=launch_planner.market_of(launch.queue, intent.offer),
            )

    def _launch_instances(self, launch: LaunchRequest, step: LaunchStep) -> tuple[Instance, ...]:
        intent = step.intent
        template = self.deployed.templates.get(intent.offer)
        if template is None:
            raise Ec2Error(f"offer {intent.offer} has no launch template", LaunchErrorKind.REQUEST)
        tags = launch_planner.tags_of(self.plan, launch.queue, intent.offer)
        made = self._cloud.launch(template, intent.nodes, intent.token, at_least=intent.at_least, tags=tags)
        return tuple(replace(one, offer=one.offer or intent.offer) for one in made)

    def _record_refusal(
        self, launch: LaunchRequest, step: LaunchStep, kind: LaunchErrorKind, reason: str, made: tuple[Instance, ...]
    ) -> None:
        if step.intent.offer in reserved_capacity.reserved_offers(self.plan):
            kind = of_reserved(kind)
        held = state.record_launch(self.state, launch.key, made)
        held = state.back_off(held, step.intent.offer, kind, reason, now := self._clock(), self._policies)
        if now < (known := self._configured_at + FOUND_WITHIN_S):  # e.g. a new policy, which AWS does not know yet
            held = state.shorten_fixable_backoff(held, step.intent.offer, known)
        self.state = held
        self._save(self.state)
        nodes = fold(step.intent.nodes)
        self._journal.log_event(
            Event.REFUSED,
            f"{nodes} by {step.intent.offer}: {reason}",
            nodes=nodes,
            offer=step.intent.offer,
            kind=str(kind),
            needs_action=kind in NEEDS_ACTION,
            until=timestamp(self.state.backoffs[step.intent.offer].until),
        )

    def _give_up(self, request: PowerRequest, launch: LaunchRequest, done: LaunchOutcome) -> None:
        if not done.unavailable:
            return
        until = launch_planner.available_at(launch.queue, self.state.backoffs, self._clock())
        again = f", tried again at {datetime.fromtimestamp(until, UTC):%H:%M UTC}" if until else ""
        if done.misplaced:
            for names, reason in self._keep_reasons(done.misplaced, "corral: its job needs nodes of one zone"):
                self._scheduler.replace(names, reason)
        self._fail_nodes(request, done.unavailable, f"{done.reason}{again}")

    def _fail_nodes(self, request: PowerRequest, nodes: Sequence[str], reason: str) -> None:
        gone = set(nodes)
        jobs = [job.job_id for job in request.jobs if not gone.isdisjoint(job.nodes)]
        self._notify_waiting(jobs, f"corral: no machines for {fold(nodes)}: {reason}")
        for names, text in self._keep_reasons(nodes, f"corral: {reason}"[:_REASON_LENGTH]):
            self._scheduler.power_down(names, text)
        self._journal.log_event(Event.LAUNCH_FAILED, f"{fold(nodes)}: {reason}", nodes=fold(nodes), jobs=jobs)

    def _keep_reasons(self, nodes: Sequence[str], reason: str) -> Iterator[tuple[Sequence[str], str]]:
        """The nodes with this reason, and with none those that a person has drained meanwhile: theirs stays.

        Slurm keeps one reason a node. With ours, the drain would end with its cause, and jobs would use the node.
        """
        by_hand = {node.name for node in self._scheduler.nodes() if node.drained_by_hand}
        for names, text in (([n for n in nodes if n not in by_hand], reason), ([n for n in nodes if n in by_hand], "")):
            if names:
                yield names, text

    def _notify_waiting(self, jobs: Sequence[int], text: str) -> None:
        """Message the users of these jobs. Must precede power_down: a job that Slurm has ended reaches nobody."""
        try:
            if jobs:
                self._scheduler.notify_waiting(jobs, text)
        except AgentError as error:
            log.error("notify the users of jobs %s: %s", ", ".join(str(job) for job in jobs), error)

    def _terminate_machines(self, request: PowerRequest) -> None:
        """Terminate the machines of nodes that Slurm has suspended, or that did not register in time."""
        gone, now = set(request.nodes), self._clock()
        shown = self._cloud.instances()
        held = [one for one in state.known_instances(self.state, shown, now) if one.node in gone]
        if held:
            self._terminate([one.instance_id for one in held])
        if request.verb == "resume-failed":  # counted after EC2 has agreed: until then the request is tried again
            self.state = record_boot_failures(self.state, held)
        machines = ", ".join(one.instance_id for one in held) or "no machine"
        self._journal.log_event(
            Event.ENDED,
            f"{fold(request.nodes)} ({request.verb}): {machines}",
            nodes=fold(request.nodes),
            verb=request.verb,
            instances=[one.instance_id for one in held],
        )

    def _terminate(self, instance_ids: Sequence[str]) -> None:
        self._cloud.terminate(instance_ids)
        self.state = state.record_termination(self.state, instance_ids, self._clock())
        self._save(self.state)

    def _execute(self, action: Action) -> None:
        match action:
            case decisions.Terminate():
                self._terminate(action.instance_ids)
                ids = list(action.instance_ids)
                self._journal.log_event(
                    Event.TERMINATED, f"{', '.join(ids)}: {action.reason}", instances=ids, reason=action.reason
                )
            case decisions.MarkDown():
                self._scheduler.power_down(action.nodes, "" if action.keeps_reason else f"corral: {action.reason}")
                self._log_nodes(Event.MARKED_DOWN, action.nodes, action.reason)
            case decisions.Replace():
                # A drained node already has a more specific reason.
                self._scheduler.replace(action.nodes, "" if action.keeps_reason else f"corral: {action.reason}")
                self._log_nodes(Event.REPLACED, action.nodes, action.reason)
            case decisions.Undrain():
                self._scheduler.undrain(action.nodes)
                self._log_nodes(Event.UNDRAINED, action.nodes, "the cause of its drain is gone with its machine")
            case decisions.PowerUp():
                self._scheduler.power_up(action.nodes)
                self._log_nodes(Event.POWERED_UP, action.nodes, "static node")
            case decisions.DisablePartition():
                self._scheduler.stop_queue(action.queue)
                self._journal.log_event(Event.STOPPED, f"queue {action.queue}: {action.reason}", queue=action.queue)

    def _log_nodes(self, event: Event, nodes: Sequence[str], reason: str) -> None:
        self._journal.log_event(event, f"{fold(nodes)}: {reason}", nodes=fold(nodes), reason=reason)


def _is_removed(request: PowerRequest, done: Callable[[PowerRequest], None]) -> bool:
    """True once a served request is removed. One that stays, e.g. on a read-only disk, is served again."""
    try:
        done(request)
    except OSError as error:
        log.error("%s %s is done, but its request cannot be removed: %s", request.verb, fold(request.nodes), error)
        return False
    return True


def _efa_zones(plan: ClusterPlan) -> Mapping[str, str]:
    """The zone of each offer of a queue with EFA. EFA traffic cannot leave a zone."""
    return {offer.key: offer.zone_id for queue in plan.queues if queue.efa for offer in queue.offers}


def _instances_of(nodes: Sequence[str], instances: Sequence[Instance]) -> frozenset[str]:
    wanted = set(nodes)
    return frozenset(one.instance_id for one in instances if one.node in wanted)


def _snapshot_of(cluster: ClusterState, instances: Sequence[Instance]) -> ClusterSnapshot:
    there = {one.node: one for one in instances if one.address}
    up = {node.name for node in cluster.nodes if node.registered}
    running = {name: one.instance_id for name, one in there.items() if name in up and one.state == "running"}
    return ClusterSnapshot(addresses={name: one.address for name, one in there.items()}, running=running)


def _static(plan: ClusterPlan) -> frozenset[str]:
    return frozenset(name for queue in plan.queues for name in queue.static_nodes)


def _unserved(nodes: Sequence[str], instances: Sequence[Instance]) -> tuple[str, ...]:
    """The nodes without an instance."""
    served = {one.node for one in instances}
    return tuple(node for node in nodes if node not in served)
