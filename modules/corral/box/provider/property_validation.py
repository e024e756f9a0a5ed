"""Validate a program's inputs against a table and convert them to its kinds; an error names the property's path.

It also adds what Pulumi adds: automatic names and the provider's default tags.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corral.box.provider.property_schema import Prop, PropertyKind
from corral.box.provider.protobuf_values import ASSET, SIGNATURE, UNKNOWN
from corral.box.provider.resource import Resource

UNKNOWN_ARGUMENT = "the box's stand-in for the aws provider does not support the argument"
SCALARS = frozenset(
    {PropertyKind.TEXT, PropertyKind.SWITCH, PropertyKind.INTEGER, PropertyKind.NUMBER, PropertyKind.BOOLEAN}
)
RANDOM_DIGITS = 7  # of an automatic name, as in the official provider


@dataclass(frozen=True, slots=True, kw_only=True)
class InputError:
    """An invalid input."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Autonaming:
    """The parts of an automatic name. `proposed`: the name by the stack's own autonaming rules, if it has any."""

    name: str
    seed: bytes
    proposed: str = ""


def check_inputs(
    resource: Resource,
    news: Mapping[str, Any],
    olds: Mapping[str, Any],
    naming: Autonaming,
    default_tags: Mapping[str, str],
) -> tuple[dict[str, Any], list[InputError]]:
    """The inputs with automatic names and tags, and all errors in them."""
    errors: list[InputError] = []
    given = {name: value for name, value in news.items() if name != "tagsAll"}
    inputs = _fields(resource.inputs, given, "", errors)
    if resource.autonamed and not inputs.get(resource.autonamed) and not inputs.get(f"{resource.autonamed}Prefix"):
        inputs[resource.autonamed] = olds.get(resource.autonamed) or _automatic(resource, naming)
    if resource.retag:
        inputs["tagsAll"] = _all_tags(defaults_for(inputs, default_tags), inputs.get("tags"))
    return inputs, errors


def defaults_for(inputs: Mapping[str, Any], default_tags: Mapping[str, str]) -> Mapping[str, str]:
    """The default tags of a resource: the provider's, or the resource's own, which S3 objects may have."""
    own = (inputs.get("overrideProvider") or {}).get("defaultTags")
    return default_tags if own is None else own.get("tags") or {}


def _automatic(resource: Resource, naming: Autonaming) -> str:
    name = naming.proposed or f"{naming.name}-{naming.seed.hex()[:RANDOM_DIGITS] or '0' * RANDOM_DIGITS}"
    lower = resource.autonamed == "bucket"  # S3 allows no capital letters
    return f"{resource.autoname_prefix}{name.lower() if lower else name}"


def _all_tags(default_tags: Mapping[str, str], tags: Any) -> Any:
    return UNKNOWN if tags == UNKNOWN else {**default_tags, **(tags or {})}


def _fields(props: Mapping[str, Prop], given: Mapping[str, Any], path: str, errors: list[InputError]) -> dict[str, Any]:
    valid: dict[str, Any] = {}
    for name, value in given.items():
        where = f"{path}.{name}" if path else name
        if name not in props:
            errors.append(InputError(path=where, reason=f"{UNKNOWN_ARGUMENT} {where}"))
        elif value is not None:
            valid[name] = _value(props[name], value, where, errors)
    for name, prop in props.items():
        if prop.required and name not in valid:
            where = f"{path}.{name}" if path else name
            errors.append(InputError(path=where, reason=f"{where} is required"))
    return valid


def _value(prop: Prop, value: Any, path: str, errors: list[InputError]) -> Any:
    if value == UNKNOWN:
        return value
    try:
        return _converted(prop, value, path, errors)
    except (TypeError, ValueError):
        errors.append(InputError(path=path, reason=f"{path}: {json.dumps(value)[:80]} is not a {prop.kind.value}"))
        return value


def _converted(prop: Prop, value: Any, path: str, errors: list[InputError]) -> Any:
    match prop.kind, value:
        case PropertyKind.BLOCK, dict():
            return _fields(prop.fields, value, path, errors)
        case PropertyKind.MAP, dict():
            item = prop.item or prop
            return {k: _value(item, v, f"{path}.{k}", errors) for k, v in value.items() if v is not None}
        case ((PropertyKind.LIST | PropertyKind.SET), list()):
            item = prop.item or prop
            return [_value(item, part, f"{path}[{index}]", errors) for index, part in enumerate(value)]
        case PropertyKind.ASSET, dict() if value.get(SIGNATURE) == ASSET:
            return value
        case PropertyKind.DOCUMENT, dict() | list():
            return json.dumps(value)
        case PropertyKind.DOCUMENT, str():
            if value:
                json.loads(value)
            return value
        case kind, str() | bool() | int() | float() if kind in SCALARS:
            return _scalar(prop.kind, value)
    raise TypeError


def _scalar(kind: PropertyKind, value: Any) -> Any:
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    match kind:
        case PropertyKind.BOOLEAN | PropertyKind.SWITCH:
            truth = {"true": True, "false": False}.get(spelled.lower())
            if truth is None:
                raise ValueError
            return truth if kind is PropertyKind.BOOLEAN else spelled.lower()
        case PropertyKind.INTEGER:
            return int(spelled)
        case PropertyKind.NUMBER:
            return float(spelled) if not float(spelled).is_integer() else int(float(spelled))
        case _:
            return spelled
