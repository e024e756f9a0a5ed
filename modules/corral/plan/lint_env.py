"""A user's NCCL and EFA variables, judged: variables in, findings out. What is known of them is the catalogue's; where
they were written is `plan.env_text`'s to find.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from corral.catalog.instances import InstanceType, Vendor
from corral.catalog.names import nearest
from corral.catalog.nccl_variables import (
    COMPONENTS,
    Installer,
    Rule,
    Verdict,
    Version,
    at_least,
    plugin_settings,
    show_version,
    variable_catalogue,
)

_HEADS = ("OFI_NCCL_",)  # longer than a prefix, and no likeness either
PREFIXES = ("NCCL_", "FI_", "OFI_", "RDMAV_", "IBV_", "NEURON_RT_", "NEURON_LOGICAL_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A variable that is given a value in a line of a text; `value` is None where only the shell will know it."""

    line: int
    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is thought of an assignment. `since` names the component and version from which it is so."""

    assignment: Assignment
    verdict: Verdict
    why: str
    source: str | None
    instead: str | None = None
    since: str | None = None

    @property
    def is_bad(self) -> bool:
        """Whether it should be changed before anything runs."""
        return self.verdict in (Verdict.WRONG, Verdict.HARMFUL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where the variables would be used: the type, None for any with NVIDIA's GPUs, and the versions by component."""

    instance_type: InstanceType | None
    versions: Mapping[str, Version]

    @property
    def type_name(self) -> str | None:
        """The type's name."""
        return self.instance_type.name if self.instance_type else None

    @property
    def vendor(self) -> Vendor:
        """Whose accelerators; NVIDIA's where nothing says otherwise."""
        accelerator = self.instance_type.accelerator if self.instance_type else None
        return accelerator.vendor if accelerator else Vendor.NVIDIA


class UnknownInstaller(Exception):
    """An installer that is older than all whose content we know; the text is a sentence for a person."""


def is_ours(name: str) -> bool:
    """True for a variable of a kind that is judged here."""
    return name.startswith(PREFIXES)


def assumed_versions(given: Mapping[str, Version]) -> Mapping[str, Version]:
    """The given versions, those that the given installer brings, and the newest known for the rest.

    Raises UnknownInstaller where the installer is too old to say what it brings, and that was not given.
    """
    newest = variable_catalogue().newest
    brought = _brought(given["installer"], given) if "installer" in given else {}
    return {component: given.get(component) or brought.get(component) or newest[component] for component in COMPONENTS}


def installer_note(given: Mapping[str, Version]) -> str | None:
    """A sentence where the given installer is none whose content is known here, and so counts as the nearest one."""
    installer = given.get("installer")
    rows = variable_catalogue().installers
    if installer is None or any(row.version == installer for row in rows) or {"plugin", "libfabric"} <= set(given):
        return None
    older = [row for row in rows if row.version < installer]
    if not older:
        return None  # assumed_versions has refused it
    row, place = older[-1], "newer than" if len(older) == len(rows) else "none of"
    return (
        f"EFA installer {show_version(installer)} is {place} those that are known here"
        f" ({_span(rows)}): judged by {show_version(row.version)}, which brings"
        f" {' and '.join(_brings(row, given))}; --plugin and --libfabric name other versions"
    )


def judge(assignments: Iterable[Assignment], context: Context) -> tuple[Finding, ...]:
    """A finding for each assignment of our kinds, in their order."""
    return tuple(_judge(assignment, context) for assignment in assignments if is_ours(assignment.name))


def _brought(installer: Version, given: Mapping[str, Version]) -> Mapping[str, Version]:
    known = [row for row in variable_catalogue().installers if row.version <= installer]
    if known:
        return {"plugin": known[-1].plugin, "libfabric": known[-1].libfabric}
    if {"plugin", "libfabric"} <= set(given):
        return {}
    oldest = show_version(variable_catalogue().installers[0].version)
    raise UnknownInstaller(
        f"--installer {show_version(installer)}: what installers before {oldest} bring is not known here"
        " - give --plugin and --libfabric too"
    )


def _span(rows: Sequence[Installer]) -> str:
    return f"{show_version(rows[0].version)} to {show_version(rows[-1].version)}"


def _brings(row: Installer, given: Mapping[str, Version]) -> Iterator[str]:
    for component, version in (("plugin", row.plugin), ("libfabric", row.libfabric)):
        if component not in given:
            yield f"{COMPONENTS[component]} {show_version(version)}"


def _judge(assignment: Assignment, context: Context) -> Finding:
    settings = plugin_settings(context.type_name, context.versions) if context.type_name else {}
    if assignment.name in settings and assignment.value is not None:
        return _beside_the_plugin(assignment, *settings[assignment.name], context)
    for rule in _rules(assignment.name, context.vendor):
        if _holds(rule, assignment.value, context):
            return _finding(assignment, rule)
    return _without_rule(assignment)


def _beside_the_plugin(assignment: Assignment, value: str, source: str, context: Context) -> Finding:
    assert assignment.value is not None
    given = assignment.value.rpartition("/")[2]  # of a topology file the plugin knows the directory
    if given.lower() == value.lower():
        why = f"the plugin sets it to the same on {context.type_name}"
        return Finding(assignment=assignment, verdict=Verdict.NEEDLESS, why=why, source=source, instead="leave it out")
    why = f"overrides what the plugin sets on {context.type_name}, {value}"
    return Finding(assignment=assignment, verdict=Verdict.HARMFUL, why=why, source=source, instead="leave it out")


def _rules(name: str, vendor: Vendor) -> Iterator[Rule]:
    data = variable_catalogue()
    families = [rule for prefix, rule in data.families if name.startswith(prefix)]
    yield from (rule for rule in families if rule.vendor is vendor)
    yield from data.rules.get(name, ())
    if name not in data.rules:
        yield from (rule for rule in families if rule.vendor is None)


def _holds(rule: Rule, value: str | None, context: Context) -> bool:
    return (
        (rule.value is None or (value is not None and re.fullmatch(rule.value, value, re.IGNORECASE) is not None))
        and (
            rule.types is None or (context.type_name is not None and bool(re.fullmatch(rule.types, context.type_name)))
        )
        and (rule.vendor is None or rule.vendor is context.vendor)
        and at_least(context.versions, rule.since)
        and all(context.versions[component] < version for component, version in rule.before.items())
    )


def _finding(assignment: Assignment, rule: Rule) -> Finding:
    since = " and ".join(f"{COMPONENTS[name]} {show_version(version)}" for name, version in rule.since.items())
    return Finding(
        assignment=assignment,
        verdict=rule.verdict,
        why=rule.why,
        source=rule.source,
        instead=rule.instead,
        since=since or None,
    )


def _without_rule(assignment: Assignment) -> Finding:
    if rules := variable_catalogue().rules.get(assignment.name):
        why = "nothing is known against it with these versions"
        return Finding(assignment=assignment, verdict=Verdict.FINE, why=why, source=rules[0].source)
    meant = _meant(assignment.name)
    hint = f"did you mean {meant}?" if meant else None
    return Finding(assignment=assignment, verdict=Verdict.UNKNOWN, why="not known here", source=None, instead=hint)


def _meant(name: str) -> str | None:
    """The known variable that is nearest, of the same prefix: what all begin with says nothing about likeness."""
    prefix = next(prefix for prefix in (*_HEADS, *PREFIXES) if name.startswith(prefix))
    known = [other.removeprefix(prefix) for other in variable_catalogue().rules if other.startswith(prefix)]
    close = nearest(name.removeprefix(prefix), known)
    return prefix + close[0] if close else None
