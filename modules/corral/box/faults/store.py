"""Store the active faults in the EC2 backend of the default region, which saves and resets them.

Hold the cloud's lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends

from corral.box.account import ACCOUNT, REGION
from corral.box.faults.matching import FaultContext, after_hit, first_match, is_active
from corral.box.faults.records import Fault

Kind = TypeVar("Kind", bound=Fault)


def faults() -> tuple[Fault, ...]:
    """The active faults, oldest first."""
    now = utcnow()
    held: tuple[Fault, ...] = getattr(_home(), "faults", ())
    return tuple(fault for fault in held if is_active(fault, now))


def save(held: Iterable[Fault]) -> None:
    """Replace the active faults."""
    _home().faults = tuple(held)


def consume(kind: type[Kind], context: FaultContext, now: datetime) -> Kind | None:
    """The matching fault of this kind. Uses up one of its hits."""
    held = faults()
    hit = first_match(held, kind, context, now)
    if hit is not None:
        save(after_hit(held, hit))
    return hit


def _home() -> Any:
    return ec2_backends[ACCOUNT][REGION]
