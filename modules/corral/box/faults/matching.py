"""Decide which fault applies to a call or launch, and which faults remain afterwards. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TypeVar

from corral.box.faults.records import Fault
from corral.model.enums import Market

Kind = TypeVar("Kind", bound=Fault)
_SCOPE_FIELDS = ("type", "zone", "market")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultContext:
    """A call or launch that a fault may apply to. `call`: SERVICE:ACTION. `names`: its queue, nodes and instance."""

    call: str = ""
    type: str | None = None
    zone: str | None = None
    market: Market | None = None
    names: frozenset[str] = frozenset()


def first_match(faults: Iterable[Fault], kind: type[Kind], context: FaultContext, now: datetime) -> Kind | None:
    """The oldest fault of this kind that matches."""
    return next((fault for fault in faults if isinstance(fault, kind) and matches(fault, context, now)), None)


def matches(fault: Fault, context: FaultContext, now: datetime) -> bool:
    """True if the fault is active and its scope covers this context."""
    scope, call = fault.scope, getattr(fault, "call", None)
    return (
        is_active(fault, now)
        and all(getattr(scope, name) in (None, getattr(context, name)) for name in _SCOPE_FIELDS)
        and (scope.target is None or scope.target in context.names)
        and (call is None or fnmatchcase(context.call, call))
    )


def is_active(fault: Fault, now: datetime) -> bool:
    """True until the fault's duration is over or its count is used up."""
    return fault.hits_left != 0 and (fault.until is None or now < fault.until)


def after_hit(faults: Iterable[Fault], hit: Fault) -> tuple[Fault, ...]:
    """The faults after this one was applied once; without it if that was the last time."""
    if hit.hits_left is None:
        return tuple(faults)
    return replaced(faults, hit, replace(hit, hits_left=hit.hits_left - 1))


def replaced(faults: Iterable[Fault], old: Fault, new: Fault) -> tuple[Fault, ...]:
    """The faults with one replaced by another, without those that are used up."""
    changed = (new if fault is old else fault for fault in faults)
    return tuple(fault for fault in changed if fault.hits_left != 0)
