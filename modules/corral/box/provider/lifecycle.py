"""Diff, create, read, update and delete a resource of any type, as its `Resource` record describes.

Values are plain Python. `service` implements the engine's protocol; the tables make the calls to AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.configuration import ProviderSettings
from corral.box.provider.diff import NOTHING, Difference, are_equivalent, differences, with_default
from corral.box.provider.property_schema import ANY, Prop, PropertyKind
from corral.box.provider.property_validation import RANDOM_DIGITS, defaults_for
from corral.box.provider.protobuf_values import UNKNOWN
from corral.box.provider.provider_errors import (
    NotFound,
    ProviderError,
    describe_error,
    is_not_found,
    translate_errors,
)
from corral.box.provider.resource import Resource, ResourceUpdate, State


class InitFailed(ProviderError):
    """The object exists, but a step after its creation failed. The state must record it."""

    def __init__(self, id: str, state: State, reason: str) -> None:
        super().__init__(reason)
        self.id, self.state = id, state


def diff(
    resource: Resource, settings: ProviderSettings, old: State, new: State, ignored: Iterable[str] = ()
) -> list[Difference]:
    """The differences between the state and the desired inputs, without the ignored paths."""
    wanted = new if resource.is_global else {"region": settings.region, **new}
    found = differences(resource.inputs, old, wanted)
    forced = resource.replaces_if(old, new)
    return [
        replace(one, replaces=one.replaces or one.name in forced)
        for one in found
        if not any(_covers(path, one.path) for path in ignored)
    ]


def deletes_before_replace(resource: Resource, logical_name: str, old: State, new: State) -> bool:
    """True if the old object must be deleted before its replacement, because both have the program's name."""
    name = new.get(resource.autonamed) if resource.autonamed else None
    automatic = re.compile(rf".*{re.escape(logical_name.lower())}-[0-9a-f]{{{RANDOM_DIGITS}}}")
    return bool(name) and name == old.get(resource.autonamed) and not automatic.fullmatch(str(name).lower())


def preview(resource: Resource, inputs: State, old: State | None = None, names: frozenset[str] = frozenset()) -> State:
    """The state as known before a creation, or before an update that changes `names`."""
    state = {name: inputs[name] for name in resource.inputs if name in inputs}
    for name, prop in resource.state.items():
        if name in state or not (prop.computed or name in resource.outputs):
            continue
        if old is None or _changes(prop, names):
            state[name] = UNKNOWN
        elif name in old:
            state[name] = old[name]
    return state


def create(resource: Resource, cloud: RegionClients, settings: ProviderSettings, inputs: State) -> tuple[str, State]:
    """Create an object. Returns its id and state. Raises InitFailed if it exists but a later step failed."""
    with translate_errors(cloud.url):
        id = resource.create(cloud, inputs)
    try:
        with translate_errors(cloud.url):
            return id, cloud.retried(lambda: _finish(resource, cloud, settings, id, inputs), is_not_found)
    except Exception as error:  # any error: an object that the state does not record costs money forever
        raise InitFailed(id, {**inputs, **_regional(resource, cloud)}, describe_error(error)) from error


def read(
    resource: Resource, cloud: RegionClients, settings: ProviderSettings, id: str, known: State, inputs: State
) -> tuple[State, State]:
    """The current state and inputs in the cloud. Raises NotFound."""
    with translate_errors(cloud.url):
        state = _state(resource, cloud, settings, id, {**inputs, **known})
    return state, _inputs(resource.inputs, inputs, state)


def update(resource: Resource, cloud: RegionClients, settings: ProviderSettings, change: ResourceUpdate) -> State:
    """Update an object. Returns its new state."""
    with translate_errors(cloud.url):
        resource.update(cloud, change)
        if resource.apply:
            resource.apply(cloud, change.id, {**change.old, **change.new})
        if resource.retag and change.touches("tags", "tagsAll"):
            _retag(resource, cloud, change)
        computed = {name: change.old[name] for name in resource.outputs if name in change.old}
        return _state(resource, cloud, settings, change.id, {**computed, **change.new})


