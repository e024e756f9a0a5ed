"""Inputs as a program gives them to inputs as a table wants them, with every fault named by its path.

Also fills in what Pulumi fills in: a name where the program gives none, and the provider's default tags.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corral.box.provider.resource import Resource
from corral.box.provider.shapes import Kind, Prop
from corral.box.provider.wire import ASSET, SIGNATURE, UNKNOWN

UNKNOWN_ARGUMENT = "the box's stand-in for the aws provider does not know the argument"
RANDOM_DIGITS = 7  # of an automatic name, as the official provider has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with the inputs."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What an automatic name is made of; `proposed` comes from the stack's own naming rules."""

    name: str
    seed: bytes
    proposed: str = ""


def checked(
    resource: Resource,
    news: Mapping[str, Any],
    olds: Mapping[str, Any],
    naming: Naming,
    default_tags: Mapping[str, str],
) -> tuple[dict[str, Any], list[Fault]]:
    """The inputs with names and tags filled in, and all that is wrong with them."""
    faults: list[Fault] = []
    given = {name: value for name, value in news.items() if name != "tagsAll"}
    inputs = _fields(resource.inputs, given, "", faults)
    if resource.autonamed and not inputs.get(resource.autonamed) and not inputs.get(f"{resource.autonamed}Prefix"):
        inputs[resource.autonamed] = olds.get(resource.autonamed) or _automatic(resource, naming)
    if resource.retag:
        inputs["tagsAll"] = _all_tags(defaults_for(inputs, default_tags), inputs.get("tags"))
    return inputs, faults


def defaults_for(inputs: Mapping[str, Any], default_tags: Mapping[str, str]) -> Mapping[str, str]:
    """The default tags of one resource: the provider's, or what the resource has in their place (S3 objects may)."""
    own = (inputs.get("overrideProvider") or {}).get("defaultTags")
    return default_tags if own is None else own.get("tags") or {}


def _automatic(resource: Resource, naming: Naming) -> str:
    name = naming.proposed or f"{naming.name}-{naming.seed.hex()[:RANDOM_DIGITS] or '0' * RANDOM_DIGITS}"
    lower = resource.autonamed == "bucket"  # S3 has no capital letters
    return f"{resource.autoname_prefix}{name.lower() if lower else name}"


def _all_tags(default_tags: Mapping[str, str], tags: Any) -> Any:
    return UNKNOWN if tags == UNKNOWN else {**default_tags, **(tags or {})}


def _fields(props: Mapping[str, Prop], given: Mapping[str, Any], path: str, faults: list[Fault]) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for name, value in given.items():
        where = f"{path}.{name}" if path else name
        if name not in props:
            faults.append(Fault(path=where, reason=f"{UNKNOWN_ARGUMENT} {where}"))
        elif value is not None:
            checked[name] = _value(props[name], value, where, faults)
    for name, prop in props.items():
        if prop.required and name not in checked:
            where = f"{path}.{name}" if path else name
            faults.append(Fault(path=where, reason=f"{where} is required"))
    return checked


def _value(prop: Prop, value: Any, path: str, faults: list[Fault]) -> Any:
    if value == UNKNOWN:
        return value
    try:
        return _converted(prop, value, path, faults)
    except (TypeError, ValueError):
        faults.append(Fault(path=path, reason=f"{path} is {json.dumps(value)[:80]}, which is not a {prop.kind.value}"))
        return value


def _converted(prop: Prop, value: Any, path: str, faults: list[Fault]) -> Any:
    match prop.kind, value:
        case Kind.BLOCK, dict():
            return _fields(prop.fields, value, path, faults)
        case Kind.MAP, dict():
            item = prop.item or prop
            return {k: _value(item, v, f"{path}.{k}", faults) for k, v in value.items() if v is not None}
        case ((Kind.LIST | Kind.SET), list()):
            item = prop.item or prop
            return [_value(item, part, f"{path}[{index}]", faults) for index, part in enumerate(value)]
        case Kind.ASSET, dict() if value.get(SIGNATURE) == ASSET:
            return value
        case Kind.DOCUMENT, dict() | list():
            return json.dumps(value)
        case Kind.DOCUMENT, str():
            if value:
                json.loads(value)
            return value
        case ((Kind.TEXT | Kind.SWITCH | Kind.WHOLE | Kind.NUMBER | Kind.FLAG), str() | bool() | int() | float()):
            return _scalar(prop.kind, value)
    raise TypeError


def _scalar(kind: Kind, value: Any) -> Any:
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    match kind:
        case Kind.FLAG | Kind.SWITCH:
            truth = {"true": True, "false": False}.get(spelled.lower())
            if truth is None:
                raise ValueError
            return truth if kind is Kind.FLAG else spelled.lower()
        case Kind.WHOLE:
            return int(spelled)
        case Kind.NUMBER:
            return float(spelled) if not float(spelled).is_integer() else int(float(spelled))
        case _:
            return spelled
