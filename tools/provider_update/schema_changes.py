"""What differs between two exported schemas of terraform-provider-aws (`pulumi-resource-aws schema`). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Property = Mapping[str, Any]
# How a change of a property's flag reads, from false to true and back.
FLAGS: Mapping[str, tuple[str, str]] = {
    "required": ("is required now", "is no longer required"),
    "replaces": ("replaces the resource now", "no longer replaces the resource"),
    "computed": ("is computed now", "is no longer computed"),
}


def schema_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """One line for each change of a property, by the type's token, for the types of the old schema that changed."""
    before, after = old["resources"], new["resources"]
    changed: dict[str, Sequence[str]] = {token: ["is not in the new schema"] for token in before.keys() - after.keys()}
    for token in before.keys() & after.keys():
        changed[token] = [*_type_changes(before[token], after[token])]
    return {token: changed[token] for token in sorted(changed) if changed[token]}


def arguments_changed(lines: Sequence[str], arguments: frozenset[str]) -> Sequence[str]:
    """The lines about one of these arguments, by path: the line begins with it."""
    return [line for line in lines if line.partition(" ")[0] in arguments]


def _type_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    if not old.get("partial") and new.get("partial"):
        yield "is of the newer generation of the SDK now: the schema has neither its replacements nor its defaults"
    before, after = old["properties"], new["properties"]
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield f"{path} is removed"
        elif path not in before:
            yield f"{path} is new: {_described(after[path])}"
        else:
            yield from _property_changes(path, before[path], after[path])


def _property_changes(path: str, old: Property, new: Property) -> Iterator[str]:
    if old["type"] != new["type"]:
        yield f"{path} is {new['type']}, not {old['type']}"
    if _is_argument(old) != _is_argument(new):
        yield f"{path} is {'an' if _is_argument(new) else 'no longer an'} argument"
    for flag, (now, no_longer) in FLAGS.items():
        if bool(old.get(flag)) != bool(new.get(flag)):
            yield f"{path} {now if new.get(flag) else no_longer}"
    if old.get("default") != new.get("default"):
        yield f"{path} has the default {_shown(new.get('default'))}, not {_shown(old.get('default'))}"


def _described(one: Property) -> str:
    kind = "required" if one.get("required") else "optional" if one.get("optional") else "output"
    replaces = ", replaces the resource" if one.get("replaces") else ""
    default = f", default {_shown(one['default'])}" if one.get("default") is not None else ""
    return f"{one['type']}, {kind}{replaces}{default}"


def _is_argument(one: Property) -> bool:
    return bool(one.get("required") or one.get("optional"))


def _shown(value: object) -> str:
    return "none" if value is None else repr(value)
