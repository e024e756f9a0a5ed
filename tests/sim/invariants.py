"""What must hold in every simulation, regardless of the faults in its first hours."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.model.node_names import queue_of
from sim.ec2 import BOOT_S, EndlessLoop, Machine
from sim.faults import QUIET_AFTER
from sim.simulation import END, INTERVAL, Simulation, new_simulation
from sim.slurm import RESUME_TIMEOUT, SUSPEND_TIMEOUT, Node

CHECK_EVERY = 60.0
# Repeated here, so that a change of the autoscaler's own constant is noticed.
FAILURES_IN_A_ROW = 10
RESERVED_AGAIN, RESERVED_WAIT = 60.0, 600.0
KNOWN_WITHIN = 300.0  # what is refused so soon after a new configuration may be known to AWS later
EARLY = ("Server.InsufficientInstanceCapacity", "Server.SpotInstanceTermination")
# Grace, two cycles, and EC2's delay. EC2 and Slurm always answer in the quiet hours, to which this applies.
GRACE = 120.0 + 2 * 30.0 + 60.0 + SUSPEND_TIMEOUT
CYCLES = 2 * 30.0 + CHECK_EVERY  # for differences without grace
AFTER_LAST_JOB = 2 * RESUME_TIMEOUT + 600.0  # its machines are suspended; a job that waits begins
SETTLED = QUIET_AFTER + RESUME_TIMEOUT + 3600.0  # the longest backoff and the longest wait


def violations(seed: int) -> tuple[str, ...]:
    """The violations in the simulation of this seed; empty if there are none."""
    return check(new_simulation(seed))


def check(simulation: Simulation) -> tuple[str, ...]:
    """The same of a simulation that is about to begin; it runs to its end, or until an invariant is violated.

    A cluster with more jobs than fit before the end runs on until they are done.
    """
    watch, end = Watch(), END
    while simulation.clock.age < end:
        try:
            simulation.clock.run(simulation.clock.age + CHECK_EVERY)
        except EndlessLoop:
            return (f"after {simulation.clock.age:.0f} s: the autoscaler calls EC2 in an endless loop",)
        watch.check(simulation)
        if watch.found:
            return tuple(watch.found)
        if any(job.began is not None for job in simulation.slurm.jobs):
            end = max(end, simulation.clock.age + AFTER_LAST_JOB)
    return (*watch.found, *_at_the_end(simulation))


def simulate(number: int, first: int = 1) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The violations by seed, for this number of simulations from the first seed on, on all cores."""
    with ProcessPoolExecutor(initializer=logging.disable) as pool:
        yield from enumerate(pool.map(violations, range(first, first + number), chunksize=20), start=first)


