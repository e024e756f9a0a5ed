"""The faults that stay active: a frozen record for each kind. No logic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from corral.model.enums import Market


class FaultError(Exception):
    """A fault that cannot be created or cleared; the text is for the user."""


class LaunchFailure(StrEnum):
    """Why an instance fails after its launch."""

    CAPACITY = "capacity"
    SPOT = "spot"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultScope:
    """Which launches or instances a fault applies to; None is any. `target`: a queue, a node or an instance id."""

    type: str | None = None
    zone: str | None = None
    market: Market | None = None
    target: str | None = None


ANYWHERE = FaultScope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that stays active until `until`, or for `hits_left` more hits; None: until it is cleared."""

    scope: FaultScope = ANYWHERE
    hits_left: int | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCapacity(Fault):
    """RunInstances finds no capacity. `remaining`: the instances that still have capacity."""

    remaining: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FailAfterLaunch(Fault):
    """EC2 accepts an instance, shows it as pending, and terminates it after this time."""

    after: timedelta = timedelta(seconds=1)
    reason: LaunchFailure = LaunchFailure.CAPACITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle(Fault):
    """A call is throttled. `call`: SERVICE:ACTION, where * matches any text."""

    call: str = "ec2:RunInstances"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse(Fault):
    """A call fails with this error. `call`: as in Throttle; `message`: None for AWS's text."""

    code: str
    call: str = "ec2:RunInstances"
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowBoot(Fault):
    """A new instance starts, but its user data runs only after this time."""

    after: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HangBoot(Fault):
    """A new instance starts, but its user data never runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorError(Fault):
    """The package mirror answers a new virtual machine with errors, as long as it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayedVisibility(Fault):
    """EC2 does not show a new instance for this time; calls that name it fail."""

    after: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowTermination(Fault):
    """An instance that stops or terminates is stopping or shutting-down for this time, and uses its capacity."""

    after: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTagsOnly(Fault):
    """The tags of a launch request replace those of its template; otherwise they join them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleTags(Fault):
    """The tagging API goes on listing the resources that it has listed, also when they are deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceControlPolicy(Fault):
    """A policy of the account's organization limits all callers. `policy`: its JSON document."""

    name: str
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DisabledRegion(Fault):
    """The account has not opted in to `region`, whose services do not know its credentials."""

    region: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze(Fault):
    """The processes of the instance `scope.target` are frozen; EC2 shows it as running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCut(Fault):
    """The instance `scope.target` is cut off from the network; it keeps running."""


KINDS: Mapping[str, type[Fault]] = {
    "no-capacity": NoCapacity,
    "fail-after-launch": FailAfterLaunch,
    "throttle": Throttle,
    "refuse": Refuse,
    "slow-boot": SlowBoot,
    "hang-boot": HangBoot,
    "mirror-error": MirrorError,
    "delayed-visibility": DelayedVisibility,
    "slow-termination": SlowTermination,
    "request-tags-only": RequestTagsOnly,
    "stale-tags": StaleTags,
    "service-control-policy": ServiceControlPolicy,
    "disabled-region": DisabledRegion,
    "freeze": Freeze,
    "network-cut": NetworkCut,
}


def fault_kind(fault: Fault) -> str:
    """The fault's name on the command line."""
    return next(name for name, kind in KINDS.items() if type(fault) is kind)
