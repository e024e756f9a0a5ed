"""One simulated cluster, made from a seed: the autoscaler's loop as in `daemon`, over the simulated Slurm and EC2."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from corral.agent.autoscaler.launch_planner import available_at, why_unavailable
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.autoscaler.requeue_release import ClosedQueue, RequeuedJob, to_start
from corral.agent.cluster.models import PowerRequest, WaitingJob
from corral.agent.cluster.state import AutoscalerState
from corral.agent.events import Event, EventLog
from corral.model.cluster import ClusterPlan, OfferPlan, QueuePlan
from corral.model.deployed import Deployed, DeployedTemplate
from corral.model.enums import Market
from render import plans
from sim.clock import Clock
from sim.ec2 import Reservation, SimEc2
from sim.faults import QUIET_AFTER, Faults, drawn
from sim.slurm import TICK, Job, SimSlurm

END = QUIET_AFTER + 16_000.0
INTERVAL, AGAIN, RESTART = 30.0, 1.0, 5.0


class Crash(BaseException):
    """The autoscaler was killed."""


class EventCounts(EventLog):
    """Counts events."""

    def __init__(self) -> None:
        super().__init__(None)
        self.counts: dict[str, int] = {}

    def log_event(self, event: Event, text: str, **facts: object) -> None:
        self.counts[event] = self.counts.get(event, 0) + 1


class Killable:
    """A dependency of the autoscaler: it can be killed before and after each call."""

    def __init__(self, real: Any, faults: Faults) -> None:
        self._real, self._faults = real, faults

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(self._real, name)

        def use(*given: Any, **named: Any) -> Any:
            if self._faults.now("crash"):
                raise Crash
            result = real(*given, **named)
            if self._faults.now("crash"):
                raise Crash
            return result

        return use


@dataclass(kw_only=True)
class Simulation:
    """The state of one simulation. `configured`: when an autoscaler got a configuration."""

    seed: int
    clock: Clock
    faults: Faults
    ec2: SimEc2
    slurm: SimSlurm
    plan: ClusterPlan
    deployed: Deployed
    requests: list[PowerRequest] = field(default_factory=list)
    saved: AutoscalerState = field(default_factory=AutoscalerState)
    autoscaler: Autoscaler | None = None
    crashes: int = 0
    configured: list[float] = field(default_factory=list)
    journal: EventCounts = field(default_factory=EventCounts)
    _left: frozenset[str] = frozenset()
    _due: float = 0.0
    _again: float = AGAIN
    _compare: float = 0.0
    _since: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def zones(self) -> Mapping[str, str]:
        """The zone of each offer."""
        return {offer.key: offer.zone_id for queue in self.plan.queues for offer in queue.offers}

    def add_request(self, verb: str, nodes: Sequence[str], jobs: Sequence[Job]) -> None:
        waiting = tuple(
            WaitingJob(
                job_id=job.id, nodes=tuple(nodes), allocated_nodes=tuple(one for one in job.nodes if one not in nodes)
            )
            for job in jobs
        )
        key = f"{int(self.clock.now)}-{len(self.requests)}-{self.faults.rng.randrange(10**9)}"
        self.requests.append(
            PowerRequest(key=key, verb=verb, nodes=tuple(nodes), requested_at=self.clock.now, jobs=waiting)
        )
        self._due = 0.0

    def step(self) -> None:
        """One cycle of the autoscaler's loop and of Slurm."""
        self.slurm.tick()
        try:
            self._run_autoscaler()
        except Crash:
            self.crashes += 1
            self.autoscaler = None
            self._due = self._compare = self.clock.now + RESTART
        busy = self.requests or any(
            job.eligible <= self.clock.now or job.nodes for job in self.slurm.jobs if not job.ends
        )
        self.clock.after(TICK if busy else 3 * TICK, self.step)

    def change(self) -> None:
        """A later `corral up` has changed the launch templates."""
        newer = {key: replace(one, version=str(int(one.version) + 1)) for key, one in self.deployed.templates.items()}
        self.deployed = replace(self.deployed, templates=newer)
        if self.autoscaler:
            self.configured.append(self.clock.now)
            self.autoscaler.configure(self.plan, self.deployed)

    def reverse_offers(self) -> None:
        """A later `corral up` prefers its last offers."""
        self._plan(*(replace(queue, offers=queue.offers[::-1]) for queue in self.plan.queues))

    def shrink(self, name: str, most: int) -> None:
        """A later `corral up` has removed nodes of a queue."""
        self._plan(*(replace(one, max_nodes=most) if one.name == name else one for one in self.plan.queues))

    def _plan(self, *queues: QueuePlan) -> None:
        self.plan = replace(self.plan, queues=queues)
        self.slurm.queues = queues
        if self.autoscaler:
            self.autoscaler.plan = self.plan

    def _run_autoscaler(self) -> None:
        now = self.clock.now
        if self.autoscaler is None:
            if now < self._due:
                return
            self.configured.append(now)
            ec2, slurm = Killable(self.ec2, self.faults), Killable(self.slurm, self.faults)
            self.autoscaler = Autoscaler(
                self.plan,
                self.deployed,
                ec2,
                slurm,
                self._save,
                self.clock,
                self.journal,
                self.saved,
                stopped_queues=slurm.stopped_queues,
            )
            self._compare = now + INTERVAL
        if now >= self._due:
            self._left = self.autoscaler.process_requests(tuple(self.requests), self._done)
            self._again = min(2 * self._again, INTERVAL) if self._left else AGAIN
            self._due = now + (self._again if self._left else INTERVAL)
        if now >= self._compare:
            self._compare = now + INTERVAL
            try:
                self.autoscaler.reconcile(self._left, tuple(self.requests))
            except Crash:
                raise
            except Exception as error:  # the control loop logs AgentError; anything else is a bug
                if type(error).__name__ not in ("SlurmctldDown", "Ec2Error"):
                    raise
        self._release()

    def _save(self, state: AutoscalerState) -> None:
        if self.faults.now("crash"):
            raise Crash
        self.saved = state
        if self.faults.now("crash"):
            raise Crash

    def _done(self, request: PowerRequest) -> None:
        if self.faults.now("crash"):
            raise Crash
        self.requests.remove(request)

    def _release(self) -> None:
        """As `requeue_release.release`, with the same decisions."""
        assert self.autoscaler
        start, now = datetime(2026, 1, 1), self.clock.now
        held = {
            str(job.id): job
            for job in self.slurm.jobs
            if job.delayed and not job.ends and not job.nodes and job.eligible > now
        }
        waiting = tuple(
            RequeuedJob(
                job_id=key,
                restarts=job.restarts,
                eligible=start + timedelta(seconds=job.eligible),
                queues=(job.queue,),
            )
            for key, job in held.items()
        )
        cold = self.autoscaler.state.backoffs
        closed = {
            queue.name: ClosedQueue(until=start + timedelta(seconds=until), reason=why_unavailable(queue, cold, now))
            for queue in self.plan.queues
            if (until := available_at(queue, cold, now)) is not None
        }
        starts, self._since = to_start(waiting, self._since, closed, start + timedelta(seconds=now))
        for one in starts:
            for key in one.job_ids:
                held[key].eligible = now if one.at is None else (one.at - start).total_seconds()


