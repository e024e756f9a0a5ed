"""What a table of a catalogue file may hold: its keys, and what each value must be. Every mistake is found, not one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corral.catalog.names import suggestion
from corral.catalog.problems import Finding, Path

_SHOWN = 60  # characters of a wrong value; more would hide the message
Check = Callable[[Path, Any], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a table. `what` says in an error what is missing; None where it may be."""

    check: Check
    what: str | None = None


Shape = Mapping[str, Key]


def table(shape: Shape) -> Check:
    """A table with these keys and no others."""

    def check(path: Path, value: Any) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield Finding(path, f"expected a table ({', '.join(shape)}), found {shown(value)}")
            return
        for key, held in value.items():
            if key in shape:
                yield from shape[key].check((*path, key), held)
            else:
                yield Finding((*path, key), f"is not a known key - {suggestion(key, shape)}")
        for key, wanted in shape.items():
            if wanted.what and key not in value:
                yield Finding((*path, key), f"is missing - {wanted.what}")

    return check


def tables(key_check: Check, each: Check) -> Check:
    """A table of tables: any keys that pass the first check, each holding what passes the second."""

    def check(path: Path, value: Any) -> Iterator[Finding]:
        if not isinstance(value, dict):
            yield Finding(path, f"expected tables, found {shown(value)}")
            return
        for key, held in value.items():
            yield from key_check((*path, key), key)
            yield from each((*path, key), held)

    return check


def items(each: Check) -> Check:
    """A list that is not empty, of what passes the check."""

    def check(path: Path, value: Any) -> Iterator[Finding]:
        if not isinstance(value, list):
            yield Finding(path, f"expected a list, found {shown(value)}")
        elif not value:
            yield Finding(path, "is empty - give at least one")
        else:
            for number, item in enumerate(value):
                yield from each((*path, number), item)

    return check


def whole(smallest: int) -> Check:
    """A whole number, this or more."""

    def check(path: Path, value: Any) -> Iterator[Finding]:
        if isinstance(value, bool) or not isinstance(value, int):
            yield Finding(path, f"expected a whole number, found {shown(value)}")
        elif value < smallest:
            yield Finding(path, f"{value} is too small - use {smallest} or more")

    return check


def positive(path: Path, value: Any) -> Iterator[Finding]:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield Finding(path, f"expected a number, found {shown(value)}")
    elif not 0 < value < float("inf"):
        yield Finding(path, f"{value} is not possible - use more than 0")


def text(pattern: str = r".+", like: str = "") -> Check:
    """Text of this form; `like` is an example."""

    def check(path: Path, value: Any) -> Iterator[Finding]:
        if not isinstance(value, str):
            yield Finding(path, f"expected text, found {shown(value)}")
        elif not re.fullmatch(pattern, value):
            yield Finding(path, f"{shown(value)} is not possible - {f'write it like {like}' if like else 'say more'}")

    return check


def word(*known: str) -> Check:
    """One of these words."""

    def check(path: Path, value: Any) -> Iterator[Finding]:
        if value not in known:
            hint = suggestion(value if isinstance(value, str) else "", known)
            yield Finding(path, f"{shown(value)} is not possible - {hint}")

    return check


def shown(value: Any) -> str:
    """A wrong value as it looks in TOML, on one line."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return str(value)[:_SHOWN]
