"""Filters of describe actions that moto lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any


def split_filters(filters: Any, known: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The filters in `known`, and the others."""
    given = dict(filters or {})
    return {name: given.pop(name) for name in list(given) if name in known}, given


def passes_filters(thing: Any, filters: Mapping[str, Any], values: Mapping[str, Callable[[Any], Any]]) -> bool:
    """True if each filter matches one of its values, which may contain * and ?."""
    return all(
        any(fnmatchcase(str(held), wanted) for held in _as_list(values[name](thing)) for wanted in accepted)
        for name, accepted in filters.items()
    )


def _as_list(value: Any) -> list[Any]:
    return [held for held in (value if isinstance(value, list) else [value]) if held is not None]
