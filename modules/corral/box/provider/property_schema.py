"""The schema of a property of a resource type: its kind, who sets it, and its AWS name. The tables consist of these.

`property_validation` checks values against it, `diff` compares them, `property_conversion` converts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class PropertyKind(StrEnum):
    """The kinds of value, with their names in error messages. A switch is a boolean that the SDK writes as text."""

    TEXT = "text"
    INTEGER = "whole number"
    NUMBER = "number"
    BOOLEAN = "boolean"
    SWITCH = "'true' or 'false'"
    DOCUMENT = "JSON document"
    ASSET = "file or text asset"
    MAP = "map"
    LIST = "list"
    SET = "list without order"
    BLOCK = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prop:
    """One property.

    `replaces`: a change replaces the resource. `computed`: AWS sets it if the program does not. `write_only`: AWS does
    not return it, the state retains it. `changes_with`: properties whose change makes this output unknown in a preview.
    `aws`: the name in API calls (default: its own with a capital letter).
    """

    kind: PropertyKind
    item: Prop | None = None
    fields: Mapping[str, Prop] = field(default_factory=dict)
    required: bool = False
    replaces: bool = False
    computed: bool = False
    write_only: bool = False
    default: Any = None
    aws: str = ""
    changes_with: frozenset[str] = frozenset()


ANY = "*"  # in changes_with: any property


def text(**facts: Any) -> Prop:
    """A property that is text."""
    return _prop(PropertyKind.TEXT, facts)


def integer(**facts: Any) -> Prop:
    """A property that is a whole number."""
    return _prop(PropertyKind.INTEGER, facts)


def number(**facts: Any) -> Prop:
    """A property that is a number."""
    return _prop(PropertyKind.NUMBER, facts)


def boolean(**facts: Any) -> Prop:
    """A property that is true or false."""
    return _prop(PropertyKind.BOOLEAN, facts)


def switch(**facts: Any) -> Prop:
    """A property that the SDK writes as 'true' or 'false'."""
    return _prop(PropertyKind.SWITCH, facts)


def json_document(**facts: Any) -> Prop:
    """A property that is a JSON document; its spelling does not matter."""
    return _prop(PropertyKind.DOCUMENT, facts)


def asset(**facts: Any) -> Prop:
    """A property that is a file or text asset."""
    return _prop(PropertyKind.ASSET, facts)


def text_list(**facts: Any) -> Prop:
    """A property that is a list of texts whose order matters."""
    return replace(_prop(PropertyKind.LIST, facts), item=text())


def text_set(**facts: Any) -> Prop:
    """A property that is a list of texts whose order does not matter."""
    return replace(_prop(PropertyKind.SET, facts), item=text())


def text_map(**facts: Any) -> Prop:
    """A property that maps names to texts."""
    return replace(_prop(PropertyKind.MAP, facts), item=text())


def block(fields: Mapping[str, Prop], **facts: Any) -> Prop:
    """A property that is an object with the given fields."""
    return replace(_prop(PropertyKind.BLOCK, facts), fields=fields)


def block_list(fields: Mapping[str, Prop], **facts: Any) -> Prop:
    """A property that is a list of objects whose order matters."""
    return replace(_prop(PropertyKind.LIST, facts), item=block(fields))


def block_set(fields: Mapping[str, Prop], **facts: Any) -> Prop:
    """A property that is a list of objects whose order does not matter."""
    return replace(_prop(PropertyKind.SET, facts), item=block(fields))


def _prop(kind: PropertyKind, facts: Mapping[str, Any]) -> Prop:
    changing = facts.get("changes_with", ())
    return Prop(
        kind=kind, **{**facts, "changes_with": frozenset([changing] if isinstance(changing, str) else changing)}
    )
