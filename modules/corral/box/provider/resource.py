"""What the stand-in knows of a resource type: its properties, and the calls that make, read, change and end it.

The records are in `tables`; the service that Pulumi's engine talks to goes by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.shapes import Prop, text, texts

State = dict[str, Any]  # properties by Pulumi's name: inputs and outputs
TAGS: Mapping[str, Prop] = {"tags": texts()}
TAGS_ALL: Mapping[str, Prop] = {"tagsAll": texts()}
REGION: Mapping[str, Prop] = {"region": text(computed=True, replaces=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What an update has to do: `names` are the differing properties."""

    id: str
    old: State
    new: State
    names: frozenset[str]

    def touches(self, *names: str) -> bool:
        """True if one of the properties differs."""
        return bool(self.names.intersection(names))


def _nothing(cloud: Cloud, change: Change) -> None:
    """For types in which whatever can change is brought about by `settle`."""


def _never(old: State, new: State) -> frozenset[str]:
    """For types in which what makes a new resource does so always."""
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource type.

    `create` makes the object and returns its id; `settle` then brings it to the inputs and waits, and is repeated
    harmlessly after `update`. `read` returns all that AWS tells of it, or raises Gone; it is given what is known, which
    is nothing at an import. `delete` returns when it is really gone. `retag` sets and removes tags.
    """

    token: str
    props: Mapping[str, Prop]
    outputs: Mapping[str, Prop] = field(default_factory=dict)
    create: Callable[[Cloud, State], str]
    read: Callable[[Cloud, str, State], State]
    delete: Callable[[Cloud, str, State], None]
    update: Callable[[Cloud, Change], None] = _nothing
    settle: Callable[[Cloud, str, State], None] | None = None
    retag: Callable[[Cloud, str, State, Mapping[str, str], list[str]], None] | None = None
    autonamed: str = ""  # the property that gets a name where the program gives none
    autoname_prefix: str = ""
    identify: Callable[[State], str] | None = None  # the id, where an import asks in another form
    replaces_if: Callable[[State, State], frozenset[str]] = _never  # what makes a new resource in this case
    is_global: bool = False

    @property
    def inputs(self) -> Mapping[str, Prop]:
        """All that a program may set, and the tags that the provider adds."""
        tags = {**TAGS, **TAGS_ALL} if self.retag else {}
        return {**self.props, **tags, **({} if self.is_global else REGION)}

    @property
    def state(self) -> Mapping[str, Prop]:
        """All properties of the state."""
        return {**self.inputs, **self.outputs}

    def id_of(self, state: State, asked: str) -> str:
        """The id of what was read: an import may ask for it in another form, such as BUCKET/KEY."""
        return str(self.identify(state)) if self.identify else asked
