"""List everything that exists in the cloud, by service and kind, tagged or not.

It covers all collections of moto's backends; an unknown kind is listed under its class name. `resource_types` names the
known kinds and the internal collections. Resources of every new account are left out: a fresh backend has them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import Any

from corral.box.account import REGION
from corral.box.resource_types import (
    BOOKKEEPING,
    BOOKKEEPING_SERVICES,
    CUSTOM_LISTINGS,
    KINDS,
    NAME_ATTRIBUTES,
    UNIQUE_IDS,
    is_default,
    is_deleted,
)
from corral.box.state import saved_state

GLOBAL = ("aws", REGION)  # regions whose ids are shown without the region before them
COLLECTION = (Mapping, list, Set, tuple)


def list_resources() -> dict[str, list[str]]:
    """Sorted ids by `service/kind`, without empty kinds."""
    found: dict[str, set[str]] = {}
    for _, account, region, backend in saved_state.backends():
        for kind, identity in _of_backend(backend, account):
            found.setdefault(kind, set()).add(identity if region in GLOBAL else f"{region}/{identity}")
    return {kind: sorted(found[kind]) for kind in sorted(found)}


def service_of(backend: Any) -> str:
    """The service's name in the inventory: the name of moto's package."""
    for kind in type(backend).__mro__:
        if kind.__module__.startswith("moto."):
            return str(kind.__module__.split(".")[1])
    return type(backend).__name__.lower()


@cache
def default_paths(kind: Any, region: str, account: str) -> frozenset[tuple[str, ...]]:
    """The paths of the resources in a new account's backend: attribute and key, also of nested resources."""
    fresh = kind(region, account)
    outer = {(attribute, key): value for attribute, key, value in _things(fresh, service="")}
    inner = {(*path, attribute, key) for path, value in outer.items() for attribute, key, _ in _parts(value)}
    return frozenset(outer) | inner


def _of_backend(backend: Any, account: str) -> Iterator[tuple[str, str]]:
    service = service_of(backend)
    if service in BOOKKEEPING_SERVICES:
        return
    if special := CUSTOM_LISTINGS.get(service):
        for kind, identity in special(backend):
            yield f"{service}/{kind}", identity
    fresh = default_paths(_class_of(backend), backend.region_name, account)
    for attribute, key, value in _things(backend, service):
        if attribute in BOOKKEEPING.get(service, ()) or is_deleted(value) or is_default(service, attribute, value):
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
    """The contents of an object's collections: attribute, key and value."""
    for attribute, held in _collections(holder):
        for key, value in _elements(held, service):
            yield attribute, key, value


def _parts(thing: Any) -> Iterator[tuple[str, str, Any]]:
    """The nested resources of a resource."""
    if _is_object(thing):
        yield from (part for part in _things(thing, service="") if _is_object(part[2]))


def _is_object(value: Any) -> bool:
    return type(value).__module__.startswith(("moto.", "corral."))


def _collections(backend: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in vars(backend).items() if isinstance(value, COLLECTION)]


def _elements(held: Any, service: str) -> Iterator[tuple[str, Any]]:
    """The elements of a collection with their keys, also those of nested collections."""
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
    """True for a mapping of plain values: it is a resource itself, not a collection."""
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
    called = getattr(value, NAME_ATTRIBUTES[service, attribute]) if (service, attribute) in NAME_ATTRIBUTES else key
    scheduled = getattr(value, "key_state", "") == "PendingDeletion" or getattr(value, "deleted_date", None)
    return f"{called} (scheduled for deletion)" if scheduled else str(called)
