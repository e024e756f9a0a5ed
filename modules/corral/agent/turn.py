"""The keeper's work: what `launches` and `decide` say, done. Everything that can fail is behind a protocol, so that the
simulator can be EC2 and Slurm, and can kill the keeper between any two steps.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from corral.agent import block_end, launches, memory, observed
from corral.agent import decide as mending
from corral.agent.block_end import Leave, Requeue
from corral.agent.decide import Action, World, failed_to_boot
from corral.agent.ec2 import Ec2Error
from corral.agent.errors import AgentError
from corral.agent.events import Event, Journal
from corral.agent.launches import Done, Launch, Return, Wish
from corral.agent.memory import Memory
from corral.agent.refusals import AGAIN, MENDED_BY_SOMEBODY, RESTS, Kind, Rest
from corral.agent.world import Instance, Note, SlurmNode
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed, DeployedTemplate
from corral.model.node_names import fold
from corral.model.timers import RESUME_TIMEOUT_S

_REASON_LENGTH = 200  # characters; what `sinfo -R` can still show

log = logging.getLogger("corral.agent")


class Cloud(Protocol):
    """EC2, as `ec2.Ec2` asks it."""

    def launch(
        self, template: DeployedTemplate, nodes: Sequence[str], token: str, *, at_least: int
    ) -> tuple[Instance, ...]:
        """Instances for the first of the nodes. Raises Ec2Error."""
        ...

    def instances(self) -> tuple[Instance, ...]:
        """All instances that are or were nodes. Raises Ec2Error."""
        ...

    def terminate(self, instance_ids: Sequence[str]) -> None:
        """Ends instances. Raises Ec2Error."""
        ...


class Scheduler(Protocol):
    """slurmctld, as the module `slurm` tells it. Everything raises AgentError where it does not answer."""

    def nodes(self) -> tuple[SlurmNode, ...]:
        """All nodes."""
        ...

    def place(self, addresses: Mapping[str, str]) -> None:
        """Tells where nodes will be."""
        ...

    def power_down(self, nodes: Sequence[str], reason: str) -> None:
        """Forgets machines at once; without a reason, theirs stays."""
        ...

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """Lets no new job come to nodes."""
        ...

    def ask_for_checkpoints(self, nodes: Sequence[str]) -> None:
        """Asks the jobs on nodes for checkpoints."""
        ...

    def requeue_jobs(self, nodes: Sequence[str]) -> None:
        """Lets the jobs on nodes start again elsewhere."""
        ...

    def replace(self, nodes: Sequence[str], reason: str) -> None:
        """Ends machines as soon as no job uses them; without a reason, theirs stays."""
        ...

    def power_up(self, nodes: Sequence[str]) -> None:
        """Lets nodes be launched."""
        ...

    def undrain(self, nodes: Sequence[str]) -> None:
        """Lets nodes be used again."""
        ...

    def stop_queue(self, queue: str) -> None:
        """Starts no more jobs of a queue."""
        ...

    def tell_waiting(self, jobs: Sequence[int], text: str) -> None:
        """Says something to whoever waits for interactive jobs."""
        ...


class Naming(Protocol):
    """The cluster's zone, as `dns.Zone` has it."""

    def publish(self, addresses: Mapping[str, str]) -> None:
        """Names nodes that were just launched. Raises AgentError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What there was at the keeper's last look: addresses by node, and the running instances of nodes that are up.

    The addresses are also of nodes that were launched since.
    """

    addresses: Mapping[str, str]
    running: Mapping[str, str]


