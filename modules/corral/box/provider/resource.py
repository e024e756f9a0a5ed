"""The record of a resource type: its properties, and the calls that create, read, update and delete it.

The records are in `tables`; `lifecycle` uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_schema import Prop, text, text_map

State = dict[str, Any]  # properties by Pulumi's name: inputs and outputs
TAGS: Mapping[str, Prop] = {"tags": text_map()}
TAGS_ALL: Mapping[str, Prop] = {"tagsAll": text_map()}
REGION: Mapping[str, Prop] = {"region": text(computed=True, replaces=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """How long the provider waits for an object, in seconds; the defaults are its most frequent ones."""

    create: float = 600
    update: float = 600
    delete: float = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceUpdate:
    """An update of an object. `names`: the differing properties."""

    id: str
    old: State
    new: State
    names: frozenset[str]

    def touches(self, *names: str) -> bool:
        """True if one of the properties differs."""
        return bool(self.names.intersection(names))


def _nothing(cloud: RegionClients, change: ResourceUpdate) -> None:
    """The update of types whose changes `apply` makes."""


def _never(old: State, new: State) -> frozenset[str]:
    """No properties: the schema alone decides about replacement."""
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource type.

    `create` creates the object and returns its id. `apply` then sets the other inputs and waits until the object is
    ready; it also runs after `update`. `read` returns the object's properties or raises NotFound; `known` is empty at
    an import. `delete` returns when the object is deleted. `retag` sets and removes tags. `timeouts`: those of
    terraform-provider-aws 6, which a program may replace by its own.
    """

    token: str
    props: Mapping[str, Prop]
    outputs: Mapping[str, Prop] = field(default_factory=dict)
    create: Callable[[RegionClients, State], str]
    read: Callable[[RegionClients, str, State], State]
    delete: Callable[[RegionClients, str, State], None]
    update: Callable[[RegionClients, ResourceUpdate], None] = _nothing
    apply: Callable[[RegionClients, str, State], None] | None = None
    retag: Callable[[RegionClients, str, State, Mapping[str, str], list[str]], None] | None = None
    autonamed: str = ""  # the property with the automatic name, if the program sets none
    autoname_prefix: str = ""
    identify: Callable[[State], str] | None = None  # the id, if an import may name the object in another form
    replaces_if: Callable[[State, State], frozenset[str]] = _never  # properties that replace the resource in this case
    is_global: bool = False
    timeouts: Timeouts = Timeouts()

    @property
    def inputs(self) -> Mapping[str, Prop]:
        """The properties that a program may set, with the tags that the provider adds."""
        tags = {**TAGS, **TAGS_ALL} if self.retag else {}
        return {**self.props, **tags, **({} if self.is_global else REGION)}

    @property
    def state(self) -> Mapping[str, Prop]:
        """All properties of the state."""
        return {**self.inputs, **self.outputs}

    def id_of(self, state: State, request: str) -> str:
        """The id of the object read; an import may request it in another form, such as BUCKET/KEY."""
        return str(self.identify(state)) if self.identify else request
