"""Names that are not in the catalogue, and those that were probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

_LIKENESS = 0.65  # of 1; "dve" is 0.67 like "dev", and below that the hints begin to puzzle
_SUGGESTIONS = 3
_AS_NEAR = 0.005  # of likeness: a dropped digit beside another one in a name of ten letters is 0.002
_MOST_LISTED = 40  # names in a hint; all regions fit, all instance types would fill a screen


class UnknownName(Exception):
    """A name that the catalogue does not have. `kind` says what was looked for; `hint` ends the message."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str | None = None) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.nearest = nearest(name, self.known)
        super().__init__(f"{name!r} is not in the catalogue - {hint or suggestion(name, self.known)}")


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that look like this one, the likest first, then by name."""
    return tuple(other for _, other in _alike(name, known)[:_SUGGESTIONS])


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The question that names the nearest known name, and others that are about as near; None where nothing is near."""
    close = _alike(name, known)[:_SUGGESTIONS]
    meant = [repr(other) for likeness, other in close if close[0][0] - likeness < _AS_NEAR]
    return f"did you mean {' or '.join(filter(None, (', '.join(meant[:-1]), meant[-1])))}?" if meant else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """The hint that ends a message about this name: the nearest known names, or all of them."""
    names = tuple(known)
    if question := did_you_mean(name, names):
        return question
    if len(names) > _MOST_LISTED:
        return f"it has {len(names)} names, from {min(names)} to {max(names)}"
    return f"known are {', '.join(names)}" if len(names) > 1 else f"known is {names[0]}"


def _alike(name: str, known: Iterable[str]) -> list[tuple[float, str]]:
    wanted = name.lower()
    close = [(_order(wanted, other.lower()), other) for other in known if _likeness(wanted, other.lower()) >= _LIKENESS]
    return sorted(close, key=lambda found: (-found[0], found[1]))


def _likeness(one: str, other: str) -> float:
    if _is_cut(one, other):
        return 1 - abs(len(other) - len(one)) / 100  # a name cut short or run on: the nearer in length, the likelier
    return _ratio(one, other)


def _order(one: str, other: str) -> float:
    """How like two names are, where another digit and letters in another order count half."""
    likeness = _likeness(one, other)
    return likeness if _is_cut(one, other) else (likeness + _ratio(_letters(one), _letters(other))) / 2


def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _is_cut(one: str, other: str) -> bool:
    return bool(one) and (other.startswith(one) or one.startswith(other))


def _letters(name: str) -> str:
    return "".join(sorted(re.sub(r"\d", "0", name)))
