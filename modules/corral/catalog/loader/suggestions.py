"""Suggestions for unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_LIKENESS = 0.65  # of 1; "dve" and "dev" have 0.67, and hints below that confuse more than they help
_SUGGESTIONS = 3
_AS_NEAR = 0.005  # of likeness: dropping one of two adjacent digits in a name of ten letters makes 0.002
_MAX_LISTED = 40  # names in a hint; all regions fit, all instance types would fill a screen


class UnknownName(Exception):
    """A name that is not in the catalog. `kind`: what was searched for; `hint` ends the text, after the message."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.nearest = nearest(name, self.known)
        self.message, self.hint = f"{name!r} is not in the catalog", hint or suggestion(name, self.known)
        super().__init__(f"{self.message} - {self.hint}")


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names similar to this one, most similar first, then by name."""
    return tuple(other for _, other in _alike(name, known)[:_SUGGESTIONS])


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the question with the nearest known name and others about as near; None if there are none."""
    close = _alike(name, known)[:_SUGGESTIONS]
    meant = [repr(other) for likeness, other in close if close[0][0] - likeness < _AS_NEAR]
    return f"did you mean {' or '.join(filter(None, (', '.join(meant[:-1]), meant[-1])))}?" if meant else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the hint that ends a message about this name: the nearest known names, or all of them."""
    names = tuple(known)
    if question := did_you_mean(name, names):
        return question
    if len(names) > _MAX_LISTED:
        return f"it has {len(names)} names, from {min(names)} to {max(names)}"
    return f"expected one of {', '.join(names)}" if len(names) > 1 else f"expected {names[0]}"


def _alike(name: str, known: Iterable[str]) -> list[tuple[float, str]]:
    wanted = name.lower()
    close = [(_order(wanted, other.lower()), other) for other in known if _likeness(wanted, other.lower()) >= _LIKENESS]
    return sorted(close, key=lambda found: (-found[0], found[1]))


def _likeness(one: str, other: str) -> float:
    if _is_cut(one, other):
        return (
            1 - abs(len(other) - len(one)) / 100
        )  # a truncated or extended name: the closer in length, the more likely
    return _ratio(one, other)


def _order(one: str, other: str) -> float:
    """Return the similarity of two names; a different digit or swapped letters count half."""
    likeness = _likeness(one, other)
    return likeness if _is_cut(one, other) else (likeness + _ratio(_letters(one), _letters(other))) / 2


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _is_cut(one: str, other: str) -> bool:
    return bool(one) and (other.startswith(one) or one.startswith(other))


def _letters(name: str) -> str:
    return "".join(sorted(re.sub(r"\d", "0", name)))