class Watch:
    """Checks a simulation each minute."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._since: dict[str, float] = {}
        self._idle: dict[str, float] = defaultdict(float)

    def check(self, simulation: Simulation) -> None:
        self.found += _never(simulation)
        wrong = dict(_wrong(simulation))
        self._since = {key: self._since.get(key, simulation.clock.age) for key in wrong}
        for key, text in wrong.items():
            quiet = max(self._since[key], QUIET_AFTER if simulation.faults.met or simulation.crashes else 0.0)
            if simulation.clock.age - quiet > (CYCLES if key.startswith("apart") else GRACE):
                self.found.append(f"after {simulation.clock.age:.0f} s: {text}")
        self._count_idle(simulation)

    def _count_idle(self, simulation: Simulation) -> None:
        """No machine idles for long in quiet hours."""
        if simulation.clock.age < SETTLED:
            return
        for machine in simulation.ec2.machines:
            node = simulation.slurm.known[machine.node]
            static = any(machine.node in queue.static_nodes for queue in simulation.plan.queues)
            if machine.live and node.job is None and not static:
                self._idle[machine.id] += CHECK_EVERY
                if self._idle[machine.id] > 600 + BOOT_S[1] + GRACE:
                    self.found.append(f"{machine.id} of {machine.node} is paid for and idle")


def _wrong(simulation: Simulation) -> Iterator[tuple[str, str]]:
    """States that may last for a moment only."""
    by_node: dict[str, list[Machine]] = defaultdict(list)
    for machine in simulation.ec2.machines:
        if machine.live:
            by_node[machine.node].append(machine)
    for name, machines in by_node.items():
        if len(machines) > 1:
            yield f"two {name}", f"{name} has {len(machines)} machines"
        if simulation.slurm.known[name].state in ("off", "not booted"):
            yield f"orphan {name}", f"{name} is off and has machine {machines[0].id}"
    for node in simulation.slurm.known.values():
        if node.state in ("down", "not booted"):
            yield f"down {node.name}", f"{node.name} is DOWN: {node.reason}"
        if node.drain and node.job is None and node.name not in simulation.slurm.by_hand:
            yield f"drain {node.name}", f"{node.name} is drained: {node.reason}"
        if node.state == "up" and node.name not in by_node:
            yield f"lost {node.name}", f"{node.name} has no machine and Slurm does not know"
        if simulation.slurm.is_unknown(node) and _is_free(node):
            yield f"unknown {node.name}", f"{node.name}, which its queue has no more, is up without a job"
        if (
            node.name in _static(simulation)
            and node.state == "off"
            and queue_of(node.name) not in simulation.slurm.stopped_now()
        ):
            yield f"static {node.name}", f"{node.name} is static and off"
    yield from _zones_of_idle(simulation, by_node)
    for machines in by_node.values():
        for machine in machines:
            node = simulation.slurm.known[machine.node]
            newest = simulation.deployed.templates[machine.offer].version
            if node.state == "up" and node.job is None and machine.version != newest:
                yield f"old {machine.id}", f"{machine.id} of {machine.node} is idle and outdated"


def _never(simulation: Simulation) -> Iterator[str]:
    """States that must never occur."""
    if not _HIDES_ENDS & set(simulation.faults.met):
        yield from _unnoticed(simulation)
    if simulation.faults.met.keys() <= {"lost request"}:
        yield from _never_launched(simulation)
    yield from _wrong_backoffs(simulation)
    yield from _reserved_backoffs(simulation)
    yield from (f"{name} left its reservation" for name in simulation.slurm.left_reserved)
    yield from (f"{one} was ended while a job was on it" for one in simulation.ec2.ended_in_use)
    yield from (f"{name} takes no more jobs, and worked well" for name in simulation.slurm.replaced_in_use)
    yield from _sick(simulation)
    yield from _stopped(simulation)
    for name in simulation.slurm.by_hand:
        if not simulation.slurm.known[name].drain:
            yield f"{name} was drained by an administrator, and is used"
    for job in simulation.slurm.jobs:
        if job.began is None or not simulation.slurm.is_efa(job.queue):
            continue
        machines = [one for one in simulation.ec2.machines if one.node in job.nodes]
        launched = [one for one in machines if one.launched_at >= job.placed]
        # Not those that had ended before it began: a crash may leave a request to be served by another offer.
        runs_on = {one.offer for one in launched if one.ended_at is None or one.ended_at > job.began}
        if len(runs_on) > 1:
            yield f"job {job.id} got machines of several offers"
        # Also those that have ended since: they were there when the others were chosen.
        chosen = min((one.launched_at for one in launched), default=job.placed)
        had = {
            simulation.zones[one.offer]
            for one in machines
            if one.launched_at < job.placed and (one.ended_at is None or one.ended_at > chosen)
        }
        if len(had) == 1 and had != {simulation.zones[one.offer] for one in launched} | had:
            yield f"job {job.id} got machines of another zone than it had"


def _sick(simulation: Simulation) -> Iterator[str]:
    """A sick machine gets no further job."""
    for job in simulation.slurm.jobs:
        for name in job.nodes if job.began is not None else ():
            node = simulation.slurm.known[name]
            for one in simulation.ec2.of(name):
                if one.sick_at is not None and one.address == node.address and one.sick_at < job.placed:
                    yield f"job {job.id} was given {one.id} of {name}, which is sick"


def _stopped(simulation: Simulation) -> Iterator[str]:
    """A queue is stopped after ten machines that did not boot, and then launches none, regardless of requests."""
    for queue, tried in simulation.slurm.tried:
        if tried < FAILURES_IN_A_ROW:
            yield f"queue {queue} was stopped after {tried} machines that did not boot"
    yield from (f"{name} was powered up while its queue is stopped" for name in simulation.slurm.powered_up)
    for queue, since, until in simulation.slurm.closed:
        for one in simulation.ec2.machines:
            if queue_of(one.node) == queue and since + INTERVAL < one.launched_at < until:
                yield f"{one.id} of {one.node} was launched {one.launched_at - since:.0f} s after its queue was stopped"


def _wrong_backoffs(simulation: Simulation) -> Iterator[str]:
    """An offer backs off only if it refused, gave too little, or its machine ended within ten minutes."""
    for offer, cold in simulation.saved.backoffs.items():
        refused = any(other == offer and not given for _, other, given in simulation.ec2.calls)
        short = simulation.faults.met.keys() & {"full", "refused"}
        died = any(
            one.offer == offer
            and one.ended_at is not None
            and one.reason != "Client.UserInitiatedShutdown"
            and one.ended_at - one.launched_at < 600
            for one in simulation.ec2.machines
        )
        reserved = offer in simulation.ec2.reservations  # its places are few
        if not (refused or short or died or reserved):
            yield f"{offer} backs off for '{cold.reason}' without a cause"


def _reserved_backoffs(simulation: Simulation) -> Iterator[str]:
    """An offer whose reservation lacks capacity is tried again within a minute."""
    for offer, cold in simulation.saved.backoffs.items():
        long = cold.until - simulation.clock.now > RESERVED_AGAIN and cold.kind != LaunchErrorKind.PERMISSION
        if offer in simulation.ec2.reservations and long:
            yield f"{offer} of a reservation backs off for {cold.until - simulation.clock.now:.0f} s"


def _unnoticed(simulation: Simulation) -> Iterator[str]:
    """Slurm knows after one cycle that an instance has ended; after two if the node still boots.

    A node may have a second machine for a while. In use, the one with its address counts; while it boots, the last.
    """
    of_nodes: dict[str, list[Machine]] = defaultdict(list)
    for one in simulation.ec2.machines:
        of_nodes[one.node].append(one)
    for name, machines in of_nodes.items():
        node = simulation.slurm.known[name]
        if node.state == "up" and not node.drain:
            mine, limit = [one for one in machines if one.address == node.address], 45.0
        elif node.state == "starting":
            mine, limit = [one for one in machines if one.launched_at >= node.since], 75.0
        else:
            continue
        ends = [(one.ended_at, one.id) for one in mine if one.ended_at is not None]
        if not ends or len(ends) < len(mine):
            continue
        at, last = max(ends)
        if (ago := simulation.clock.now - at) > limit:
            yield f"{last} of {name} ended {ago:.0f} s ago, and Slurm does not know"


def _never_launched(simulation: Simulation) -> Iterator[str]:
    """A node that boots has a machine, or is marked down after a minute and two cycles."""
    for node in simulation.slurm.known.values():
        waits = simulation.clock.now - node.since
        cleaned = RESERVED_WAIT if queue_of(node.name) in _reserved_queues(simulation) else 0.0
        if node.state == "starting" and waits > 60 + 75 + 15 + cleaned and not simulation.ec2.of(node.name):
            yield f"{node.name} waits since {waits:.0f} s, and no machine is launched for it"


def _reserved_queues(simulation: Simulation) -> frozenset[str]:
    return frozenset(one.name for one in simulation.plan.queues if any(offer.reservation for offer in one.offers))


# With these the autoscaler cannot know in time that a machine has ended.
_HIDES_ENDS = frozenset({"crash", "late", "outage", "throttled", "lost reply", "slurmctld"})


def _relaunched_too_soon(simulation: Simulation) -> Iterator[str]:
    """An offer whose machines end at once is not used for a while."""
    for offer in {one.offer for one in simulation.ec2.machines} - simulation.ec2.reservations.keys():
        given = [one for one in simulation.ec2.machines if one.offer == offer]
        for one in given:
            if one.ended_at is None or one.reason not in EARLY:
                continue
            if one.ended_at - one.launched_at > 60 or one.booted:
                continue
            known = one.ended_at + 60  # two cycles
            if again := [other.id for other in given if known < other.launched_at < known + 400]:
                yield f"{offer} gave {one.id}, which ended at once, and launched {again[0]} soon after"
                return
    for queue in simulation.plan.queues:
        if (longest := _longest_row(simulation, queue.name)) > FAILURES_IN_A_ROW + 2 * queue.max_nodes:
            yield f"queue {queue.name} launched {longest} machines in a row that did not boot, and was not stopped"


def _longest_row(simulation: Simulation, queue: str) -> int:
    """The most machines of a queue in a row that did not boot, between two stops."""
    stops = [since for name, since, _ in simulation.slurm.closed if name == queue]
    own = [(one.launched_at, one) for one in simulation.ec2.machines if queue_of(one.node) == queue]
    row = longest = 0
    for _, one in sorted([*own, *((stop, None) for stop in stops)], key=lambda held: held[0]):
        if one is None or one.booted:
            row = 0
        elif one.reason == "Client.InstanceInitiatedShutdown":
            row += 1
        longest = max(longest, row)
    return longest


def _zones_of_idle(simulation: Simulation, by_node: Mapping[str, Sequence[Machine]]) -> Iterator[tuple[str, str]]:
    """Idle EFA nodes are in one zone: a job could get all of them, and EFA does not cross zones."""
    for queue in (one for one in simulation.plan.queues if one.efa):
        idle = {
            simulation.zones[machines[0].offer]
            for name, machines in by_node.items()
            if queue_of(name) == queue.name
            and name not in queue.static_nodes
            and _is_free(simulation.slurm.known[name])
        }
        if len(idle) > 1:
            yield f"apart {queue.name}", f"idle nodes of {queue.name} are in {', '.join(sorted(idle))}"


def _is_free(node: Node) -> bool:
    return node.state == "up" and node.job is None and not node.drain and not node.asap


def _static(simulation: Simulation) -> frozenset[str]:
    return frozenset(name for queue in simulation.plan.queues for name in queue.static_nodes)


def _at_the_end(simulation: Simulation) -> Iterator[str]:
    for job in simulation.slurm.jobs:
        if job.ends != 1:
            yield f"job {job.id} ({job.size} x {job.queue}) ended {job.ends} times"
    for machine in simulation.ec2.machines:
        if machine.live and machine.node not in _static(simulation):
            yield f"{machine.id} of {machine.node} survives"
    if simulation.requests:
        yield f"{len(simulation.requests)} requests are not served"
    yield from _thrash(simulation)


def _thrash(simulation: Simulation) -> Iterator[str]:
    """An offer that refuses is tried a few times, not in every cycle. A new configuration may have mended it."""
    refused: dict[str, list[float]] = defaultdict(list)
    for at, offer, given in simulation.ec2.calls:
        if not given:
            refused[offer].append(at)
    for offer, times in refused.items():
        least = 25 if offer in simulation.ec2.reservations else 500
        close = sum(
            1
            for first, second in pairwise(times)
            if second - first < least
            and not any(first < at <= second or at <= first < at + KNOWN_WITHIN for at in simulation.configured)
        )
        if close > simulation.crashes:
            yield f"{offer} was tried again {close} times during its backoff"
    if not _HIDES_ENDS & set(simulation.faults.met):
        yield from _relaunched_too_soon(simulation)
    if simulation.crashes == 0 and not simulation.faults.met:
        wanted = sum(job.size for job in simulation.slurm.jobs) + len(_static(simulation))
        if len(simulation.ec2.machines) > 2 * wanted:
            yield f"{len(simulation.ec2.machines)} machines for {wanted} nodes of jobs, and nothing went wrong"
