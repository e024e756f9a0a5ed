"""What must hold in every life, whatever goes wrong in its first hours."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

from corral.model.node_names import queue_of
from sim.ec2 import BOOT_S, Endless, Machine
from sim.faults import QUIET_AFTER
from sim.life import END, TURN, Life, begun
from sim.slurm import RESUME_TIMEOUT, SUSPEND_TIMEOUT, Node

LOOK_EACH = 60.0
# Written down here once more, so that a change of the keeper's own is seen.
FAILURES_IN_A_ROW = 10
EARLY = ("Server.InsufficientInstanceCapacity", "Server.SpotInstanceTermination")
# Grace, two turns, what EC2 shows late. EC2 and Slurm can always be asked in the quiet hours, which this is for.
GRACE = 120.0 + 2 * 30.0 + 60.0 + SUSPEND_TIMEOUT
TURNS = 2 * 30.0 + LOOK_EACH  # for what needs no grace
SETTLED = QUIET_AFTER + RESUME_TIMEOUT + 3600.0  # the longest rest, the longest wait


def broken(seed: int) -> tuple[str, ...]:
    """What does not hold in the life of this seed; empty where all does."""
    return judged(begun(seed))


def judged(life: Life) -> tuple[str, ...]:
    """The same of a life that is about to begin; it is lived to its end, or until something does not hold."""
    watch = Watch()
    while life.clock.age < END:
        try:
            life.clock.run(life.clock.age + LOOK_EACH)
        except Endless:
            return (f"after {life.clock.age:.0f} s: the keeper asks EC2 without end",)
        watch.look(life)
        if watch.found:
            return tuple(watch.found)
    return (*watch.found, *_at_the_end(life))


def lives(number: int, first: int = 1) -> Iterator[tuple[int, tuple[str, ...]]]:
    """What does not hold, by seed, of so many lives from the first seed on, lived on all cores."""
    with ProcessPoolExecutor(initializer=logging.disable) as pool:
        yield from enumerate(pool.map(broken, range(first, first + number), chunksize=20), start=first)


class Watch:
    """Looks at a life each minute."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._since: dict[str, float] = {}
        self._idle: dict[str, float] = defaultdict(float)

    def look(self, life: Life) -> None:
        self.found += _never(life)
        wrong = dict(_wrong(life))
        self._since = {key: self._since.get(key, life.clock.age) for key in wrong}
        for key, text in wrong.items():
            quiet = max(self._since[key], QUIET_AFTER if life.faults.met or life.crashes else 0.0)
            if life.clock.age - quiet > (TURNS if key.startswith("apart") else GRACE):
                self.found.append(f"after {life.clock.age:.0f} s: {text}")
        self._count_idle(life)

    def _count_idle(self, life: Life) -> None:
        """Paid time without a job, in quiet hours: a machine is up for its job, or goes."""
        if life.clock.age < SETTLED:
            return
        for machine in life.ec2.machines:
            node = life.slurm.known[machine.node]
            static = any(machine.node in queue.static_nodes for queue in life.plan.queues)
            if machine.live and node.job is None and not static:
                self._idle[machine.id] += LOOK_EACH
                if self._idle[machine.id] > 600 + BOOT_S[1] + GRACE:
                    self.found.append(f"{machine.id} of {machine.node} is paid for and idle")


def _wrong(life: Life) -> Iterator[tuple[str, str]]:
    """What may be so for a moment only."""
    by_node: dict[str, list[Machine]] = defaultdict(list)
    for machine in life.ec2.machines:
        if machine.live:
            by_node[machine.node].append(machine)
    for name, machines in by_node.items():
        if len(machines) > 1:
            yield f"two {name}", f"{name} has {len(machines)} machines"
        if life.slurm.known[name].state in ("off", "not booted"):
            yield f"orphan {name}", f"{name} is off and has machine {machines[0].id}"
    for node in life.slurm.known.values():
        if node.state in ("down", "not booted"):
            yield f"down {node.name}", f"{node.name} is DOWN: {node.reason}"
        if node.drain and node.job is None and node.name not in life.slurm.by_hand:
            yield f"drain {node.name}", f"{node.name} is drained: {node.reason}"
        if node.state == "up" and node.name not in by_node:
            yield f"lost {node.name}", f"{node.name} has no machine and Slurm does not know"
        if life.slurm.is_stranger(node) and _is_free(node):
            yield f"stranger {node.name}", f"{node.name}, which its queue has no more, is up without a job"
        if node.name in _static(life) and node.state == "off" and queue_of(node.name) not in life.slurm.stopped_now():
            yield f"static {node.name}", f"{node.name} is always there and is off"
    yield from _zones_of_idle(life, by_node)
    for machines in by_node.values():
        for machine in machines:
            node = life.slurm.known[machine.node]
            newest = life.deployed.templates[machine.offer].version
            if node.state == "up" and node.job is None and machine.version != newest:
                yield f"old {machine.id}", f"{machine.id} of {machine.node} is idle and outdated"


