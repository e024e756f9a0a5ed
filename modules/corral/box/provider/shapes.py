"""What a property of a resource type is: its kind, who decides it, and how AWS calls it.

The tables are written in these words. Checking, comparing and translating values by them is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """The kinds of value; `switch` is a yes or no that the SDK writes as text, `document` is JSON as text."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    FLAG = "yes or no"
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

    `replaces`: a change of it makes a new resource. `computed`: AWS decides it where the program does not.
    `kept`: AWS does not tell it, the state remembers it. `changes_with`: properties whose change makes this output
    unknown in a preview. `aws` is the name in API calls, its own with a capital letter if empty.
    """

    kind: Kind
    item: Prop | None = None
    fields: Mapping[str, Prop] = field(default_factory=dict)
    required: bool = False
    replaces: bool = False
    computed: bool = False
    kept: bool = False
    default: Any = None
    aws: str = ""
    changes_with: frozenset[str] = frozenset()


ANY = "*"  # in changes_with: whatever changes


def text(**facts: Any) -> Prop:
    """A property that is text."""
    return _prop(Kind.TEXT, facts)


def whole(**facts: Any) -> Prop:
    """A property that is a whole number."""
    return _prop(Kind.WHOLE, facts)


def number(**facts: Any) -> Prop:
    """A property that is a number."""
    return _prop(Kind.NUMBER, facts)


def flag(**facts: Any) -> Prop:
    """A property that is true or false."""
    return _prop(Kind.FLAG, facts)


def switch(**facts: Any) -> Prop:
    """A property that the SDK writes as 'true' or 'false'."""
    return _prop(Kind.SWITCH, facts)


def document(**facts: Any) -> Prop:
    """A property that is a JSON document; its spelling does not matter."""
    return _prop(Kind.DOCUMENT, facts)


def asset(**facts: Any) -> Prop:
    """A property that is a file or text asset."""
    return _prop(Kind.ASSET, facts)


def words(**facts: Any) -> Prop:
    """A property that is a list of texts whose order matters."""
    return replace(_prop(Kind.LIST, facts), item=text())


def wordset(**facts: Any) -> Prop:
    """A property that is a list of texts whose order does not matter."""
    return replace(_prop(Kind.SET, facts), item=text())


def texts(**facts: Any) -> Prop:
    """A property that maps names to texts."""
    return replace(_prop(Kind.MAP, facts), item=text())


def block(fields: Mapping[str, Prop], **facts: Any) -> Prop:
    """A property that is an object with the given fields."""
    return replace(_prop(Kind.BLOCK, facts), fields=fields)


def blocks(fields: Mapping[str, Prop], **facts: Any) -> Prop:
    """A property that is a list of objects whose order matters."""
    return replace(_prop(Kind.LIST, facts), item=block(fields))


def blockset(fields: Mapping[str, Prop], **facts: Any) -> Prop:
    """A property that is a list of objects whose order does not matter."""
    return replace(_prop(Kind.SET, facts), item=block(fields))


def _prop(kind: Kind, facts: Mapping[str, Any]) -> Prop:
    changing = facts.get("changes_with", ())
    return Prop(
        kind=kind, **{**facts, "changes_with": frozenset([changing] if isinstance(changing, str) else changing)}
    )
