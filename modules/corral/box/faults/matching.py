"""Which fault hits a call or a launch, and what is left of the faults afterwards. Pure: nothing happens here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import TypeVar

from corral.box.faults.records import Fault, Market

Kind = TypeVar("Kind", bound=Fault)
_PLACES = ("type", "zone", "market")


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What a fault may hit. `call`: SERVICE:ACTION; `names`: the queue, nodes or instance that it is about."""

    call: str = ""
    type: str | None = None
    zone: str | None = None
    market: Market | None = None
    names: frozenset[str] = frozenset()


def first(faults: Iterable[Fault], kind: type[Kind], occasion: Occasion, now: datetime) -> Kind | None:
    """The fault of this kind that hits the occasion: the oldest, where several would."""
    return next((fault for fault in faults if isinstance(fault, kind) and hits(fault, occasion, now)), None)


def hits(fault: Fault, occasion: Occasion, now: datetime) -> bool:
    """True if the fault is in force and means this occasion."""
    where = fault.where
    places = all(getattr(where, name) in (None, getattr(occasion, name)) for name in _PLACES)
    named = where.of is None or where.of in occasion.names
    call = getattr(fault, "call", None)
    return in_force(fault, now) and places and named and (call is None or fnmatchcase(occasion.call, call))


def in_force(fault: Fault, now: datetime) -> bool:
    """True until the fault's time ends, or it has struck as often as it may."""
    return fault.left != 0 and (fault.until is None or now < fault.until)


def after_hit(faults: Iterable[Fault], hit: Fault) -> tuple[Fault, ...]:
    """The faults after this one of them has struck; it is gone where that was its last time."""
    if hit.left is None:
        return tuple(faults)
    return exchanged(faults, hit, replace(hit, left=hit.left - 1))


def exchanged(faults: Iterable[Fault], old: Fault, new: Fault) -> tuple[Fault, ...]:
    """The faults with one in the place of another, and without those that strike no more."""
    changed = (new if fault is old else fault for fault in faults)
    return tuple(fault for fault in changed if fault.left != 0)