def _never(life: Life) -> Iterator[str]:
    """What may not be so for a moment."""
    if not _BLINDING & set(life.faults.met):
        yield from _unseen(life)
    if life.faults.met.keys() <= {"lost note"}:
        yield from _forsaken(life)
    yield from _unjust(life)
    yield from (f"{one} was ended while a job was on it" for one in life.ec2.robbed)
    yield from (f"{name} takes no more jobs, and worked well" for name in life.slurm.spoiled)
    yield from _sick(life)
    yield from _stopped(life)
    for name in life.slurm.by_hand:
        if not life.slurm.known[name].drain:
            yield f"{name} was drained by an administrator, and is used"
    for job in life.slurm.jobs:
        if job.began is None or not life.slurm.is_efa(job.queue):
            continue
        machines = [one for name in job.nodes for one in life.ec2.of(name)]
        new = {one.offer for one in machines if one.launched_at >= job.placed}
        if len(new) > 1:
            yield f"job {job.id} got machines of several offers"
        had = {life.zones[one.offer] for one in machines if one.launched_at < job.placed}
        if len(had) == 1 and had != {life.zones[one] for one in new} | had:
            yield f"job {job.id} got machines of another zone than it had"


def _sick(life: Life) -> Iterator[str]:
    """What a health check has found stays true of its machine."""
    for job in life.slurm.jobs:
        for name in job.nodes if job.began is not None else ():
            node = life.slurm.known[name]
            for one in life.ec2.of(name):
                if one.sick_at is not None and one.address == node.address and one.sick_at < job.placed:
                    yield f"job {job.id} was given {one.id} of {name}, which is sick"


def _stopped(life: Life) -> Iterator[str]:
    """A queue is stopped after ten machines that did not boot, and costs no new one then, whoever asks for one."""
    for queue, tried in life.slurm.tried:
        if tried < FAILURES_IN_A_ROW:
            yield f"queue {queue} was stopped after {tried} machines that did not boot"
    yield from (f"{name} was woken while its queue is stopped" for name in life.slurm.woken)
    for queue, since, until in life.slurm.closed:
        for one in life.ec2.machines:
            if queue_of(one.node) == queue and since + TURN < one.launched_at < until:
                yield f"{one.id} of {one.node} was launched {one.launched_at - since:.0f} s after its queue was stopped"


def _unjust(life: Life) -> Iterator[str]:
    """An offer rests for what it did: it refused, gave too little, or gave what ended within ten minutes."""
    for offer, cold in life.saved.cold.items():
        refused = any(other == offer and not given for _, other, given in life.ec2.calls)
        short = life.faults.met.keys() & {"full", "refused"}
        died = any(
            one.offer == offer
            and one.ended_at is not None
            and one.reason != "Client.UserInitiatedShutdown"
            and one.ended_at - one.launched_at < 600
            for one in life.ec2.machines
        )
        if not (refused or short or died):
            yield f"{offer} rests for '{cold.why}', and did nothing wrong"


def _unseen(life: Life) -> Iterator[str]:
    """What EC2 shows as ended is known to Slurm after a turn; where the node still boots, after two."""
    ended = {one.node: one for one in life.ec2.machines}  # the last of each node
    for name, one in ended.items():
        node = life.slurm.known[name]
        used = node.state == "up" and node.address == one.address and not node.drain
        awaited = node.state == "starting" and one.launched_at >= node.since
        if one.ended_at is not None and life.clock.now - one.ended_at > (45 if used else 75 if awaited else math.inf):
            yield f"{one.id} of {name} ended {life.clock.now - one.ended_at:.0f} s ago, and Slurm does not know"


