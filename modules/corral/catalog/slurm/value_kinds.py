"""The kinds of values in slurm.conf, and how Slurm parses each. `conf_values` maps keys to kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

_NUMBER = re.compile(r"(-?)\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)([kK]?)", re.ASCII)
_SHORT = r"(?:(?P<hours>\d+):(?=\d+:))?(?P<minutes>\d+)(?::(?P<seconds>\d+))?"
_LONG = r"(?P<days>\d+)-(?:(?P<hours>\d+)(?::(?P<minutes>\d+)(?::(?P<seconds>\d+))?)?)?"
_TIMES = tuple(re.compile(pattern, re.ASCII) for pattern in (_SHORT, _LONG))
_ENDLESS = frozenset({"infinite", "unlimited"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Whole numbers in a range. INFINITE means `all_ones`; `scaled`: 5K means 5120."""

    minimum: int
    maximum: int
    all_ones: int
    scaled: bool

    def read(self, value: str) -> int | None:
        """Return the number, of any size; None if Slurm does not accept it as a number."""
        if value.lower() in _ENDLESS:
            return self.all_ones
        found = _NUMBER.fullmatch(value)
        if found is None or (found[3] and not self.scaled):
            return None
        size = int(found[2], _base(found[2])) * (1024 if found[3] else 1)
        return -size if found[1] else size


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Keywords, in any case unless `exact`: at most one of each set in `alone`; those in `sole` without others."""

    words: tuple[str, ...]
    several: bool = False
    exact: bool = False
    numbers: bool = False
    begins: bool = False
    alone: tuple[frozenset[str], ...] = ()
    sole: tuple[str, ...] = ()

    def stray(self, value: str) -> str | None:
        """Return the first unknown word."""
        return next((word for word in self.split(value) if not self._takes(word)), None)

    def clash(self, value: str) -> tuple[str, str] | None:
        """Return the first two words that exclude each other."""
        pairs = combinations(self.split(value), 2)
        return next(((one, other) for one, other in pairs if self._excludes(one, other)), None)

    def crowded(self, value: str) -> str | None:
        """Return a word that must be alone but is not."""
        return next((word for word in self.split(value) if word in self.sole and word != value), None)

    def _excludes(self, one: str, other: str) -> bool:
        return any({one.lower(), other.lower()} <= group for group in self.alone)

    def split(self, value: str) -> tuple[str, ...]:
        """Return the words in the value."""
        return tuple(word for word in value.split(",") if word) if self.several else (value,)

    def _takes(self, word: str) -> bool:
        if self.numbers and "0" <= word[:1] <= "9":
            return True
        given, known = (word, self.words) if self.exact else (word.lower(), tuple(map(str.lower, self.words)))
        return given in known or (self.begins and given.startswith(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Minutes, or 1-12:00:00 and shorter forms. `endless`: also INFINITE, UNLIMITED and -1."""

    minimum_minutes: int
    maximum_minutes: int | None
    endless: bool
    negative: bool

    def is_endless(self, value: str) -> bool:
        """Return whether the value means no limit, and the key allows that."""
        return self.endless and (value == "-1" or value.lower() in _ENDLESS)

    def read(self, value: str) -> int | None:
        """Return the minutes, rounded up; None if Slurm does not accept it as a time."""
        if self.negative and re.fullmatch(r"-[0-9]+", value):
            return 0
        found = next((found for pattern in _TIMES if (found := pattern.fullmatch(value))), None)
        return None if found is None else -(-_seconds(found) // 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Comma-separated items that each match a pattern, or the text `instead`; `like` describes valid values.

    `single`: the whole text is one item, commas included.
    """

    item: re.Pattern[str]
    single: bool = False
    instead: str | None
    like: str

    def stray(self, value: str) -> str | None:
        """Return the first item that does not match."""
        if value.lower() == self.instead:
            return None
        items = [value] if self.single else value.split(",")
        return next((item for item in items if item and not self.item.fullmatch(item)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """Names of plugins in Slurm's own packages; `bare`: also without `kind/`."""

    names: tuple[str, ...]
    several: bool
    bare: bool

    def stray(self, value: str) -> str | None:
        """Return the first unknown plugin."""
        known = {name for full in self.names for name in self._forms(full)}
        given = [name for name in value.split(",") if name] if self.several else [value]
        return next((name for name in given if name not in known), None)

    def like(self, name: str) -> tuple[str, ...]:
        """Return the names in the form of this one, with or without `kind/`."""
        bare = self.bare and "/" not in name
        return tuple(full.partition("/")[2] if bare and "/" in full else full for full in self.names)

    def _forms(self, full: str) -> tuple[str, ...]:
        bare = full.partition("/")[2]
        return (full, bare) if self.bare else (full,)


@dataclass(frozen=True, slots=True)
class Switch:
    """Yes or no."""

    def takes(self, value: str) -> bool:
        """Return whether Slurm accepts the value."""
        return value.lower() in {"yes", "up", "true", "1", "no", "down", "false", "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedNumber:
    """A number within a list of settings, `max_script_size=5`, and its maximum."""

    name: str
    maximum: int

    def read(self, value: str) -> int | None:
        """Return the number after the first `name=` in the value, if any; Slurm stops at the first non-digit."""
        found = re.search(rf"{self.name}=(\d+)", value, re.ASCII | re.IGNORECASE)
        return int(found[1]) if found else None


ValueRule = Numbers | Words | Times | Shape | Plugins | Switch | NamedNumber


def _base(digits: str) -> int:
    if digits[:2].lower() == "0x":
        return 16
    return 8 if digits.startswith("0") else 10


def _seconds(time: re.Match[str]) -> int:
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    return sum(int(digits) * units[name] for name, digits in time.groupdict().items() if digits)
