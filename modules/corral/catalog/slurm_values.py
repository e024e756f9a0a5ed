"""What slurmctld takes as the value of a key of slurm.conf: its type in Slurm's own tables, and what is checked beyond.

Which keys there are is `slurm_settings`', how each kind of value is read `slurm_value_kinds`'; what is said of a value
that is not taken is `spec`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.slurm_releases import OLDEST, Release, parse_release
from corral.catalog.slurm_settings import Place
from corral.catalog.slurm_value_kinds import Numbers, Plugins, Rule, Setting, Shape, Switch, Times, Words
from corral.catalog.tables import read_toml

_DATA = "slurm_values.toml"


class Type(StrEnum):
    """How Slurm reads a value. LINES: a line of its own, of which there may be several."""

    TEXT = "text"
    BOOLEAN = "boolean"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    LINES = "lines"


_MOST = MappingProxyType({Type.UINT16: 2**16 - 1, Type.UINT32: 2**32 - 1, Type.UINT64: 2**64 - 1})


def value_rules(release: Release, place: Place, key: str) -> tuple[Rule, ...]:
    """What this release checks of the value of a key at this place, the narrowest first; nothing for any other text."""
    return tuple(rule for since, rule in _rules().get((place, key.lower()), ()) if release >= since)


def read_number(place: Place, key: str, value: str) -> int | None:
    """The number that a key has with this value; None where Slurm does not read it as one."""
    return next((rule.read(value) for rule in value_rules(OLDEST, place, key) if isinstance(rule, Numbers)), None)


def read_minutes(place: Place, key: str, value: str) -> int | None:
    """The minutes that a key has with this value, rounded up; None where there is no limit, or no time."""
    return next((rule.read(value) for rule in value_rules(OLDEST, place, key) if isinstance(rule, Times)), None)


@cache
def value_types(place: Place) -> Mapping[str, Type]:
    """The types of the keys that are not text, by key as Slurm writes it."""
    rows = read_toml(_DATA)["types"][place.name.lower()]
    return MappingProxyType({key: Type(name) for name, keys in rows.items() for key in keys})


@cache
def _rules() -> Mapping[tuple[Place, str], tuple[tuple[Release, Rule], ...]]:
    found: dict[tuple[Place, str], tuple[tuple[Release, Rule], ...]] = {}
    for place, key, since, rule in _rows(read_toml(_DATA)):
        found[place, key.lower()] = (*found.get((place, key.lower()), ()), (since, rule))
    return MappingProxyType(found)


def _rows(data: Mapping[str, Any]) -> Iterator[tuple[Place, str, Release, Rule]]:
    for kind, read in _READ.items():
        for row in data[kind]:
            for key in row.get("keys") or [row["key"]]:
                yield _place(row), key, _since(row), read({**row, "key": key})
    for place in (Place.CONF, Place.PARTITION):
        for key, type_ in value_types(place).items():
            if type_ is Type.BOOLEAN:
                yield place, key, OLDEST, Switch()
            elif type_ in _MOST:
                yield place, key, OLDEST, _numbers({"place": place.name, "key": key})


def _since(row: Mapping[str, Any]) -> Release:
    return parse_release(row["since"]) if "since" in row else OLDEST


def _place(row: Mapping[str, Any]) -> Place:
    return Place[row.get("place", "conf").upper()]


def _numbers(row: Mapping[str, Any]) -> Numbers:
    type_ = value_types(_place(row))[row["key"]]
    most, scaled = _MOST[type_], type_ is not Type.UINT16
    return Numbers(least=row.get("least", 0), most=row.get("most", most), all_ones=most, scaled=scaled)


def _words(row: Mapping[str, Any]) -> Words:
    flags = {name: row.get(name, False) for name in ("several", "exact", "numbers", "begins")}
    alone = tuple(frozenset(word.lower() for word in group) for group in row.get("alone", ()))
    return Words(words=tuple(row["words"]), alone=alone, sole=tuple(row.get("sole", ())), **flags)


def _times(row: Mapping[str, Any]) -> Times:
    endless, negative = row.get("endless", False), row.get("negative", False)
    least, most = row.get("least_min", 0), row.get("most_min")
    return Times(least_min=least, most_min=most, endless=endless, negative=negative)


def _shape(row: Mapping[str, Any]) -> Shape:
    item = re.compile(row["pattern"], re.ASCII | re.IGNORECASE)
    return Shape(item=item, instead=row.get("or"), like=row["like"], single=row.get("single", False))


def _setting(row: Mapping[str, Any]) -> Setting:
    return Setting(name=row["setting"], most=row["most"])


def _plugins(row: Mapping[str, Any]) -> Plugins:
    return Plugins(names=tuple(row["names"]), several=row.get("several", False), bare=row.get("bare", False))


_READ: Mapping[str, Callable[[Mapping[str, Any]], Rule]] = MappingProxyType(
    {
        "numbers": _numbers,
        "words": _words,
        "times": _times,
        "shapes": _shape,
        "settings": _setting,
        "plugins": _plugins,
    }
)