def _forsaken(life: Life) -> Iterator[str]:
    """A node that boots has a machine, or is let go after a minute and two turns."""
    for node in life.slurm.known.values():
        waits = life.clock.now - node.since
        if node.state == "starting" and waits > 60 + 75 + 15 and not life.ec2.of(node.name):
            yield f"{node.name} waits since {waits:.0f} s, and nobody launches a machine for it"


# With these the keeper cannot know in time that a machine has ended.
_BLINDING = frozenset({"crash", "late", "outage", "throttled", "lost reply", "slurmctld"})


def _hopeless(life: Life) -> Iterator[str]:
    """What gives nothing but machines that end at once is left alone for a while."""
    for offer in {one.offer for one in life.ec2.machines}:
        given = [one for one in life.ec2.machines if one.offer == offer]
        for one in given:
            if one.ended_at is None or one.reason not in EARLY:
                continue
            if one.ended_at - one.launched_at > 60 or one.booted:
                continue
            known = one.ended_at + 60  # two turns
            if again := [other.id for other in given if known < other.launched_at < known + 400]:
                yield f"{offer} gave {one.id}, which ended at once, and was asked for {again[0]} soon after"
                return
    for queue in life.plan.queues:
        if (longest := _longest_row(life, queue.name)) > FAILURES_IN_A_ROW + 2 * queue.max_nodes:
            yield f"queue {queue.name} launched {longest} machines in a row that did not boot, and was not stopped"


def _longest_row(life: Life, queue: str) -> int:
    """How many machines of a queue in a row did not boot, between one stop and the next."""
    stops = [since for name, since, _ in life.slurm.closed if name == queue]
    own = [(one.launched_at, one) for one in life.ec2.machines if queue_of(one.node) == queue]
    row = longest = 0
    for _, one in sorted([*own, *((stop, None) for stop in stops)], key=lambda held: held[0]):
        if one is None or one.booted:
            row = 0
        elif one.reason == "Client.InstanceInitiatedShutdown":
            row += 1
        longest = max(longest, row)
    return longest


def _zones_of_idle(life: Life, by_node: Mapping[str, Sequence[Machine]]) -> Iterator[tuple[str, str]]:
    """A job could be given idle nodes of two zones, and EFA would not reach from one to the other."""
    for queue in (one for one in life.plan.queues if one.efa):
        idle = {
            life.zones[machines[0].offer]
            for name, machines in by_node.items()
            if queue_of(name) == queue.name and name not in queue.static_nodes and _is_free(life.slurm.known[name])
        }
        if len(idle) > 1:
            yield f"apart {queue.name}", f"idle nodes of {queue.name} are in {', '.join(sorted(idle))}"


def _is_free(node: Node) -> bool:
    return node.state == "up" and node.job is None and not node.drain and not node.asap


def _static(life: Life) -> frozenset[str]:
    return frozenset(name for queue in life.plan.queues for name in queue.static_nodes)


def _at_the_end(life: Life) -> Iterator[str]:
    for job in life.slurm.jobs:
        if job.ends != 1:
            yield f"job {job.id} ({job.size} x {job.queue}) ended {job.ends} times"
    for machine in life.ec2.machines:
        if machine.live and machine.node not in _static(life):
            yield f"{machine.id} of {machine.node} survives"
    if life.notes:
        yield f"{len(life.notes)} notes are not answered"
    yield from _thrash(life)


def _thrash(life: Life) -> Iterator[str]:
    """An offer that refuses is asked a few times, not at every turn."""
    refused: dict[str, list[float]] = defaultdict(list)
    for at, offer, given in life.ec2.calls:
        if not given:
            refused[offer].append(at)
    for offer, times in refused.items():
        close = sum(1 for first, second in pairwise(times) if second - first < 500)
        if close > life.crashes:
            yield f"{offer} was asked again {close} times while it rests"
    if not _BLINDING & set(life.faults.met):
        yield from _hopeless(life)
    if life.crashes == 0 and not life.faults.met:
        wanted = sum(job.size for job in life.slurm.jobs) + len(_static(life))
        if len(life.ec2.machines) > 2 * wanted:
            yield f"{len(life.ec2.machines)} machines for {wanted} nodes of jobs, and nothing went wrong"
