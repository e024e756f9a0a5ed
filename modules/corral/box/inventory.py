"""Everything that exists in the cloud, by service and kind, tagged or not.

The walk is over whatever collections moto's backends hold, so that a kind nobody thought of is counted under its class
name rather than forgotten; `inventory_kinds` names the usual ones and says what is mere bookkeeping. What a new account
has too is left out: it is found by asking a new backend of the same class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import Any

from corral.box import state
from corral.box.control import REGION
from corral.box.inventory_kinds import (
    BOOKKEEPING,
    BOOKKEEPING_SERVICES,
    IDENTITY,
    KINDS,
    SPECIAL,
    UNIQUE_IDS,
    is_gone,
    is_standard,
)

GLOBAL = ("aws", REGION)  # regions whose ids are shown without the region before them
COLLECTION = (Mapping, list, Set, tuple)


def take() -> dict[str, list[str]]:
    """Sorted ids by `service/kind`; only kinds of which something exists."""
    found: dict[str, set[str]] = {}
    for _, account, region, backend in state.backends():
        for kind, identity in _of_backend(backend, account):
            found.setdefault(kind, set()).add(identity if region in GLOBAL else f"{region}/{identity}")
    return {kind: sorted(found[kind]) for kind in sorted(found)}


def service_of(backend: Any) -> str:
    """The name of the service as in the inventory: that of moto's package."""
    for kind in type(backend).__mro__:
        if kind.__module__.startswith("moto."):
            return str(kind.__module__.split(".")[1])
    return type(backend).__name__.lower()


@cache
def fresh_paths(kind: Any, region: str, account: str) -> frozenset[tuple[str, ...]]:
    """Where a backend of a new account has something: the attribute and key, and those within what it has."""
    fresh = kind(region, account)
    outer = {(attribute, key): value for attribute, key, value in _things(fresh, service="")}
    inner = {(*path, attribute, key) for path, value in outer.items() for attribute, key, _ in _parts(value)}
    return frozenset(outer) | inner


def _of_backend(backend: Any, account: str) -> Iterator[tuple[str, str]]:
    service = service_of(backend)
    if service in BOOKKEEPING_SERVICES:
        return
    if special := SPECIAL.get(service):
        for kind, identity in special(backend):
            yield f"{service}/{kind}", identity
    fresh = fresh_paths(_class_of(backend), backend.region_name, account)
    for attribute, key, value in _things(backend, service):
        if attribute in BOOKKEEPING.get(service, ()) or is_gone(value) or is_standard(service, attribute, value):
            continue
        if (attribute, key) not in fresh:
            yield f"{service}/{_kind(service, attribute, value)}", _identity(service, attribute, key, value)
            continue
        for inner, name, part in _parts(value):  # such as a rule on the default event bus
            if (attribute, key, inner, name) not in fresh:
                yield f"{service}/{type(part).__name__}", f"{key}/{name}"


def _class_of(backend: Any) -> Any:
    return type(backend)


def _things(holder: Any, service: str) -> Iterator[tuple[str, str, Any]]:
    """What an object holds in its collections: attribute, key and thing."""
    for attribute, held in _collections(holder):
        for key, value in _elements(held, service):
            yield attribute, key, value


def _parts(thing: Any) -> Iterator[tuple[str, str, Any]]:
    """What a thing holds that is a thing of its own rather than a property."""
    if _is_object(thing):
        yield from (part for part in _things(thing, service="") if _is_object(part[2]))


def _is_object(value: Any) -> bool:
    return type(value).__module__.startswith(("moto.", "corral."))


def _collections(backend: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(backend).items() if isinstance(value, COLLECTION)]


def _elements(held: Any, service: str) -> Iterator[tuple[str, Any]]:
    """The things in a collection with their keys; collections in collections are opened."""
    if not isinstance(held, Mapping):
        for number, value in enumerate(list(held)):
            yield _name(value) or (f"#{number}" if _is_object(value) else str(value)), value
        return
    for key, value in list(held.items()):
        if not isinstance(value, COLLECTION) or _describes_one(value):
            yield str(key), value
            continue
        for inner, thing in _elements(value, service):
            yield (inner if service in UNIQUE_IDS or str(key) in inner else f"{key}/{inner}"), thing


def _describes_one(value: Any) -> bool:
    """True for a mapping of plain values: it is a thing itself, not a collection of things."""
    return isinstance(value, Mapping) and bool(value) and not _holds_objects(value)


def _holds_objects(value: Any) -> bool:
    if isinstance(value, COLLECTION):
        return any(_holds_objects(inner) for inner in (value.values() if isinstance(value, Mapping) else value))
    return _is_object(value)


def _name(value: Any) -> str | None:
    for attribute in ("id", "arn", "name"):
        found = getattr(value, attribute, None)
        if isinstance(found, str) and found:
            return found
    return None


def _kind(service: str, attribute: str, value: Any) -> str:
    if known := KINDS.get(service, {}).get(attribute):
        return known
    return attribute.strip("_") if type(value).__module__ == "builtins" else type(value).__name__


def _identity(service: str, attribute: str, key: str, value: Any) -> str:
    called = getattr(value, IDENTITY[service, attribute]) if (service, attribute) in IDENTITY else key
    scheduled = getattr(value, "key_state", "") == "PendingDeletion" or getattr(value, "deleted_date", None)
    return f"{called} (scheduled for deletion)" if scheduled else str(called)
