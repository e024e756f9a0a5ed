"""Names that are not in the catalogue, and those that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

_LIKENESS = 0.65  # of 1; "dve" is 0.67 like "dev", and below that the hints begin to puzzle
_SUGGESTIONS = 3
_MOST_LISTED = 40  # names in a hint; all regions fit, all instance types would fill a screen


class UnknownName(Exception):
    """A name that the catalogue does not have. `kind` says what was looked for; `hint` ends the message."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.nearest = nearest(name, self.known)
        super().__init__(f"{name!r} is not in the catalogue - {hint or suggestion(name, self.known)}")


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that look like this one, the likest first, then by name."""
    wanted = name.lower()
    likeness = {other: _likeness(wanted, other.lower()) for other in known}
    close = [other for other, ratio in likeness.items() if ratio >= _LIKENESS]
    return tuple(sorted(close, key=lambda other: (-likeness[other], other))[:_SUGGESTIONS])


def suggestion(name: str, known: Iterable[str]) -> str:
    """The hint that ends a message about this name: the nearest known name, or all of them."""
    names = tuple(known)
    if close := nearest(name, names):
        return f"did you mean {close[0]!r}?"
    if len(names) > _MOST_LISTED:
        return f"it has {len(names)} names, from {min(names)} to {max(names)}"
    return f"known are {', '.join(names)}" if len(names) > 1 else f"known is {names[0]}"


def _likeness(one: str, other: str) -> float:
    if one and (other.startswith(one) or one.startswith(other)):
        return 1 - abs(len(other) - len(one)) / 100  # a name cut short or run on: the nearer in length, the likelier
    return SequenceMatcher(None, one, other).ratio()
