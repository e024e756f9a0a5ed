"""Compare the state of a resource with a program's inputs, by meaning rather than by spelling. Pure.

A property that the program omits is no difference if AWS computes it; otherwise it stands for its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from corral.box.provider.property_schema import Prop, PropertyKind
from corral.box.provider.protobuf_values import is_unknown

NOTHING: tuple[Any, ...] = (None, "", [], {}, ())


class DiffKind(StrEnum):
    """How a property differs."""

    ADDED = "added"
    DELETED = "deleted"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One differing property; `path` is Pulumi's, such as `networkInterfaces[0].deviceIndex`."""

    path: str
    kind: DiffKind
    replaces: bool

    @property
    def name(self) -> str:
        """The property of the resource that the path begins with."""
        return self.path.partition(".")[0].partition("[")[0]


def differences(props: Mapping[str, Prop], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """The differences between the old state and the new inputs, in the order of the table."""
    return list(_in_fields(props, old, new, "", False))


def are_equivalent(prop: Prop, old: Any, new: Any) -> bool:
    """True if both values mean the same."""
    return not any(_in_value(prop, old, new, "", False))


def with_default(prop: Prop, value: Any) -> Any:
    """The value that a missing property stands for."""
    return prop.default if value in NOTHING and prop.default is not None and value is not False else value


def _in_fields(
    props: Mapping[str, Prop], old: Mapping[str, Any], new: Mapping[str, Any], path: str, replaces: bool
) -> Iterator[Difference]:
    for name, prop in props.items():
        if _is_computed_by_aws(prop, old.get(name), new.get(name)):
            continue
        where = f"{path}.{name}" if path else name
        yield from _in_value(prop, old.get(name), new.get(name), where, replaces or prop.replaces)


def _is_computed_by_aws(prop: Prop, old: Any, new: Any) -> bool:
    return (new is None and prop.computed) or (old is None and prop.write_only)


def _in_value(prop: Prop, old: Any, new: Any, path: str, replaces: bool) -> Iterator[Difference]:
    old, new = with_default(prop, old), with_default(prop, new)
    if old in NOTHING and new in NOTHING:
        return
    if old is None or new is None:
        yield Difference(path=path, kind=DiffKind.ADDED if old is None else DiffKind.DELETED, replaces=replaces)
    elif prop.kind is PropertyKind.BLOCK and isinstance(old, dict) and isinstance(new, dict):
        yield from _in_fields(prop.fields, old, new, path, replaces)
    elif prop.kind is PropertyKind.MAP and isinstance(old, dict) and isinstance(new, dict):
        yield from _in_map(old, new, path, replaces)
    elif prop.kind is PropertyKind.LIST and prop.item and isinstance(old, list) and isinstance(new, list):
        yield from _in_list(prop.item, old, new, path, replaces)
    elif is_unknown(new) or canonical(prop, old) != canonical(prop, new):
        yield Difference(path=path, kind=DiffKind.CHANGED, replaces=replaces)


def _in_map(old: Mapping[str, Any], new: Mapping[str, Any], path: str, replaces: bool) -> Iterator[Difference]:
    for key in sorted(old.keys() | new.keys()):
        kind = DiffKind.ADDED if key not in old else DiffKind.DELETED if key not in new else DiffKind.CHANGED
        if old.get(key) != new.get(key):
            yield Difference(path=f"{path}{_key(key)}", kind=kind, replaces=replaces)


def _in_list(item: Prop, old: list[Any], new: list[Any], path: str, replaces: bool) -> Iterator[Difference]:
    for index in range(max(len(old), len(new))):
        where = f"{path}[{index}]"
        if index >= len(old) or index >= len(new):
            yield Difference(
                path=where, kind=DiffKind.ADDED if index >= len(old) else DiffKind.DELETED, replaces=replaces
            )
        else:
            yield from _in_value(item, old[index], new[index], where, replaces)


def _key(key: str) -> str:
    return f".{key}" if key.isidentifier() else f'["{key}"]'


def canonical(prop: Prop, value: Any) -> Any:
    """A value that is equal for all spellings of the same meaning."""
    value = with_default(prop, value)
    if value in NOTHING and value is not False:
        return None
    match prop.kind:
        case PropertyKind.SET if isinstance(value, list) and prop.item:
            return sorted((canonical(prop.item, part) for part in value), key=_order)
        case PropertyKind.LIST if isinstance(value, list) and prop.item:
            return [canonical(prop.item, part) for part in value]
        case PropertyKind.BLOCK if isinstance(value, dict):
            return {name: found for name, part in prop.fields.items() if (found := canonical(part, value.get(name)))}
        case PropertyKind.DOCUMENT:
            return _meaning(value)
        case PropertyKind.ASSET if isinstance(value, dict):
            return value.get("hash", value)  # the path of the file does not matter
        case PropertyKind.SWITCH | PropertyKind.TEXT:
            return str(value).lower() if isinstance(value, bool) or prop.kind is PropertyKind.SWITCH else str(value)
        case _:
            return value


def _order(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _meaning(value: Any) -> Any:
    try:
        return _sorted_policy(json.loads(value))
    except (TypeError, ValueError):
        return value


def _sorted_policy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_policy(part) for key, part in value.items()}
    if isinstance(value, list):  # in IAM policies a list of one equals its element, and order does not matter
        parts = sorted((_sorted_policy(part) for part in value), key=_order)
        return parts[0] if len(parts) == 1 else parts
    return value
