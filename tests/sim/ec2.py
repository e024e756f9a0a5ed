"""EC2 as a state machine: eventually consistent, with idempotent launches, scarce capacity and machines that end.

A place of a reservation is cleaned for a while after its machine has ended, as in a Capacity Block.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.agent.cluster.ec2_client import Ec2Error
from corral.agent.cluster.launch_errors import LaunchErrorKind
from corral.agent.cluster.models import Instance, ReservedCapacity
from corral.model.deployed import DeployedTemplate
from sim.clock import Clock
from sim.faults import Faults

BOOT_S = (60.0, 200.0)


MAX_CALLS = 100  # at one moment


class EndlessLoop(BaseException):
    """The autoscaler calls EC2 in a loop while time stands still."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A reservation or capacity block of one offer. `cleaned_s`: for how long a place is cleaned."""

    id: str
    total: int
    cleaned_s: float


@dataclass(kw_only=True)
class Machine:
    """An instance. `shown_at`: from when EC2 lists it. `hung`: it runs but does not answer."""

    id: str
    node: str
    address: str
    offer: str
    version: str
    launched_at: float
    shown_at: float
    call: int
    ended_at: float | None = None
    end_shown_at: float = 0.0
    reason: str = ""
    booted: bool = False
    hung: bool = False
    sick_at: float | None = None

    @property
    def live(self) -> bool:
        return self.ended_at is None

    @property
    def answers(self) -> bool:
        return self.live and self.booted and not self.hung