class Keeper:
    """One cluster's. `save` keeps what it knows; `clock` gives seconds since 1970. `stopped`: the queues that start no
    job, as `partitions.stopped` asks for them.
    """

    def __init__(
        self,
        plan: ClusterPlan,
        deployed: Deployed,
        cloud: Cloud,
        scheduler: Scheduler,
        save: Callable[[Memory], None],
        clock: Callable[[], float],
        journal: Journal,
        known: Memory,
        naming: Naming | None = None,
        rests: Mapping[Kind, Rest] = RESTS,
        stopped: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self.plan, self.deployed = plan, deployed
        self.is_closing = False  # then nodes that are always there may go
        self._cloud, self._scheduler, self._journal = cloud, scheduler, journal
        self._save, self._clock = save, clock
        self._naming, self._rests = naming, rests
        self.stopped = stopped
        self.memory = known
        self.seen: Seen | None = None
        self.nodes: Sequence[SlurmNode] = ()  # as Slurm had them at the last look
        self._looked: observed.Looked | None = None
        # When the blocks of offers begin and end, as somebody asked EC2 last; the machines whose jobs know of an end.
        self.block_begins: Mapping[str, float] = {}
        self.block_ends: Mapping[str, float] = {}
        self._leaving, self._requeued = frozenset[str](), frozenset[str]()

    def answer(self, notes: Sequence[Note], done: Callable[[Note], None]) -> frozenset[str]:
        """The nodes whose notes wait for the next turn: of those that failed, and of later ones of their nodes."""
        waiting = set[str]()
        for note in notes:
            if not (waiting.isdisjoint(note.nodes) and self._answer(note) and _is_taken_away(note, done)):
                waiting.update(note.nodes)
        return frozenset(waiting)

    def compare(self, asked_for: frozenset[str], notes: Sequence[Note]) -> None:
        """Mends where Slurm and EC2 have come apart. Raises AgentError; then it is tried again."""
        # Slurm first: a node that is asked for in between has no instance yet, which is nothing for a minute.
        nodes = self.nodes = self._scheduler.nodes()
        shown = self._cloud.instances()
        self._looked = observed.tell(self._journal, self._looked, nodes, shown, zone_s=_ahead_of_utc_s())
        self.memory = memory.tidied(self.memory, (note.key for note in notes), shown, self._clock())
        world = World(
            nodes=nodes,
            shown=shown,
            static=frozenset() if self.is_closing else _static(self.plan),
            asked_for=asked_for,
            strangers=frozenset(launches.strangers(self.plan, [node.name for node in nodes])),
            versions={key: template.version for key, template in self.deployed.templates.items()},
            zones=_efa_zones(self.plan),
            now=self._clock(),
            rests=self._rests,
        )
        if mending.asks_for_stopped(world, self.memory):
            world = replace(world, stopped=self.stopped())
        self._leave_blocks(world)
        actions, self.memory = mending.decide(world, self.memory)
        self.seen = _seen(world, memory.instances(self.memory, shown, world.now))
        self._save(self.memory)
        for action in actions:
            self._mend(action)

    def _leave_blocks(self, world: World) -> None:
        """Before what runs in capacity blocks is ended."""
        self.memory = self._by_blocks(world.now)
        told = (self._leaving, self._requeued)
        for step in block_end.steps(self.block_ends, world.nodes, world.shown, *told, world.now):
            match step:
                case Leave():
                    self._scheduler.drain(step.to_drain, step.reason)
                    self._scheduler.ask_for_checkpoints(step.nodes)
                    self._leaving |= _on(step.nodes, world.shown)
                    self._mended(Event.DRAINING, step.nodes, step.reason.removeprefix("corral: "))
                case Requeue():
                    self._scheduler.requeue_jobs(step.nodes)
                    self._requeued |= _on(step.nodes, world.shown)
                case mending.Forget():
                    self._mend(step)

    def _by_blocks(self, now: float) -> Memory:
        """What is known, with the offers whose blocks end soon or have not begun as ones that rest."""
        return memory.awaiting(block_end.closed(self.memory, self.block_ends, now), self.block_begins, now)

    def _answer(self, note: Note) -> bool:
        """True if what a note asks for is done, or need not be."""
        try:
            if note.verb == "resume":
                self._resume(note)
            else:
                self._end(note)
        except AgentError as error:
            log.error("%s %s: %s; tried again", note.verb, fold(note.nodes), error)
            return False
        except Exception:  # whatever nobody has thought of must not keep all other nodes from being launched and ended
            log.exception("%s %s failed; tried again", note.verb, fold(note.nodes))
            return False
        return True

    def _resume(self, note: Note) -> None:
        # By then slurmctld has set the nodes down, and asks anew if a job still wants them.
        if self._clock() > note.asked_at + RESUME_TIMEOUT_S:
            log.warning("give up %s: wanted more than %s s ago", fold(note.nodes), RESUME_TIMEOUT_S)
            return
        # Without slurmctld's word nothing is launched: who stops a queue, stops its bill.
        stopped = self.stopped()
        shown = self._cloud.instances()
        self.memory = self._by_blocks(self._clock())
        for wish in launches.wishes(self.plan, note):
            if wish.queue.name in stopped:
                self._without(note, wish.nodes, f"queue {wish.queue.name} is stopped")
                continue
            done = self._serve(wish, shown)
            if addresses := {one.node: one.address for one in done.instances if one.address}:
                self._scheduler.place(addresses)
                self._name(addresses)
            self._give_up(note, wish, done)
        strangers = launches.strangers(self.plan, note.nodes)
        if strangers:
            self._without(note, strangers, f"cluster {self.plan.name} has no such queue")

    def _name(self, addresses: Mapping[str, str]) -> None:
        """Names are brought up to date later as well: no node waits for them."""
        if self.seen:  # before: what is named and was not seen would be taken away
            self.seen = replace(self.seen, addresses={**self.seen.addresses, **addresses})
        try:
            if self._naming:
                self._naming.publish(addresses)
        except AgentError as error:
            log.error("name %s: %s", fold(addresses), error)

    def _serve(self, wish: Wish, shown: Sequence[Instance]) -> Done:
        while True:
            now = self._clock()
            step = launches.next_step(wish, memory.instances(self.memory, shown, now), self.memory, now)
            match step:
                case Launch():
                    self._launch(wish, step)
                case Return():
                    self._terminate(step.instance_ids)
                    self._journal.tell(
                        Event.RETURNED,
                        f"{fold(wish.nodes)}: their offer has no room for all of them",
                        nodes=fold(wish.nodes),
                        instances=list(step.instance_ids),
                    )
                case Done():
                    return step

    def _launch(self, wish: Wish, step: Launch) -> None:
        """Makes a launch that is written down before. What a refusal says of the offer is kept."""
        intent = step.intent
        if self.memory.intents.get(wish.key) != intent:
            self.memory = memory.intending(self.memory, wish.key, intent)
            self._save(self.memory)
        try:
            made = self._asked(wish, step)
        except Ec2Error as error:
            if error.kind in AGAIN:
                raise
            if error.kind is Kind.STALE:
                self.memory = memory.concluded(self.memory, wish.key, ())
                return
            self._refused(wish, step, error.kind, str(error), ())
            return
        live = tuple(one for one in made if not one.ended)
        if short := _without(intent.nodes, live):
            dead = ", ".join(sorted({one.reason for one in made if one.ended and one.reason}))
            self._refused(wish, step, Kind.CAPACITY, dead or f"no room for {fold(short)}", live)
        else:
            self.memory = memory.warmed(memory.concluded(self.memory, wish.key, live), intent.offer)
            self._save(self.memory)
        if live:
            names = fold(one.node for one in live)
            self._journal.tell(
                Event.LAUNCHED,
                f"{names} from {intent.offer}",
                nodes=names,
                offer=intent.offer,
                instances={one.node: one.instance_id for one in live},
                instance_type=wish.queue.instance_type,
                market=launches.market_of(wish.queue, intent.offer),
            )

    def _asked(self, wish: Wish, step: Launch) -> tuple[Instance, ...]:
        intent = step.intent
        template = self.deployed.templates.get(intent.offer)
        if template is None:
            raise Ec2Error(f"offer {intent.offer} has no launch template", Kind.REQUEST)
        made = self._cloud.launch(template, intent.nodes, intent.token, at_least=intent.at_least)
        return tuple(replace(one, offer=one.offer or intent.offer) for one in made)

    def _refused(self, wish: Wish, step: Launch, kind: Kind, why: str, made: tuple[Instance, ...]) -> None:
        held = memory.concluded(self.memory, wish.key, made)
        self.memory = memory.chilled(held, step.intent.offer, kind, why, self._clock(), self._rests)
        self._save(self.memory)
        nodes = fold(step.intent.nodes)
        self._journal.tell(
            Event.REFUSED,
            f"{nodes} by {step.intent.offer}: {why}",
            nodes=nodes,
            offer=step.intent.offer,
            kind=str(kind),
            mend=kind in MENDED_BY_SOMEBODY,
            until=_moment(self.memory.cold[step.intent.offer].until),
        )

    def _give_up(self, note: Note, wish: Wish, done: Done) -> None:
        if not done.without:
            return
        until = launches.cold_until(wish.queue, self.memory.cold, self._clock())
        again = f", tried again at {_hour(until)}" if until else ""
        if done.leave:
            self._scheduler.replace(done.leave, "corral: the job that has it needs nodes of one zone")
        self._without(note, done.without, f"{done.why}{again}")

    def _without(self, note: Note, nodes: Sequence[str], why: str) -> None:
        gone = set(nodes)
        jobs = [job.job_id for job in note.jobs if not gone.isdisjoint(job.nodes)]
        self._tell_waiting(jobs, f"corral: no machines for {fold(nodes)}: {why}")
        self._scheduler.power_down(nodes, f"corral: {why}"[:_REASON_LENGTH])
        self._journal.tell(Event.WITHOUT, f"{fold(nodes)}: {why}", nodes=fold(nodes), jobs=jobs)

    def _tell_waiting(self, jobs: Sequence[int], text: str) -> None:
        """Before their nodes go: a job that Slurm has ended has nobody left who could be told. Nothing waits for it."""
        try:
            if jobs:
                self._scheduler.tell_waiting(jobs, text)
        except AgentError as error:
            log.error("tell those who wait for %s: %s", ", ".join(str(job) for job in jobs), error)

    def _end(self, note: Note) -> None:
        """Ends the machines of nodes that Slurm has let go, or whose machines did not become nodes in time."""
        gone, now = set(note.nodes), self._clock()
        shown = self._cloud.instances()
        held = [one for one in memory.instances(self.memory, shown, now) if one.node in gone]
        if note.verb == "resume-failed":
            self.memory = failed_to_boot(self.memory, held)
        if held:
            self._terminate([one.instance_id for one in held])
        machines = ", ".join(one.instance_id for one in held) or "there is no machine"
        self._journal.tell(
            Event.ENDED,
            f"{fold(note.nodes)} ({note.verb}): {machines}",
            nodes=fold(note.nodes),
            verb=note.verb,
            instances=[one.instance_id for one in held],
        )

    def _terminate(self, instance_ids: Sequence[str]) -> None:
        self._cloud.terminate(instance_ids)
        self.memory = memory.ending(self.memory, instance_ids, self._clock())
        self._save(self.memory)

    def _mend(self, action: Action) -> None:
        match action:
            case mending.Terminate():
                self._terminate(action.instance_ids)
                ids = list(action.instance_ids)
                self._journal.tell(Event.TERMINATED, f"{', '.join(ids)}: {action.why}", instances=ids, why=action.why)
            case mending.Forget():
                self._scheduler.power_down(action.nodes, "" if action.silently else f"corral: {action.why}")
                self._mended(Event.FORGOTTEN, action.nodes, action.why)
            case mending.Replace():
                # The reason of a node that is drained already says more.
                self._scheduler.replace(action.nodes, "" if action.drained else f"corral: {action.why}")
                self._mended(Event.REPLACED, action.nodes, action.why)
            case mending.Undrain():
                self._scheduler.undrain(action.nodes)
                self._mended(Event.UNDRAINED, action.nodes, "what it was drained for went with its machine")
            case mending.Wake():
                self._scheduler.power_up(action.nodes)
                self._mended(Event.WOKEN, action.nodes, "always there")
            case mending.Stop():
                self._scheduler.stop_queue(action.queue)
                self._journal.tell(Event.STOPPED, f"queue {action.queue}: {action.why}", queue=action.queue)

    def _mended(self, event: Event, nodes: Sequence[str], why: str) -> None:
        self._journal.tell(event, f"{fold(nodes)}: {why}", nodes=fold(nodes), why=why)


def _is_taken_away(note: Note, done: Callable[[Note], None]) -> bool:
    """True once a note that is answered is gone; one that stays, as on a disk that is read-only, is answered again."""
    try:
        done(note)
    except OSError as error:
        log.error("%s %s is done, and its note stays: %s", note.verb, fold(note.nodes), error)
        return False
    return True


def _efa_zones(plan: ClusterPlan) -> Mapping[str, str]:
    """The zone of each offer of a queue with EFA; the traffic of EFA does not leave a zone."""
    return {offer.key: offer.zone_id for queue in plan.queues if queue.efa for offer in queue.offers}


def _on(nodes: Sequence[str], instances: Sequence[Instance]) -> frozenset[str]:
    wanted = set(nodes)
    return frozenset(one.instance_id for one in instances if one.node in wanted)


def _seen(world: World, instances: Sequence[Instance]) -> Seen:
    there = {one.node: one for one in instances if one.address}
    up = {node.name for node in world.nodes if node.registered}
    running = {name: one.instance_id for name, one in there.items() if name in up and one.state == "running"}
    return Seen(addresses={name: one.address for name, one in there.items()}, running=running)


def _static(plan: ClusterPlan) -> frozenset[str]:
    return frozenset(name for queue in plan.queues for name in queue.static_nodes)


def _without(nodes: Sequence[str], instances: Sequence[Instance]) -> tuple[str, ...]:
    """The nodes that none of the instances is."""
    served = {one.node for one in instances}
    return tuple(node for node in nodes if node not in served)


def _ahead_of_utc_s() -> float:
    """What this machine's clock is ahead of UTC: Slurm prints its times by it."""
    return float(time.localtime().tm_gmtoff)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _hour(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M UTC")
