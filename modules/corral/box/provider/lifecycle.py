"""Check, diff, create, read, update and delete of any resource type, by its record: what is common to all of them.

Plain Python in and out; the engine's protocol is `service`'s business, the calls to AWS are the tables'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from corral.box.provider.checks import RANDOM_DIGITS, defaults_for
from corral.box.provider.cloud import Cloud
from corral.box.provider.compare import NOTHING, Difference, differences, same, settled
from corral.box.provider.problems import Gone, ProviderError, explained, told
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import ANY, Kind, Prop
from corral.box.provider.wire import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of a provider: where, and which tags everything gets."""

    region: str
    default_tags: Mapping[str, str] = field(default_factory=dict)


class HalfMade(ProviderError):
    """The object exists, but something after its creation failed; it belongs into the state all the same."""

    def __init__(self, id: str, state: State, reason: str) -> None:
        super().__init__(reason)
        self.id, self.state = id, state


def diff(
    resource: Resource, settings: Settings, old: State, new: State, ignored: Iterable[str] = ()
) -> list[Difference]:
    """What would change: the state against the wanted inputs, without the ignored paths."""
    wanted = new if resource.is_global else {"region": settings.region, **new}
    found = differences(resource.inputs, old, wanted)
    forced = resource.replaces_if(old, new)
    return [
        replace(one, replaces=one.replaces or one.name in forced)
        for one in found
        if not any(_covers(path, one.path) for path in ignored)
    ]


def deletes_first(resource: Resource, logical_name: str, old: State, new: State) -> bool:
    """True if the replacement has to wait for the end of the old one: both have the name that the program gives."""
    name = new.get(resource.autonamed) if resource.autonamed else None
    automatic = re.compile(rf".*{re.escape(logical_name.lower())}-[0-9a-f]{{{RANDOM_DIGITS}}}")
    return bool(name) and name == old.get(resource.autonamed) and not automatic.fullmatch(str(name).lower())


def previewed(
    resource: Resource, inputs: State, old: State | None = None, names: frozenset[str] = frozenset()
) -> State:
    """The state as far as it is known before the creation, or before an update that changes `names`."""
    state = {name: inputs[name] for name in resource.inputs if name in inputs}
    for name, prop in resource.state.items():
        if name in state or not (prop.computed or name in resource.outputs):
            continue
        if old is None or _changes(prop, names):
            state[name] = UNKNOWN
        elif name in old:
            state[name] = old[name]
    return state


def create(resource: Resource, cloud: Cloud, settings: Settings, inputs: State) -> tuple[str, State]:
    """The id and state of a new object. Raises HalfMade where it exists but is not as asked for."""
    with told(cloud.url):
        id = resource.create(cloud, inputs)
    try:
        with told(cloud.url):
            if resource.settle:
                resource.settle(cloud, id, inputs)
            return id, _state(resource, cloud, settings, id, inputs)
    except Exception as error:  # whatever it is: an object that is forgotten here costs money for ever
        raise HalfMade(id, {**inputs, **_regional(resource, cloud)}, explained(error)) from error


def read(
    resource: Resource, cloud: Cloud, settings: Settings, id: str, known: State, inputs: State
) -> tuple[State, State]:
    """The state and the inputs as they are in the cloud now. Raises Gone."""
    with told(cloud.url):
        state = _state(resource, cloud, settings, id, {**inputs, **known})
    return state, _inputs(resource.inputs, inputs, state)


def update(resource: Resource, cloud: Cloud, settings: Settings, change: Change) -> State:
    """The state after the change."""
    with told(cloud.url):
        resource.update(cloud, change)
        if resource.settle:
            resource.settle(cloud, change.id, {**change.old, **change.new})
        if resource.retag and change.touches("tags", "tagsAll"):
            _retag(resource, cloud, change)
        computed = {name: change.old[name] for name in resource.outputs if name in change.old}
        return _state(resource, cloud, settings, change.id, {**computed, **change.new})


def delete(resource: Resource, cloud: Cloud, id: str, state: State) -> None:
    """Ends the object and returns when it is gone; one that is gone already is fine."""
    with suppress(Gone), told(cloud.url):
        resource.delete(cloud, id, state)


def _retag(resource: Resource, cloud: Cloud, change: Change) -> None:
    old, new = change.old.get("tagsAll") or {}, change.new.get("tagsAll") or {}
    put = {key: value for key, value in new.items() if old.get(key) != value}
    if resource.retag:
        resource.retag(cloud, change.id, change.old, put, sorted(old.keys() - new.keys()))


def _state(resource: Resource, cloud: Cloud, settings: Settings, id: str, known: State) -> State:
    found = resource.read(cloud, id, known)
    found |= _regional(resource, cloud)
    if resource.retag:
        found["tags"] = _own_tags(
            found.get("tagsAll") or {}, known.get("tags") or {}, defaults_for(known, settings.default_tags)
        )
    return {
        name: value
        for name, prop in resource.state.items()
        if (value := remembered(prop, known.get(name), found.get(name))) is not None
    }


def remembered(prop: Prop, known: Any, found: Any) -> Any:
    """What was found, in the spelling that was known; what AWS does not tell stays as known."""
    if found is None:
        return known if prop.kept else None
    if known is None:
        return found
    if prop.kind is Kind.BLOCK and isinstance(known, dict):
        parts = {name: remembered(part, known.get(name), found.get(name)) for name, part in prop.fields.items()}
        return {name: part for name, part in parts.items() if part is not None}
    if prop.kind is Kind.LIST and prop.item and isinstance(known, list) and len(known) == len(found):
        return [remembered(prop.item, old, new) for old, new in zip(known, found, strict=True)]
    return known if same(prop, found, known) else found


def _regional(resource: Resource, cloud: Cloud) -> State:
    return {} if resource.is_global else {"region": cloud.region}


def _own_tags(tags_all: Mapping[str, str], known: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags_all.items() if key in known or defaults.get(key) != value}


def _inputs(props: Mapping[str, Prop], old: State, state: State) -> State:
    """What a program would have to say for this state, in the terms that it used so far."""
    inputs = {}
    for name, prop in props.items():
        value = state.get(name)
        if name in old:
            inputs[name] = old[name] if value is None and prop.kept else _narrowed(prop, old[name], value)
        elif not prop.computed and value not in NOTHING and value != settled(prop, None):
            inputs[name] = _narrowed(prop, None, value)
    return {name: value for name, value in inputs.items() if value is not None}


def _narrowed(prop: Prop, old: Any, value: Any) -> Any:
    if prop.kind is Kind.BLOCK and isinstance(value, dict):
        return _inputs(prop.fields, old if isinstance(old, dict) else {}, value)
    if prop.kind is Kind.LIST and prop.item and isinstance(value, list):
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
