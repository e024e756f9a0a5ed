"""Values in Pulumi's spelling to values in AWS's, and back, by the names and kinds that a table gives.

Only what is regular: capital letters, 'true' for True, objects and lists of objects, tags as lists of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from corral.box.provider.shapes import Kind, Prop


def request(props: Mapping[str, Prop], values: Mapping[str, Any], only: Iterable[str] | None = None) -> dict[str, Any]:
    """The arguments of an API call: the given values, or `only` those named, under their AWS names."""
    chosen = props if only is None else only
    return {
        _aws_name(name, props[name]): _to_aws(props[name], values[name])
        for name in chosen
        if values.get(name) is not None
    }


def record(props: Mapping[str, Prop], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that are in the answer of an API call."""
    named = ((name, prop, answer.get(_aws_name(name, prop))) for name, prop in props.items())
    return {name: _from_aws(prop, value) for name, prop, value in named if value is not None}


def tag_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    """The tags as AWS lists them."""
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def tag_map(tags: Iterable[Mapping[str, str]] | None, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Listed tags as a mapping, without those that AWS itself sets."""
    return {tag[key]: tag.get(value, "") for tag in tags or () if not tag[key].startswith("aws:")}


def _aws_name(name: str, prop: Prop) -> str:
    return prop.aws or name[0].upper() + name[1:]


def _to_aws(prop: Prop, value: Any) -> Any:
    match prop.kind:
        case Kind.BLOCK:
            return request(prop.fields, value)
        case Kind.LIST | Kind.SET if prop.item:
            return [_to_aws(prop.item, part) for part in value]
        case Kind.SWITCH:
            return value == "true"
        case _:
            return value


def _from_aws(prop: Prop, value: Any) -> Any:
    match prop.kind:
        case Kind.BLOCK:
            return record(prop.fields, value)
        case Kind.LIST | Kind.SET if prop.item:
            return [_from_aws(prop.item, part) for part in value]
        case Kind.SWITCH:
            return "true" if value else "false"
        case Kind.TEXT:
            return str(value)
        case _:
            return value
