"""The kinds of values that Slurm tells apart, and how it reads each. Which key is of which kind is `slurm_values`'."""

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
    """Whole numbers between these. INFINITE is `all_ones`; `scaled`: 5K is 5120."""

    least: int
    most: int
    all_ones: int
    scaled: bool

    def read(self, value: str) -> int | None:
        """The number, whatever its size; None for what Slurm does not read as one."""
        if value.lower() in _ENDLESS:
            return self.all_ones
        found = _NUMBER.fullmatch(value)
        if found is None or (found[3] and not self.scaled):
            return None
        size = int(found[2], _base(found[2])) * (1024 if found[3] else 1)
        return -size if found[1] else size


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """These words, in any case unless `exact`: of each set in `alone` one at most, those in `sole` without others."""

    words: tuple[str, ...]
    several: bool = False
    exact: bool = False
    numbers: bool = False
    begins: bool = False
    alone: tuple[frozenset[str], ...] = ()
    sole: tuple[str, ...] = ()

    def stray(self, value: str) -> str | None:
        """The first word that is none of these."""
        return next((word for word in self.split(value) if not self._takes(word)), None)

    def clash(self, value: str) -> tuple[str, str] | None:
        """The first two words of which only one may be there."""
        pairs = combinations(self.split(value), 2)
        return next(((one, other) for one, other in pairs if self._excludes(one, other)), None)

    def crowded(self, value: str) -> str | None:
        """The word that stands without others, and is not all of the value."""
        return next((word for word in self.split(value) if word in self.sole and word != value), None)

    def _excludes(self, one: str, other: str) -> bool:
        return any({one.lower(), other.lower()} <= group for group in self.alone)

    def split(self, value: str) -> tuple[str, ...]:
        """The words in the value."""
        return tuple(word for word in value.split(",") if word) if self.several else (value,)

    def _takes(self, word: str) -> bool:
        if self.numbers and "0" <= word[:1] <= "9":
            return True
        given, known = (word, self.words) if self.exact else (word.lower(), tuple(map(str.lower, self.words)))
        return given in known or (self.begins and given.startswith(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Minutes, or 1-12:00:00 and what is shorter. `endless`: INFINITE, UNLIMITED and -1 as well."""

    least_min: int
    most_min: int | None
    endless: bool
    negative: bool

    def is_endless(self, value: str) -> bool:
        """True for what stands for no limit, where there may be none."""
        return self.endless and (value == "-1" or value.lower() in _ENDLESS)

    def read(self, value: str) -> int | None:
        """The minutes, rounded up; None for what Slurm does not read as a time."""
        if self.negative and re.fullmatch(r"-[0-9]+", value):
            return 0
        found = next((found for pattern in _TIMES if (found := pattern.fullmatch(value))), None)
        return None if found is None else -(-_seconds(found) // 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Text whose items between commas each match a pattern, or that is `instead`; `like` says what is right.

    `single`: a comma is a letter like others, so that all of the text is one item.
    """

    item: re.Pattern[str]
    single: bool = False
    instead: str | None
    like: str

    def stray(self, value: str) -> str | None:
        """The first item that does not."""
        if value.lower() == self.instead:
            return None
        items = [value] if self.single else value.split(",")
        return next((item for item in items if item and not self.item.fullmatch(item)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugins:
    """Plugins by name, as files of Slurm's own packages; `bare`: also without `kind/`."""

    names: tuple[str, ...]
    several: bool
    bare: bool

    def stray(self, value: str) -> str | None:
        """The first name that none of these has."""
        known = {name for full in self.names for name in self._forms(full)}
        given = [name for name in value.split(",") if name] if self.several else [value]
        return next((name for name in given if name not in known), None)

    def like(self, name: str) -> tuple[str, ...]:
        """The names in the form of this one, with or without what stands before the slash."""
        bare = self.bare and "/" not in name
        return tuple(full.partition("/")[2] if bare and "/" in full else full for full in self.names)

    def _forms(self, full: str) -> tuple[str, ...]:
        bare = full.partition("/")[2]
        return (full, bare) if self.bare else (full,)


@dataclass(frozen=True, slots=True)
class Switch:
    """Yes or no."""

    def takes(self, value: str) -> bool:
        """True if Slurm reads it as one of both."""
        return value.lower() in {"yes", "up", "true", "1", "no", "down", "false", "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A number within a list of settings, `max_script_size=5`, and what it is at most."""

    name: str
    most: int

    def read(self, value: str) -> int | None:
        """The number after the first `name=` in the value, if there is one; Slurm stops at what is no digit."""
        found = re.search(rf"{self.name}=(\d+)", value, re.ASCII | re.IGNORECASE)
        return int(found[1]) if found else None


Rule = Numbers | Words | Times | Shape | Plugins | Switch | Setting


def _base(digits: str) -> int:
    if digits[:2].lower() == "0x":
        return 16
    return 8 if digits.startswith("0") else 10


def _seconds(time: re.Match[str]) -> int:
    units = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
    return sum(int(digits) * units[name] for name, digits in time.groupdict().items() if digits)