@dataclass(kw_only=True)
class SimEc2:
    """`booted`: called when a machine's slurmd starts; `sick`: when its health check fails. `works`: whether
    a job runs on it. `ended_in_use`: machines that the autoscaler has terminated under a job. `reservations`: by offer.
    """

    clock: Clock
    rng: random.Random
    faults: Faults
    booted: Callable[[Machine], None] = lambda machine: None
    sick: Callable[[Machine], None] = lambda machine: None
    works: Callable[[Machine], bool] = lambda machine: False
    ended_in_use: list[str] = field(default_factory=list)
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)
    tokens: dict[str, tuple[Machine, ...]] = field(default_factory=dict)
    calls: list[tuple[float, str, bool]] = field(default_factory=list)

    def launch(
        self,
        template: DeployedTemplate,
        nodes: Sequence[str],
        token: str,
        *,
        at_least: int,
        tags: Mapping[str, Mapping[str, str]],
    ) -> tuple[Instance, ...]:
        self._reached()
        if len(self.calls) > MAX_CALLS and self.calls[-MAX_CALLS][0] == self.clock.now:
            raise EndlessLoop
        offer = template.id
        if token in self.tokens:
            return tuple(self._shown(one, late=False) for one in self.tokens[token])
        if self.faults.now("refused", offer):
            raise Ec2Error("UnauthorizedOperation: no", LaunchErrorKind.PERMISSION)
        capacity = len(nodes)
        if self.faults.now("full", offer):
            capacity = self.rng.choice((0, 0, 0, 1, 2))
        if offer in self.reservations:
            capacity = min(capacity, self._free(offer))
        self.calls.append((self.clock.now, offer, capacity >= at_least))
        if capacity < at_least:
            code = "ReservationCapacityExceeded" if offer in self.reservations else "InsufficientInstanceCapacity"
            raise Ec2Error(f"{code}: no", LaunchErrorKind.CAPACITY)
        made = tuple(self._machine(node, template) for node in nodes[:capacity])
        self.tokens[token] = made
        if self.faults.now("twin"):
            self._machine(nodes[0], template)
        if self.faults.now("lost reply"):
            raise Ec2Error("cannot reach EC2: read timeout", LaunchErrorKind.OUTAGE)
        return tuple(self._shown(one, late=False) for one in made)

    def instances(self) -> tuple[Instance, ...]:
        self._reached()
        recent = self.clock.now - 3600
        return tuple(
            self._shown(one)
            for one in self.machines
            if one.shown_at <= self.clock.now and (one.ended_at is None or one.ended_at > recent)
        )

    def reserved_capacity(self, reservations: Sequence[str]) -> Mapping[str, ReservedCapacity]:
        self._reached()
        return {
            one.id: ReservedCapacity(total=one.total, free=0 if self.faults.now("full", offer) else self._free(offer))
            for offer, one in self.reservations.items()
            if one.id in reservations
        }

    def terminate(self, instance_ids: Sequence[str]) -> None:
        self._reached()
        known = {one.id: one for one in self.machines if one.shown_at <= self.clock.now}
        late = [one for one in instance_ids if one not in known]
        for one in instance_ids:
            if one in known:
                self.ended_in_use += [one] * (known[one].live and self.works(known[one]))
                self.end(known[one], "Client.UserInitiatedShutdown")
        if late:
            raise Ec2Error("EC2 does not know them yet", LaunchErrorKind.NOT_VISIBLE)
        if self.faults.now("lost reply"):
            raise Ec2Error("cannot reach EC2: read timeout", LaunchErrorKind.OUTAGE)

    def end(self, machine: Machine, reason: str) -> None:
        if machine.live:
            machine.ended_at, machine.reason = self.clock.now, reason
            machine.end_shown_at = self.clock.now + (self.rng.uniform(0, 60) if self.faults.now("late") else 0)

    def of(self, node: str) -> list[Machine]:
        """The running machines of a node."""
        return [one for one in self.machines if one.node == node and one.live]

    def _free(self, offer: str) -> int:
        used = sum(1 for one in self.machines if one.offer == offer and (one.live or self._is_cleaned(one)))
        return self.reservations[offer].total - used

    def _is_cleaned(self, machine: Machine) -> bool:
        held = self.reservations.get(machine.offer)
        return bool(held and machine.ended_at is not None and self.clock.now < machine.ended_at + held.cleaned_s)

    def _reached(self) -> None:
        if self.faults.now("throttled"):
            raise Ec2Error("RequestLimitExceeded: slow down", LaunchErrorKind.THROTTLE)
        if self.faults.now("outage"):
            raise Ec2Error("cannot reach EC2: no route", LaunchErrorKind.OUTAGE)

    def _machine(self, node: str, template: DeployedTemplate) -> Machine:
        number, now = len(self.machines) + 1, self.clock.now
        made = Machine(
            id=f"i-{number:08x}",
            node=node,
            address=f"10.0.{number // 250}.{number % 250}",
            offer=template.id,
            version=template.version,
            launched_at=now,
            shown_at=now + (self.rng.uniform(0, 60) if self.faults.now("late") else 0),
            call=len(self.calls),
        )
        self.machines.append(made)
        boots_in = self.rng.uniform(*BOOT_S)
        if self.faults.now("dies", template.id):
            reason = self.rng.choice(("Server.InsufficientInstanceCapacity", "Server.SpotInstanceTermination"))
            self.clock.after(self.rng.uniform(1, 60), lambda: self.end(made, reason))
        elif self.faults.now("does not boot", template.id):
            self.clock.after(boots_in, lambda: self.end(made, "Client.InstanceInitiatedShutdown"))
        elif not self.faults.now("hangs at boot", template.id):
            self.clock.after(boots_in, lambda: self._boot(made))
        return made

    def _boot(self, machine: Machine) -> None:
        if not machine.live:
            return
        machine.booted = True
        self.booted(machine)
        later = self.rng.uniform(10, 2000)
        if self.faults.now("dies later"):
            self.clock.after(later, lambda: self.end(machine, "Server.InternalError"))
        elif self.faults.now("hangs later"):
            self.clock.after(later, lambda: setattr(machine, "hung", True))
        elif self.faults.now("sick"):
            self.clock.after(later, lambda: self.sick(machine))

    def _shown(self, machine: Machine, *, late: bool = True) -> Instance:
        ended = machine.ended_at is not None and (not late or machine.end_shown_at <= self.clock.now)
        return Instance(
            instance_id=machine.id,
            node=machine.node,
            state=("shutting-down" if self._is_cleaned(machine) else "terminated") if ended else "running",
            address=machine.address,
            offer=machine.offer,
            version=machine.version,
            launched_at=machine.launched_at,
            reason=machine.reason if ended else "",
        )
