"""What can go wrong on AWS on request: a frozen record for each fault that stays in force. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class FaultError(Exception):
    """A fault that cannot be made; its text is a sentence."""


class Market(StrEnum):
    """How an instance is paid for, in the words of a queue's capacity."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVATION = "reservation"
    CAPACITY_BLOCK = "capacity-block"


class Death(StrEnum):
    """Why an instance dies after its launch."""

    CAPACITY = "capacity"
    SPOT = "spot"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which launches or machines a fault is about; what is None is any. `of`: a queue, a node or an instance id."""

    type: str | None = None
    zone: str | None = None
    market: Market | None = None
    of: str | None = None


ANYWHERE = Where()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong until its time ends, or it has struck as often as it may; None: until it is cleared."""

    where: Where = ANYWHERE
    left: int | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCapacity(Fault):
    """RunInstances finds no capacity. `room`: for so many instances there still is some."""

    room: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiesAfterLaunch(Fault):
    """An instance is accepted, stays pending, and is dead after this time."""

    after: timedelta = timedelta(seconds=1)
    reason: Death = Death.CAPACITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle(Fault):
    """A call is refused because there were too many. `call`: SERVICE:ACTION, where * is any letters."""

    call: str = "ec2:RunInstances"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse(Fault):
    """A call is refused with this error. `call`: as in Throttle; `message`: None for the words that AWS has."""

    code: str
    call: str = "ec2:RunInstances"
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowBoot(Fault):
    """A new machine starts, and its user data only after this time."""

    after: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HangBoot(Fault):
    """A new machine starts, and its user data never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late(Fault):
    """A new instance is not shown for this time, and calls that name it find none."""

    after: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang(Fault):
    """The processes of the machine `where.of` stand still; EC2 shows it running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition(Fault):
    """The network card of the machine `where.of` is unplugged; the machine goes on."""


KINDS: Mapping[str, type[Fault]] = {
    "no-capacity": NoCapacity,
    "dies-after-launch": DiesAfterLaunch,
    "throttle": Throttle,
    "refuse": Refuse,
    "slow-boot": SlowBoot,
    "hang-boot": HangBoot,
    "late": Late,
    "hang": Hang,
    "partition": Partition,
}


def kind_of(fault: Fault) -> str:
    """The name of the fault, as commands have it."""
    return next(name for name, kind in KINDS.items() if type(fault) is kind)
