"""Where the faults in force are kept: in the EC2 of the box's own region, so that they are saved and reset with it.

Hold the cloud's lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends

from corral.box.control import ACCOUNT, REGION
from corral.box.faults.matching import Occasion, after_hit, first, in_force
from corral.box.faults.records import Fault

Kind = TypeVar("Kind", bound=Fault)


def faults() -> tuple[Fault, ...]:
    """The faults in force, the oldest first."""
    now = utcnow()
    held: tuple[Fault, ...] = getattr(_home(), "faults", ())
    return tuple(fault for fault in held if in_force(fault, now))


def keep(held: Iterable[Fault]) -> None:
    """From now on these faults are in force."""
    _home().faults = tuple(held)


def strike(kind: type[Kind], occasion: Occasion, now: datetime) -> Kind | None:
    """The fault of this kind that hits the occasion; it is counted as having struck."""
    held = faults()
    hit = first(held, kind, occasion, now)
    if hit is not None:
        keep(after_hit(held, hit))
    return hit


def _home() -> Any:
    return ec2_backends[ACCOUNT][REGION]