def delete(resource: Resource, cloud: RegionClients, id: str, state: State) -> None:
    """Delete an object and wait until it is deleted. A missing object is no error."""
    with suppress(NotFound), translate_errors(cloud.url):
        resource.delete(cloud, id, state)


def _finish(resource: Resource, cloud: RegionClients, settings: ProviderSettings, id: str, inputs: State) -> State:
    """Set the inputs that a creation does not take. Returns the state of the object. It can be repeated."""
    if resource.apply:
        resource.apply(cloud, id, inputs)
    return _state(resource, cloud, settings, id, inputs)


def _retag(resource: Resource, cloud: RegionClients, change: ResourceUpdate) -> None:
    old, new = change.old.get("tagsAll") or {}, change.new.get("tagsAll") or {}
    put = {key: value for key, value in new.items() if old.get(key) != value}
    if resource.retag:
        resource.retag(cloud, change.id, change.old, put, sorted(old.keys() - new.keys()))


def _state(resource: Resource, cloud: RegionClients, settings: ProviderSettings, id: str, known: State) -> State:
    found = resource.read(cloud, id, known)
    found |= _regional(resource, cloud)
    if resource.retag:
        found["tags"] = _own_tags(
            found.get("tagsAll") or {}, known.get("tags") or {}, defaults_for(known, settings.default_tags)
        )
    return {
        name: value
        for name, prop in resource.state.items()
        if (value := merge_known(prop, known.get(name), found.get(name))) is not None
    }


def merge_known(prop: Prop, known: Any, found: Any) -> Any:
    """The found value in its known spelling; a value that AWS does not return stays as known."""
    if found is None:
        return known if prop.write_only else None
    if known is None:
        return found
    if prop.kind is PropertyKind.BLOCK and isinstance(known, dict):
        parts = {name: merge_known(part, known.get(name), found.get(name)) for name, part in prop.fields.items()}
        return {name: part for name, part in parts.items() if part is not None}
    if prop.kind is PropertyKind.LIST and prop.item and isinstance(known, list) and len(known) == len(found):
        return [merge_known(prop.item, old, new) for old, new in zip(known, found, strict=True)]
    return known if are_equivalent(prop, found, known) else found


def _regional(resource: Resource, cloud: RegionClients) -> State:
    return {} if resource.is_global else {"region": cloud.region}


def _own_tags(tags_all: Mapping[str, str], known: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags_all.items() if key in known or defaults.get(key) != value}


def _inputs(props: Mapping[str, Prop], old: State, state: State) -> State:
    """The inputs of a program with this state, in the spelling of its old inputs."""
    inputs = {}
    for name, prop in props.items():
        value = state.get(name)
        if name in old:
            inputs[name] = old[name] if value is None and prop.write_only else _narrowed(prop, old[name], value)
        elif not prop.computed and value not in NOTHING and value != with_default(prop, None):
            inputs[name] = _narrowed(prop, None, value)
    return {name: value for name, value in inputs.items() if value is not None}


def _narrowed(prop: Prop, old: Any, value: Any) -> Any:
    if prop.kind is PropertyKind.BLOCK and isinstance(value, dict):
        return _inputs(prop.fields, old if isinstance(old, dict) else {}, value)
    if prop.kind is PropertyKind.LIST and prop.item and isinstance(value, list):
        before = old if isinstance(old, list) and len(old) == len(value) else [None] * len(value)
        return [_narrowed(prop.item, was, part) for was, part in zip(before, value, strict=True)]
    return value


def _changes(prop: Prop, names: frozenset[str]) -> bool:
    return bool(names) and (ANY in prop.changes_with or bool(names & prop.changes_with))


def _covers(ignored: str, path: str) -> bool:
    """True if the path is the ignored one or below it."""
    bare = re.sub(r"\[\"?|\"?\]", ".", path).replace("..", ".").rstrip(".")
    pattern = re.sub(r"\[\"?|\"?\]", ".", ignored).replace("..", ".").rstrip(".")
    return f"{bare}.".startswith(f"{pattern}.") or pattern == ANY
