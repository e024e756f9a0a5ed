"""Convert values between Pulumi's and AWS's spelling, by the names and kinds in a table.

It handles the regular cases: capital letters, 'true' for True, objects and lists of objects, tags as lists of pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from corral.box.provider.property_schema import Prop, PropertyKind


def to_request(
    props: Mapping[str, Prop], values: Mapping[str, Any], only: Iterable[str] | None = None
) -> dict[str, Any]:
    """The arguments of an API call by AWS name: the given values, or only those named in `only`."""
    chosen = props if only is None else only
    return {
        _aws_name(name, props[name]): _to_aws(props[name], values[name])
        for name in chosen
        if values.get(name) is not None
    }


def from_response(props: Mapping[str, Prop], answer: Mapping[str, Any]) -> dict[str, Any]:
    """The properties in the response of an API call."""
    named = ((name, prop, answer.get(_aws_name(name, prop))) for name, prop in props.items())
    return {name: _from_aws(prop, value) for name, prop, value in named if value is not None}


def tag_list(tags: Mapping[str, str] | None) -> list[dict[str, str]]:
    """The tags as AWS lists them."""
    return [{"Key": key, "Value": value} for key, value in sorted((tags or {}).items())]


def tag_map(tags: Iterable[Mapping[str, str]] | None, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Listed tags as a mapping, without those that AWS sets."""
    return {tag[key]: tag.get(value, "") for tag in tags or () if not tag[key].startswith("aws:")}


def _aws_name(name: str, prop: Prop) -> str:
    return prop.aws or name[0].upper() + name[1:]


def _to_aws(prop: Prop, value: Any) -> Any:
    match prop.kind:
        case PropertyKind.BLOCK:
            return to_request(prop.fields, value)
        case PropertyKind.LIST | PropertyKind.SET if prop.item:
            return [_to_aws(prop.item, part) for part in value]
        case PropertyKind.SWITCH:
            return value == "true"
        case _:
            return value


def _from_aws(prop: Prop, value: Any) -> Any:
    match prop.kind:
        case PropertyKind.BLOCK:
            return from_response(prop.fields, value)
        case PropertyKind.LIST | PropertyKind.SET if prop.item:
            return [_from_aws(prop.item, part) for part in value]
        case PropertyKind.SWITCH:
            return "true" if value else "false"
        case PropertyKind.TEXT:
            return str(value)
        case _:
            return value
