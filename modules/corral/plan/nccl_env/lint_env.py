"""Check a user's NCCL and EFA variables: variables in, findings out.

The catalog has the rules; `env_parser` finds the assignments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from corral.catalog.aws.instance_types import InstanceType, Vendor
from corral.catalog.aws.nccl_variables import (
    COMPONENTS,
    Installer,
    VariableRule,
    VariableVerdict,
    Version,
    at_least,
    format_version,
    plugin_settings,
    variable_catalog,
)
from corral.catalog.loader.suggestions import nearest

_HEADS = ("OFI_NCCL_",)  # longer than a prefix, and ignored in similarity
PREFIXES = ("NCCL_", "FI_", "OFI_", "RDMAV_", "IBV_", "NEURON_RT_", "NEURON_LOGICAL_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A variable that a line of text assigns; `value` is None if only a shell knows it."""

    line: int
    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFinding:
    """The verdict about an assignment. `fix`: what to do, or "".

    `since`: the component and version from which the verdict applies.
    """

    assignment: Assignment
    verdict: VariableVerdict
    message: str
    fix: str = ""
    source: str | None
    since: str | None = None

    @property
    def is_bad(self) -> bool:
        """Whether the user should fix it before running."""
        return self.verdict in (VariableVerdict.WRONG, VariableVerdict.HARMFUL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where the variables apply: the instance type, None for any with NVIDIA GPUs, and versions by component."""

    instance_type: InstanceType | None
    versions: Mapping[str, Version]

    @property
    def type_name(self) -> str | None:
        """The name of the instance type, if given."""
        return self.instance_type.name if self.instance_type else None

    @property
    def vendor(self) -> Vendor:
        """The vendor of the accelerators; NVIDIA by default."""
        accelerator = self.instance_type.accelerator if self.instance_type else None
        return accelerator.vendor if accelerator else Vendor.NVIDIA


class UnknownInstaller(Exception):
    """An EFA installer older than all in the catalog; the text is a message for the user."""


def is_ours(name: str) -> bool:
    """Return whether this is a variable that lint-env checks."""
    return name.startswith(PREFIXES)


def assumed_versions(given: Mapping[str, Version]) -> Mapping[str, Version]:
    """Return the given versions, completed by those of the given installer, and the newest known for the rest.

    Raises UnknownInstaller if the installer is too old to be in the catalog and its component versions are not given.
    """
    newest = variable_catalog().newest
    brought = _brought(given["installer"], given) if "installer" in given else {}
    return {component: given.get(component) or brought.get(component) or newest[component] for component in COMPONENTS}


def installer_warning(given: Mapping[str, Version]) -> str | None:
    """Return a warning if the given installer is not in the catalog, so that the nearest older one replaces it."""
    installer = given.get("installer")
    rows = variable_catalog().installers
    if installer is None or any(row.version == installer for row in rows) or {"plugin", "libfabric"} <= set(given):
        return None
    older = [row for row in rows if row.version < installer]
    if not older:
        return None  # assumed_versions raised UnknownInstaller
    row, position = older[-1], "newer than" if len(older) == len(rows) else "not one of"
    return (
        f"EFA installer {format_version(installer)} is {position} the known installers"
        f" ({_span(rows)}): using {format_version(row.version)}, which installs"
        f" {' and '.join(_brings(row, given))} - set --plugin and --libfabric for other versions"
    )


def lint(assignments: Iterable[Assignment], context: Context) -> tuple[EnvFinding, ...]:
    """Return a finding for each assignment of a checked variable, in order."""
    return tuple(_evaluate(assignment, context) for assignment in assignments if is_ours(assignment.name))


def _brought(installer: Version, given: Mapping[str, Version]) -> Mapping[str, Version]:
    known = [row for row in variable_catalog().installers if row.version <= installer]
    if known:
        return {"plugin": known[-1].plugin, "libfabric": known[-1].libfabric}
    if {"plugin", "libfabric"} <= set(given):
        return {}
    oldest = format_version(variable_catalog().installers[0].version)
    raise UnknownInstaller(
        f"--installer {format_version(installer)}: the versions in installers before {oldest} are unknown"
        " - also set --plugin and --libfabric"
    )


def _span(rows: Sequence[Installer]) -> str:
    return f"{format_version(rows[0].version)} to {format_version(rows[-1].version)}"


def _brings(row: Installer, given: Mapping[str, Version]) -> Iterator[str]:
    for component, version in (("plugin", row.plugin), ("libfabric", row.libfabric)):
        if component not in given:
            yield f"{COMPONENTS[component]} {format_version(version)}"


def _evaluate(assignment: Assignment, context: Context) -> EnvFinding:
    settings = plugin_settings(context.type_name, context.versions) if context.type_name else {}
    if assignment.name in settings and assignment.value is not None:
        return _against_plugin(assignment, *settings[assignment.name], context)
    for rule in _rules(assignment.name, context.vendor):
        if _holds(rule, assignment.value, context):
            return _finding(assignment, rule)
    return _without_rule(assignment)


def _against_plugin(assignment: Assignment, value: str, source: str, context: Context) -> EnvFinding:
    assert assignment.value is not None
    given = assignment.value.rpartition("/")[2]  # the plugin sets a topology file without its directory
    if given.lower() == value.lower():
        verdict, message = VariableVerdict.NEEDLESS, f"the plugin sets the same value on {context.type_name}"
    else:
        verdict = VariableVerdict.HARMFUL
        message = f"overrides what the plugin sets on {context.type_name} ({value})"
    return EnvFinding(assignment=assignment, verdict=verdict, message=message, fix="unset it", source=source)


def _rules(name: str, vendor: Vendor) -> Iterator[VariableRule]:
    data = variable_catalog()
    families = [rule for prefix, rule in data.families if name.startswith(prefix)]
    yield from (rule for rule in families if rule.vendor is vendor)
    yield from data.rules.get(name, ())
    if name not in data.rules:
        yield from (rule for rule in families if rule.vendor is None)


def _holds(rule: VariableRule, value: str | None, context: Context) -> bool:
    return (
        (rule.value is None or (value is not None and re.fullmatch(rule.value, value, re.IGNORECASE) is not None))
        and (
            rule.types is None or (context.type_name is not None and bool(re.fullmatch(rule.types, context.type_name)))
        )
        and (rule.vendor is None or rule.vendor is context.vendor)
        and at_least(context.versions, rule.since)
        and all(context.versions[component] < version for component, version in rule.before.items())
    )


def _finding(assignment: Assignment, rule: VariableRule) -> EnvFinding:
    since = " and ".join(f"{COMPONENTS[name]} {format_version(version)}" for name, version in rule.since.items())
    return EnvFinding(
        assignment=assignment,
        verdict=rule.verdict,
        message=rule.message,
        fix=rule.fix,
        source=rule.source,
        since=since or None,
    )


def _without_rule(assignment: Assignment) -> EnvFinding:
    if rules := variable_catalog().rules.get(assignment.name):
        message = "no known problem with these versions"
        return EnvFinding(assignment=assignment, verdict=VariableVerdict.FINE, message=message, source=rules[0].source)
    suggestion = _suggestion(assignment.name)
    return EnvFinding(
        assignment=assignment,
        verdict=VariableVerdict.UNKNOWN,
        message="unknown variable",
        fix=f"did you mean {suggestion}?" if suggestion else "",
        source=None,
    )


def _suggestion(name: str) -> str | None:
    """Return the most similar known variable with the same prefix; the prefix itself does not count as similarity."""
    prefix = next(prefix for prefix in (*_HEADS, *PREFIXES) if name.startswith(prefix))
    known = [other.removeprefix(prefix) for other in variable_catalog().rules if other.startswith(prefix)]
    close = nearest(name.removeprefix(prefix), known)
    return prefix + close[0] if close else None
