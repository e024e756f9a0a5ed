"""NCCL and EFA on EC2: rules about variables, the plugin's settings by instance type, measured bandwidths.

`plan.nccl_env.lint_env` applies the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from corral.catalog.aws.instance_types import Vendor, instance_types
from corral.catalog.loader.data_files import read_toml

COMPONENTS = MappingProxyType(
    {"plugin": "aws-ofi-nccl", "libfabric": "libfabric", "installer": "EFA installer", "nccl": "NCCL"}
)
Version = tuple[int, ...]


class VariableVerdict(StrEnum):
    """The verdict about a variable; the first two make the command exit with an error."""

    WRONG = "wrong"
    HARMFUL = "harmful"
    NEEDLESS = "needless"
    FINE = "fine"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRule:
    """A rule about a variable; all its conditions must hold. `fix`: what to do, or "".

    `since` and `before`: versions by component.
    """

    verdict: VariableVerdict
    message: str
    source: str
    fix: str = ""
    value: str | None = None
    types: str | None = None
    vendor: Vendor | None = None
    since: Mapping[str, Version] = field(default_factory=dict)
    before: Mapping[str, Version] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """Variables that the plugin sets on matching types, from these versions on."""

    types: str
    sets: Mapping[str, str]
    since: Mapping[str, Version]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """An EFA installer and the versions that it installs."""

    version: Version
    plugin: Version
    libfabric: Version
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBandwidth:
    """A measured bus bandwidth of all_reduce_perf over EFA, at a message size."""

    instance_type: str
    nodes: int
    gb_per_s: float
    size: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableCatalog:
    """The whole data file. `rules` by variable, `families` by prefix (longest first), `newest` version by component."""

    rules: Mapping[str, tuple[VariableRule, ...]]
    families: tuple[tuple[str, VariableRule], ...]
    plugin: tuple[PluginSettings, ...]
    installers: tuple[Installer, ...]
    newest: Mapping[str, Version]
    measured: tuple[MeasuredBandwidth, ...]
    neuron_cores: Mapping[str, int]
    neuron_environment: Mapping[str, str]


def parse_version(text: str) -> Version:
    """Return the numbers of `1.22.0` or `2.7.0amzn2.0`. Raises ValueError if it does not begin with two numbers."""
    found = re.match(r"v?(\d+(?:\.\d+)+)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a version - write it like 1.22.0")
    return tuple(int(part) for part in found[1].split("."))


def format_version(version: Version) -> str:
    """Format a version: `1.22.0`."""
    return ".".join(map(str, version))


def plugin_settings(instance_type: str, versions: Mapping[str, Version] | None = None) -> Mapping[str, tuple[str, str]]:
    """Return the plugin's own settings on this type: (value, source) by variable, sorted. None: newest versions."""
    data = variable_catalog()
    found: dict[str, tuple[str, str]] = {}
    for row in data.plugin:
        if re.fullmatch(row.types, instance_type) and at_least(versions or data.newest, row.since):
            found.update({name: (value, row.source) for name, value in row.sets.items()})
    return dict(sorted(found.items()))


def at_least(versions: Mapping[str, Version], wanted: Mapping[str, Version]) -> bool:
    """Return whether each wanted component has at least the wanted version."""
    return all(versions[component] >= version for component, version in wanted.items())


def vendor_of(accelerator: str) -> Vendor:
    """Return the vendor of the accelerator with this Slurm name; NVIDIA if only a project's own catalog has it."""
    accelerators = [machine.accelerator for machine in instance_types().values() if machine.accelerator]
    vendors = {known.name: known.vendor for known in accelerators}
    return vendors.get(accelerator, Vendor.NVIDIA)


@cache
def variable_catalog() -> VariableCatalog:
    """Load data/nccl_variables.toml."""
    data = read_toml("nccl_variables.toml")
    sources = data["sources"]
    known = {
        name: (VariableRule(verdict=VariableVerdict.FINE, message=group["message"], source=sources[group["source"]]),)
        for group in data["known"]
        for name in group["names"]
    }
    rules = {name: tuple(_rule(row, sources) for row in rows) for name, rows in data["variables"].items()}
    families = [(row["prefix"], _rule(row, sources)) for row in data["families"]]
    return VariableCatalog(
        rules=MappingProxyType(dict(sorted({**known, **rules}.items()))),
        families=tuple(sorted(families, key=lambda family: -len(family[0]))),
        plugin=tuple(_plugin(row, sources) for row in data["plugin"]),
        installers=tuple(_installer(row, sources) for row in data["installers"]),
        newest=MappingProxyType({name: parse_version(data["newest"][name]) for name in COMPONENTS}),
        measured=tuple(MeasuredBandwidth(**row) for row in data["all_reduce"]),
        neuron_cores=MappingProxyType({row["accelerator"]: row["cores"] for row in data["neuron_cores"]}),
        neuron_environment=MappingProxyType(dict(data["neuron_environment"]["variables"])),
    )


def _rule(row: Mapping[str, Any], sources: Mapping[str, str]) -> VariableRule:
    return VariableRule(
        verdict=VariableVerdict(row["verdict"]),
        message=row["message"],
        source=sources[row["source"]],
        fix=row.get("fix", ""),
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
