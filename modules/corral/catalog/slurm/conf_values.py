"""Values that slurmctld accepts for the keys of slurm.conf: types from Slurm's own tables, and further checks.

`conf_keys` lists the keys, `value_kinds` reads each kind of value, and `spec` writes the messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.loader.data_files import read_toml
from corral.catalog.slurm.conf_keys import ConfSection
from corral.catalog.slurm.releases import OLDEST, Release, parse_release
from corral.catalog.slurm.value_kinds import NamedNumber, Numbers, Plugins, Shape, Switch, Times, ValueRule, Words

_DATA = "slurm_values.toml"


class Type(StrEnum):
    """How Slurm parses a value. LINES: a separate line, which may occur several times."""

    TEXT = "text"
    BOOLEAN = "boolean"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    LINES = "lines"


_MAX = MappingProxyType({Type.UINT16: 2**16 - 1, Type.UINT32: 2**32 - 1, Type.UINT64: 2**64 - 1})


def value_rules(release: Release, section: ConfSection, key: str) -> tuple[ValueRule, ...]:
    """Return this release's rules for the value of a key, the narrowest first; empty for free text."""
    return tuple(rule for since, rule in _rules().get((section, key.lower()), ()) if release >= since)


def read_number(section: ConfSection, key: str, value: str) -> int | None:
    """Return the number that Slurm reads from the value of this key; None if it reads none."""
    return next((rule.read(value) for rule in value_rules(OLDEST, section, key) if isinstance(rule, Numbers)), None)


def read_minutes(section: ConfSection, key: str, value: str) -> int | None:
    """Return the minutes that Slurm reads from the value of this key, rounded up; None for no limit or no time."""
    return next((rule.read(value) for rule in value_rules(OLDEST, section, key) if isinstance(rule, Times)), None)


@cache
def value_types(section: ConfSection) -> Mapping[str, Type]:
    """Return the types of the keys that are not text, by key in Slurm's spelling."""
    rows = read_toml(_DATA)["types"][section.name.lower()]
    return MappingProxyType({key: Type(name) for name, keys in rows.items() for key in keys})


@cache
def _rules() -> Mapping[tuple[ConfSection, str], tuple[tuple[Release, ValueRule], ...]]:
    found: dict[tuple[ConfSection, str], tuple[tuple[Release, ValueRule], ...]] = {}
    for section, key, since, rule in _rows(read_toml(_DATA)):
        found[section, key.lower()] = (*found.get((section, key.lower()), ()), (since, rule))
    return MappingProxyType(found)


def _rows(data: Mapping[str, Any]) -> Iterator[tuple[ConfSection, str, Release, ValueRule]]:
    for kind, read in _READ.items():
        for row in data[kind]:
            for key in row.get("keys") or [row["key"]]:
                yield _section(row), key, _since(row), read({**row, "key": key})
    for section in (ConfSection.CONF, ConfSection.PARTITION):
        for key, type_ in value_types(section).items():
            if type_ is Type.BOOLEAN:
                yield section, key, OLDEST, Switch()
            elif type_ in _MAX:
                yield section, key, OLDEST, _numbers({"section": section.name, "key": key})


def _since(row: Mapping[str, Any]) -> Release:
    return parse_release(row["since"]) if "since" in row else OLDEST


def _section(row: Mapping[str, Any]) -> ConfSection:
    return ConfSection[row.get("section", "conf").upper()]


def _numbers(row: Mapping[str, Any]) -> Numbers:
    type_ = value_types(_section(row))[row["key"]]
    largest, scaled = _MAX[type_], type_ is not Type.UINT16
    return Numbers(minimum=row.get("minimum", 0), maximum=row.get("maximum", largest), all_ones=largest, scaled=scaled)


def _words(row: Mapping[str, Any]) -> Words:
    flags = {name: row.get(name, False) for name in ("several", "exact", "numbers", "begins")}
    alone = tuple(frozenset(word.lower() for word in group) for group in row.get("alone", ()))
    return Words(words=tuple(row["words"]), alone=alone, sole=tuple(row.get("sole", ())), **flags)


def _times(row: Mapping[str, Any]) -> Times:
    endless, negative = row.get("endless", False), row.get("negative", False)
    minimum, maximum = row.get("minimum_minutes", 0), row.get("maximum_minutes")
    return Times(minimum_minutes=minimum, maximum_minutes=maximum, endless=endless, negative=negative)


def _shape(row: Mapping[str, Any]) -> Shape:
    item = re.compile(row["pattern"], re.ASCII | re.IGNORECASE)
    return Shape(item=item, instead=row.get("or"), like=row["like"], single=row.get("single", False))


def _setting(row: Mapping[str, Any]) -> NamedNumber:
    return NamedNumber(name=row["setting"], maximum=row["maximum"])


def _plugins(row: Mapping[str, Any]) -> Plugins:
    return Plugins(names=tuple(row["names"]), several=row.get("several", False), bare=row.get("bare", False))


_READ: Mapping[str, Callable[[Mapping[str, Any]], ValueRule]] = MappingProxyType(
    {
        "numbers": _numbers,
        "words": _words,
        "times": _times,
        "shapes": _shape,
        "settings": _setting,
        "plugins": _plugins,
    }
)
