"""What is known of NCCL and EFA on EC2: variables with rules that judge them, what the plugin itself sets on a type,
and bandwidths that were measured. Judging is `plan.lint_env`'s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.instances import Vendor, instance_types
from corral.catalog.tables import read_toml

COMPONENTS = MappingProxyType(
    {"plugin": "aws-ofi-nccl", "libfabric": "libfabric", "installer": "EFA installer", "nccl": "NCCL"}
)
Version = tuple[int, ...]


class Verdict(StrEnum):
    """How a variable is judged; the first two end the command with an error."""

    WRONG = "wrong"
    HARMFUL = "harmful"
    NEEDLESS = "needless"
    FINE = "fine"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row about a variable. `since` and `before`: versions by component; all must hold, as all other conditions."""

    verdict: Verdict
    why: str
    source: str
    instead: str | None = None
    value: str | None = None
    types: str | None = None
    vendor: Vendor | None = None
    since: Mapping[str, Version] = field(default_factory=dict)
    before: Mapping[str, Version] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """What the plugin sets on the types that match, from these versions on."""

    types: str
    sets: Mapping[str, str]
    since: Mapping[str, Version]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """An EFA installer and the newest versions that it brings."""

    version: Version
    plugin: Version
    libfabric: Version
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A bus bandwidth of all_reduce_perf over EFA, at a message size."""

    instance_type: str
    nodes: int
    gb_per_s: float
    size: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableCatalogue:
    """All of it. `rules` by variable, `families` by prefix (the longest first), `newest` by component."""

    rules: Mapping[str, tuple[Rule, ...]]
    families: tuple[tuple[str, Rule], ...]
    plugin: tuple[PluginSettings, ...]
    installers: tuple[Installer, ...]
    newest: Mapping[str, Version]
    newest_source: str
    measured: tuple[Measured, ...]
    neuron_cores: Mapping[str, int]
    neuron_environment: Mapping[str, str]


def parse_version(text: str) -> Version:
    """The numbers of `1.22.0` or `2.7.0amzn2.0`. Raises ValueError where it does not begin with two of them."""
    found = re.match(r"v?(\d+(?:\.\d+)+)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no version - write it as 1.22.0")
    return tuple(int(part) for part in found[1].split("."))


def show_version(version: Version) -> str:
    """`1.22.0`."""
    return ".".join(map(str, version))


def plugin_settings(instance_type: str, versions: Mapping[str, Version] | None = None) -> Mapping[str, tuple[str, str]]:
    """What the plugin sets by itself on this type: (value, source) by variable, sorted. None: the newest versions."""
    data = variable_catalogue()
    found: dict[str, tuple[str, str]] = {}
    for row in data.plugin:
        if re.fullmatch(row.types, instance_type) and at_least(versions or data.newest, row.since):
            found.update({name: (value, row.source) for name, value in row.sets.items()})
    return dict(sorted(found.items()))


def at_least(versions: Mapping[str, Version], wanted: Mapping[str, Version]) -> bool:
    """True if each wanted component is at least that new."""
    return all(versions[component] >= version for component, version in wanted.items())


def vendor_of(accelerator: str) -> Vendor:
    """Whose accelerator has this name in Slurm; NVIDIA's for one that only a project's own catalogue has."""
    accelerators = [machine.accelerator for machine in instance_types().values() if machine.accelerator]
    vendors = {known.name: known.vendor for known in accelerators}
    return vendors.get(accelerator, Vendor.NVIDIA)


@cache
def variable_catalogue() -> VariableCatalogue:
    """The content of data/nccl_variables.toml."""
    data = read_toml("nccl_variables.toml")
    sources = data["sources"]
    known = {
        name: (Rule(verdict=Verdict.FINE, why=group["why"], source=sources[group["source"]]),)
        for group in data["known"]
        for name in group["names"]
    }
    rules = {name: tuple(_rule(row, sources) for row in rows) for name, rows in data["variables"].items()}
    families = [(row["prefix"], _rule(row, sources)) for row in data["families"]]
    return VariableCatalogue(
        rules=MappingProxyType(dict(sorted({**known, **rules}.items()))),
        families=tuple(sorted(families, key=lambda family: -len(family[0]))),
        plugin=tuple(_plugin(row, sources) for row in data["plugin"]),
        installers=tuple(_installer(row, sources) for row in data["installers"]),
        newest=MappingProxyType({name: parse_version(data["newest"][name]) for name in COMPONENTS}),
        newest_source=data["newest"]["source"],
        measured=tuple(Measured(**row) for row in data["all_reduce"]),
        neuron_cores=MappingProxyType({row["accelerator"]: row["cores"] for row in data["neuron_cores"]}),
        neuron_environment=MappingProxyType(dict(data["neuron_environment"]["variables"])),
    )


def _rule(row: Mapping[str, Any], sources: Mapping[str, str]) -> Rule:
    return Rule(
        verdict=Verdict(row["verdict"]),
        why=row["why"],
        source=sources[row["source"]],
        instead=row.get("instead"),
        value=row.get("value"),
        types=row.get("types"),
        vendor=Vendor(row["vendor"]) if "vendor" in row else None,
        since=_versions(row.get("since", {})),
        before=_versions(row.get("before", {})),
    )


def _plugin(row: Mapping[str, Any], sources: Mapping[str, str]) -> PluginSettings:
    since = _versions(row.get("since", {}))
    return PluginSettings(types=row["types"], sets=dict(row["sets"]), since=since, source=sources[row["source"]])


def _installer(row: Mapping[str, str], sources: Mapping[str, str]) -> Installer:
    versions = {name: parse_version(row[name]) for name in ("version", "plugin", "libfabric")}
    return Installer(**versions, source=sources[row["source"]])


def _versions(row: Mapping[str, str]) -> Mapping[str, Version]:
    return MappingProxyType({component: parse_version(version) for component, version in row.items()})