def run_simulation(seed: int) -> Simulation:
    """Run the simulation of this seed to its end."""
    simulation = new_simulation(seed)
    simulation.clock.run(END)
    return simulation


def new_simulation(seed: int) -> Simulation:
    """The simulation of this seed before its start."""
    rng = random.Random(seed)
    train = _queue(plans.train(), rng, "train", efa=True)
    cpu = _queue(plans.cpu(), rng, "cpu", efa=False)
    reservations = dict(_reservations(random.Random(f"reserved for {seed}"), (train, cpu)))
    plan = plans.dev(_with_reservations(train, reservations), _with_reservations(cpu, reservations))
    offers = [offer.key for queue in plan.queues for offer in queue.offers]
    clock = Clock()
    is_calm = rng.random() < 0.2  # no faults, many jobs and changing plans: everything happens in time
    faults = Faults(rng=rng, listed=() if is_calm else drawn(rng, offers), age=lambda: clock.age)
    ec2 = SimEc2(clock=clock, rng=rng, faults=faults, reservations=reservations)
    templates = {key: DeployedTemplate(id=key, version="1") for key in offers}
    requests: list[Callable[[str, Sequence[str], Sequence[Job]], None]] = []
    slurm = SimSlurm(
        clock=clock, faults=faults, ec2=ec2, queues=plan.queues, request=lambda *given: requests[0](*given)
    )
    simulation = Simulation(
        seed=seed,
        clock=clock,
        faults=faults,
        ec2=ec2,
        slurm=slurm,
        plan=plan,
        deployed=replace(plans.deployed(), templates=templates),
    )
    requests.append(simulation.add_request)
    ec2.booted, ec2.sick, ec2.works = slurm.register, slurm.drain, slurm.works
    most = {queue.name: max(1, queue.min_nodes) for queue in plan.queues}
    for number in range(1, 24 if is_calm else rng.randint(2, 10)):
        queue = rng.choice(plan.queues)
        most[queue.name] = max(most[queue.name], _submit(simulation, rng, number, queue))
    if rng.random() < 0.5:
        clock.after(rng.uniform(500, QUIET_AFTER), simulation.change)
    if rng.random() < 0.5:
        name = rng.choice(list(most))
        clock.after(rng.uniform(500, QUIET_AFTER), lambda: simulation.shrink(name, most[name]))
    for _ in range(rng.choice((4, 10)) if is_calm else rng.choice((0, 1))):
        clock.after(rng.uniform(500, QUIET_AFTER), simulation.reverse_offers)
    clock.after(1.0, simulation.step)
    return simulation


