"""slurmctld as a state machine: jobs that wait for nodes, nodes that are powered up and down, timeouts.

As slurmctld 22.05 does it, with the settings of corral's slurm.conf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.agent.cluster.models import SlurmNode
from corral.agent.errors import AgentError
from corral.model.cluster import QueuePlan
from corral.model.node_names import number_of, queue_of
from sim.clock import Clock
from sim.ec2 import Machine, SimEc2
from sim.faults import QUIET_AFTER, Faults

RESUME_TIMEOUT, SUSPEND_TIMEOUT, SLURMD_TIMEOUT, REQUEUE_DELAY = 1200.0, 120.0, 180.0, 120.0
TICK = 5.0
STATES = {
    "off": "IDLE+CLOUD+POWERED_DOWN",
    "starting": "IDLE+CLOUD+POWERING_UP",
    "up": "IDLE+CLOUD",
    "ending": "IDLE+CLOUD+POWERING_DOWN",
    "down": "DOWN+CLOUD+NOT_RESPONDING",
    "not booted": "DOWN+CLOUD+POWERED_DOWN",
}


class SlurmctldDown(AgentError):
    """slurmctld does not answer."""


@dataclass(kw_only=True)
class Job:
    """`began`: when it runs, since when."""

    id: int
    queue: str
    size: int
    seconds: float
    eligible: float
    nodes: tuple[str, ...] = ()
    began: float | None = None
    delayed: bool = False
    restarts: int = 0
    ends: int = 0
    placed: float = 0.0


@dataclass(kw_only=True)
class Node:
    """`since`: when it came into its state."""

    name: str
    state: str = "off"
    since: float = 0.0
    address: str = ""
    reason: str = ""
    drain: bool = False
    asap: bool = False
    job: Job | None = None
    silent_since: float | None = None


@dataclass(kw_only=True)
class SimSlurm:
    """`request`: called for each request of slurmctld's programs, with a verb, nodes and the waiting jobs.

    `replaced_in_use`: nodes that the autoscaler replaced under a job; `left_reserved`: those that it replaced for
    another market although their reservation has room for their job. `closed`: the stopped queues, since when
    and until when; `powered_up`: nodes that it powered up meanwhile; `tried`: how many machines in a row had
    not booted when a queue was stopped.
    """

    clock: Clock
    faults: Faults
    ec2: SimEc2
    queues: Sequence[QueuePlan]
    request: Callable[[str, Sequence[str], Sequence[Job]], None]
    jobs: list[Job] = field(default_factory=list)
    known: dict[str, Node] = field(default_factory=dict)
    stopped: dict[str, float] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    closed: list[tuple[str, float, float]] = field(default_factory=list)
    tried: list[tuple[str, int]] = field(default_factory=list)
    powered_up: list[str] = field(default_factory=list)
    by_hand: set[str] = field(default_factory=set)
    replaced_in_use: list[str] = field(default_factory=list)
    left_reserved: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for queue in self.queues:
            for number in range(1, queue.max_nodes + 1):
                self.known[f"{queue.name}-{number}"] = Node(name=f"{queue.name}-{number}")

    # The autoscaler's commands.

    def nodes(self) -> tuple[SlurmNode, ...]:
        self._reached()
        return tuple(_shown(node) for node in self.known.values())

    def set_addresses(self, addresses: Mapping[str, str]) -> None:
        self._reached()
        for name, address in addresses.items():
            self.known[name].address = address

    def power_down(self, nodes: Sequence[str], reason: str) -> None:
        self._reached()
        for name in nodes:
            node = self.known[name]
            node.reason, node.drain, node.asap = reason or node.reason, name in self.by_hand, False
            self._requeue(node)
            self._end(node)
        self._suspend(nodes)

    def replace(self, nodes: Sequence[str], reason: str) -> None:
        self._reached()
        for name in nodes:
            node = self.known[name]
            node.asap, node.reason = True, reason or node.reason
            self.replaced_in_use += [name] * _runs(node)
            self.left_reserved += [name] * ("one zone" in reason and self._is_in_its_reservation(node))

    def _is_in_its_reservation(self, node: Node) -> bool:
        held = next((self.ec2.reservations.get(one.offer) for one in self.ec2.of(node.name)), None)
        return held is not None and node.job is not None and node.job.size <= held.total

    def power_up(self, nodes: Sequence[str]) -> None:
        self._reached()
        self.powered_up += [name for name in nodes if queue_of(name) in self.stopped_now()]
        self._start([self.known[name] for name in nodes if self.known[name].state == "off"], [])

    def undrain(self, nodes: Sequence[str]) -> None:
        self._reached()
        for name in nodes:
            node = self.known[name]
            node.drain, node.reason = False, ""
            if node.state == "not booted":
                self._to(node, "off")

    def stop_queue(self, queue: str) -> None:
        self._reached()
        self.stops[queue] = self.stops.get(queue, 0) + 1
        self.tried.append((queue, self._not_booted(queue)))
        self.stopped[queue] = self.clock.now + 1800  # a person opens it again after half an hour
        self.closed.append((queue, self.clock.now, self.stopped[queue]))

    def _not_booted(self, queue: str) -> int:
        """How many machines of a queue in a row have not booted."""
        own = [one.booted for one in self.ec2.machines if queue_of(one.node) == queue]
        return own[::-1].index(True) if True in own else len(own)

    def stopped_queues(self) -> frozenset[str]:
        self._reached()
        return self.stopped_now()

    def notify_waiting(self, jobs: Sequence[int], text: str) -> None:
        self._reached()

    # What happens without the autoscaler.

    def register(self, machine: Machine) -> None:
        """A slurmd reports. Slurm believes it where it waits for the node, or has lost it."""
        node = self.known[machine.node]
        if node.state == "starting" or (node.state == "down" and node.address == machine.address):
            node.address, node.silent_since = machine.address, None
            node.reason = node.reason if node.drain else ""
            self._to(node, "up")

    def works(self, machine: Machine) -> bool:
        """Whether a job runs on it."""
        node = self.known[machine.node]
        return node.state == "up" and node.address == machine.address and _runs(node)

    def drain(self, machine: Machine) -> None:
        """Drain a sick machine's node, as a health check does."""
        node = self.known[machine.node]
        if machine.live and node.address == machine.address and node.state == "up" and not node.drain:
            machine.sick_at = self.clock.now
            node.drain, node.reason = True, f"corral: {machine.id}: GPU 3 has fallen off the bus"

    def drain_by_hand(self) -> None:
        """Drain a node as an administrator, until the quiet hours."""
        node = self.faults.rng.choice(list(self.known.values()))
        if not node.drain:
            node.drain, node.reason = True, "disk [ann@today]"
            self.by_hand.add(node.name)

            def end() -> None:
                self.by_hand.discard(node.name)
                node.drain, node.reason = False, ""
                if node.state in ("down", "not booted"):  # state=resume assumes that it is up, or off
                    self._to(node, "up" if node.state == "down" else "off")

            self.clock.after(max(0.0, QUIET_AFTER - self.clock.age), end)

    def tick(self) -> None:
        if self.faults.now("admin") and self.faults.rng.random() < 0.01:
            self.drain_by_hand()
        for node in self.known.values():
            self._watch(node)
        for job in self.jobs:
            self._advance(job)
        self._schedule()

    def _watch(self, node: Node) -> None:
        now = self.clock.now
        if node.state == "starting" and now - node.since > RESUME_TIMEOUT:
            self._requeue(node)
            node.drain, node.reason = node.name in self.by_hand, "ResumeTimeout reached"
            self._to(node, "not booted")
            self._send_request("resume-failed", [node.name], [])
        elif node.state == "ending" and now - node.since > SUSPEND_TIMEOUT:
            stays = node.reason.startswith("corral: ") and self.faults.now("stays down")
            self._to(node, "not booted" if stays else "off")
        elif node.state in ("up", "down"):
            self._listen(node)
        # A node that is DOWN is suspended like an idle one. Source: Slurm, power_save.c, _node_state_suspendable.
        due = node.asap or (node.state == "up" and self._idle_too_long(node))
        if node.state in ("up", "down") and not node.job and due:
            node.asap = False
            self._end(node)
            self._suspend([node.name])

    def _listen(self, node: Node) -> None:
        now = self.clock.now
        heard = any(one.answers and one.address == node.address for one in self.ec2.of(node.name))
        if heard:
            node.silent_since = None
            if node.state == "down":
                node.reason = node.reason if node.drain else ""
                self._to(node, "up")
            return
        node.silent_since = node.silent_since or now
        if node.state == "up" and now - node.silent_since > SLURMD_TIMEOUT:
            self._requeue(node)
            node.reason = "Not responding"
            self._to(node, "down")

    def _idle_too_long(self, node: Node) -> bool:
        queue = self._queue(node.name)
        if self.is_unknown(node):  # in no partition, so without a SuspendTime
            return False
        return node.name not in queue.static_nodes and self.clock.now - node.since > queue.suspend_after_s

    def _advance(self, job: Job) -> None:
        if not job.nodes:
            return
        nodes = [self.known[name] for name in job.nodes]
        if job.began is None:
            if all(node.state == "up" for node in nodes):
                job.began = self.clock.now
        elif (
            all(any(one.answers and one.address == node.address for one in self.ec2.of(node.name)) for node in nodes)
            and self.clock.now - job.began >= job.seconds
        ):
            job.ends += 1
            for node in nodes:
                node.job, node.since = None, self.clock.now
            job.nodes, job.began = (), None

    def _schedule(self) -> None:
        for job in self.jobs:
            if job.ends or job.nodes or job.eligible > self.clock.now or job.queue in self.stopped_now():
                continue
            free = [
                node
                for node in self.known.values()
                if queue_of(node.name) == job.queue
                and node.job is None
                and node.state in ("up", "off")
                and not node.drain
                and not node.asap
                and not self.is_unknown(node)
                and (node.silent_since is None or node.state == "off")
            ]
            free.sort(key=lambda node: node.state != "up")
            if len(free) < job.size:
                continue
            taken = free[: job.size]
            job.nodes, job.delayed, job.placed = tuple(node.name for node in taken), False, self.clock.now
            for node in taken:
                node.job = job
            self._start([node for node in taken if node.state == "off"], [job])

    def _start(self, nodes: Sequence[Node], jobs: Sequence[Job]) -> None:
        for node in nodes:
            node.reason, node.silent_since = node.reason if node.drain else "", None
            self._to(node, "starting")
        if nodes:
            self._send_request("resume", [node.name for node in nodes], jobs)

    def _end(self, node: Node) -> None:
        self._to(node, "ending")

    def _suspend(self, nodes: Sequence[str]) -> None:
        self._send_request("suspend", list(nodes), [])

    def _requeue(self, node: Node) -> None:
        job = node.job
        if job is None:
            return
        for name in job.nodes:
            self.known[name].job, self.known[name].since = None, self.clock.now
        job.nodes, job.began, job.delayed = (), None, True
        job.restarts += 1
        job.eligible = self.clock.now + REQUEUE_DELAY

    def _send_request(self, verb: str, nodes: Sequence[str], jobs: Sequence[Job]) -> None:
        if self.faults.now("lost request"):
            return
        self.request(verb, nodes, jobs)
        if self.faults.now("twice"):
            self.request(verb, nodes, jobs)

    def _to(self, node: Node, state: str) -> None:
        node.state, node.since = state, self.clock.now

    def is_unknown(self, node: Node) -> bool:
        """Whether its queue no longer has it. Its job continues."""
        return number_of(node.name) > self._queue(node.name).max_nodes

    def is_efa(self, queue: str) -> bool:
        return next(one for one in self.queues if one.name == queue).efa

    def _queue(self, name: str) -> QueuePlan:
        return next(queue for queue in self.queues if queue.name == queue_of(name))

    def stopped_now(self) -> frozenset[str]:
        return frozenset(queue for queue, until in self.stopped.items() if until > self.clock.now)

    def _reached(self) -> None:
        if self.faults.now("slurmctld"):
            raise SlurmctldDown("Unable to contact slurm controller")


def _runs(node: Node) -> bool:
    """Whether a job runs there; one that still waits for other nodes has nothing to lose."""
    return node.job is not None and node.job.began is not None


def _shown(node: Node) -> SlurmNode:
    states = set(STATES[node.state].split("+"))
    if node.job and node.state in ("up", "starting"):
        states = (states - {"IDLE"}) | {"ALLOCATED"}
    if node.drain:
        states.add("DRAIN")
    if node.asap:
        states |= {"DRAIN", "POWER_DOWN"}
    return SlurmNode(name=node.name, states=frozenset(states), address=node.address, reason=node.reason)