def _submit(simulation: Simulation, rng: random.Random, number: int, queue: QueuePlan) -> int:
    """Submit a job later; return its number of nodes."""
    at = rng.uniform(0, QUIET_AFTER * 0.8)
    size = rng.randint(1, queue.max_nodes)
    seconds = rng.choice((60.0, 600.0, 2400.0))

    def submit() -> None:
        simulation.slurm.jobs.append(
            Job(id=number, queue=queue.name, size=size, seconds=seconds, eligible=simulation.clock.now)
        )

    simulation.clock.after(at, submit)
    return size


def _queue(like: QueuePlan, rng: random.Random, name: str, *, efa: bool) -> QueuePlan:
    keys = [f"{name}-{number}" for number in range(1, rng.randint(1, 3) + 1)]
    return replace(
        like,
        name=name,
        efa=efa,
        min_nodes=rng.choice((0, 0, 1)),
        max_nodes=rng.randint(2, 6),
        suspend_after_s=rng.choice((120, 600)),
        offers=tuple(_offer(key, rng.choice(("az1", "az2"))) for key in keys),
    )


def _reservations(rng: random.Random, queues: Sequence[QueuePlan]) -> Iterator[tuple[str, Reservation]]:
    """A reservation for the first offer of some queues. Without another offer it has room for all nodes.

    `rng`: one of their own, so that the same seed without reservations is the same simulation as before.
    """
    for queue in queues:
        least = queue.max_nodes if len(queue.offers) == 1 else 1
        made = Reservation(
            id=f"cr-{queue.name}",
            total=rng.randint(least, queue.max_nodes),
            cleaned_s=rng.choice((60.0, 300.0, 540.0, 900.0)),
        )
        if rng.random() < 0.25:
            yield queue.offers[0].key, made


def _with_reservations(queue: QueuePlan, reservations: Mapping[str, Reservation]) -> QueuePlan:
    offers = (
        replace(offer, market=Market.CAPACITY_BLOCK, reservation=reservations[offer.key].id)
        if offer.key in reservations
        else offer
        for offer in queue.offers
    )
    return replace(queue, offers=tuple(offers))


def _offer(key: str, zone: str) -> OfferPlan:
    return OfferPlan(
        key=key,
        pool=0,
        market=Market.ON_DEMAND,
        zone_id=zone,
        max_price_usd_per_hour=None,
        placement_group=None,
    )
