"""What can still be checked in a spec with mistakes: the spec with something possible in each wrong place.

A value that cannot be what it is meant to be is replaced by placeholders, or left out where it may be, so that the
rules can speak about all the rest, at its own place. Each placeholder gives a variant of the spec; what the rules find
in all variants holds whatever the wrong value was meant to be, and what they find in some only is left unsaid.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from corral.spec.errors import Finding, Loc
from corral.spec.problems import details, findings_of
from corral.spec.yaml_parts import UNREADABLE, Torn

Model = TypeVar("Model", bound=BaseModel)
_ROUNDS = 5  # a list that was too long is read to its end in the second; more are not known to be needed
_ABSENT = object()  # in the place of a value: the key is left out
_UNKNOWN: Mapping[str, Any] = {}  # what the schema says of a field that it does not know
_TEXTS = ("?", "??")  # two, so that what quotes them differs; no rule takes either for something that it knows
_ADDRESSES = ("10.0.0.1", "192.168.255.254")
_NEARLY_ALL = 2 / 3  # of the variants; of two placeholders that take turns, one is in two thirds of them at most
_HUGE = 1_000_000  # beyond what any rule accepts of a number without an upper bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed(Generic[Model]):
    """A model, or the variants of it that could be saved; `findings` say what is wrong with its shape."""

    variants: tuple[Model, ...] = ()
    findings: tuple[Finding, ...] = ()
    replaced: frozenset[Loc] = frozenset()

    @property
    def model(self) -> Model | None:
        """The model, with what stands in the wrong places by default; None where nothing could be saved."""
        return self.variants[0] if self.variants else None

    def holding(self, rules: Callable[[Model], Iterable[Finding]]) -> tuple[Finding, ...]:
        """What these rules find whatever stands in the wrong places, and never about what corral put there.

        Of a place where every variant has something wrong, it is what nearly all of them have: words that only one
        placeholder brings about (another number, an earlier entry) are not the user's to read.
        """
        by_variant = [dict.fromkeys(rules(variant)) for variant in self.variants]
        places = [{finding.loc for finding in found} for found in by_variant]
        votes = Counter(finding for found in by_variant for finding in found)
        return tuple(
            finding
            for finding, number in votes.items()
            if number > _NEARLY_ALL * len(by_variant)
            and all(finding.loc in there for there in places)
            and not _is_within(finding.loc, self.replaced)
        )


def parse_model(model: type[Model], raw: Mapping[str, Any]) -> Parsed[Model]:
    """The model that this raw data is, or what can be saved of it, with every mistake in its shape."""
    found = [Finding(loc, "has no value - give one, or leave the line out") for loc in _places_of(None, raw, ())]
    unread = (*_places_of(UNREADABLE, raw, ()), *_places_not_seen(model, raw, ()))
    choices = {loc: _choices(model, loc) for loc in (*(finding.loc for finding in found), *unread)}
    cuts: dict[Loc, int] = {}
    for _ in range(_ROUNDS):
        try:
            first = model.model_validate_json(_text(raw, choices, cuts, 0))
            others = _others(model, raw, choices, cuts)
            return Parsed(variants=(first, *others), findings=tuple(found), replaced=frozenset(choices))
        except ValidationError as error:
            found += [finding for finding in findings_of(error, model) if not _is_within(finding.loc, choices)]
            for detail in details(error):
                if detail["type"] == "too_long":
                    cuts[detail["loc"]] = detail["ctx"]["max_length"]
                else:
                    place = _not_yet_replaced(detail["loc"], choices)
                    choices[place] = _choices(model, place)
    return Parsed(findings=tuple(found), replaced=frozenset(choices))


def _others(
    model: type[Model], raw: Mapping[str, Any], choices: Mapping[Loc, Sequence[Any]], cuts: Mapping[Loc, int]
) -> Iterator[Model]:
    for number in range(1, max(map(len, choices.values()), default=1)):
        try:
            yield model.model_validate_json(_text(raw, choices, cuts, number))
        except ValidationError:  # pragma: no cover - a placeholder that its own schema allows and pydantic does not
            continue


def _is_within(loc: Loc, places: Iterable[Loc]) -> bool:
    return any(loc[: len(place)] == place for place in places)


def _not_yet_replaced(loc: Loc, choices: Mapping[Loc, Sequence[Any]]) -> Loc:
    while loc in choices:
        loc = loc[:-1]
    return loc


def _places_of(what: Any, value: Any, loc: Loc) -> Iterator[Loc]:
    """Where this stands: None where a key is without a value, which is easily written by mistake, or UNREADABLE."""
    if value is what:
        yield loc
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _places_of(what, item, (*loc, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places_of(what, item, (*loc, number))


def _places_not_seen(model: type[BaseModel], value: Any, loc: Loc) -> Iterator[Loc]:
    """The fields that torn ones may have where nobody could read them."""
    if isinstance(value, Mapping):
        if isinstance(value, Torn):
            known = _node(model, loc)[0].get("properties", {})
            yield from ((*loc, key) for key in known if key not in value)
        for key, item in value.items():
            yield from _places_not_seen(model, item, (*loc, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _places_not_seen(model, item, (*loc, number))


def _text(raw: Any, choices: Mapping[Loc, Sequence[Any]], cuts: Mapping[Loc, int], number: int) -> str:
    """The variant of this number as JSON."""
    chosen = {loc: possible[number % len(possible)] for loc, possible in choices.items()}
    keys: dict[Loc, list[str | int]] = defaultdict(list)
    for loc in chosen:
        keys[loc[:-1]].append(loc[-1] if loc else "")

    def variant(value: Any, loc: Loc) -> Any:
        if loc in chosen:
            return chosen[loc]
        if isinstance(value, Mapping):
            missing = [key for key in keys.get(loc, ()) if key not in value]
            items = {key: variant(value.get(key), (*loc, key)) for key in (*value, *missing)}
            return {key: item for key, item in items.items() if item is not _ABSENT}
        if isinstance(value, list):
            items_ = [variant(item, (*loc, place)) for place, item in enumerate(value[: cuts.get(loc)])]
            return [item for item in items_ if item is not _ABSENT]
        return value

    return json.dumps(variant(raw, ()))


def _choices(model: type[BaseModel], loc: Loc) -> tuple[Any, ...]:
    """What can stand at this place: nothing, where it may be left out or is not known, and values of its kind."""
    node, is_optional = _node(model, loc)
    return ((_ABSENT,) if is_optional else ()) + (_values(node, _schema(model)) if node is not _UNKNOWN else ())


def _node(model: type[BaseModel], loc: Loc) -> tuple[Mapping[str, Any], bool]:
    """What the schema says about this place, and whether nothing may stand there."""
    schema = _schema(model)
    node, is_optional = _plain(schema, schema), False
    for step in loc:
        if isinstance(step, int):
            node, is_optional = _plain(node.get("items", {}), schema), False
            continue
        properties, rest = node.get("properties", {}), node.get("additionalProperties")
        if step not in properties and not isinstance(rest, Mapping):
            return _UNKNOWN, True
        is_optional = step not in node.get("required", ())
        node = _plain(properties.get(step, rest), schema)
    return node, is_optional


@cache
def _schema(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema(by_alias=True)


def _plain(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node without references, and without null beside it."""
    if "$ref" in node:
        return _plain(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    others = [choice for choice in node.get("anyOf", ()) if choice != {"type": "null"}]
    return _plain(others[0], schema) if others else node


def _values(node: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """Values that this node of a JSON Schema allows, as different as they can be."""
    if "enum" in node or "const" in node:
        return tuple(node.get("enum") or (node["const"],))
    kinds = node.get("type", "object")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "boolean":
            return (False, True)
        case "integer" | "number":
            least = node.get("minimum", node.get("exclusiveMinimum", 0) + (1 if "exclusiveMinimum" in node else 0))
            return (least, node.get("maximum", _HUGE))
        case "string":
            return tuple(node.get("examples") or (_ADDRESSES if node.get("format") == "ipv4" else _TEXTS))
        case "array":
            number = node.get("minItems", 0)
            if not number:
                return ([],)
            return tuple([item] * number for item in _values(_plain(node["items"], schema), schema))
        case _:
            needed = {key: _values(_plain(node["properties"][key], schema), schema) for key in node.get("required", ())}
            count = max(map(len, needed.values()), default=1)
            return tuple({key: of[n % len(of)] for key, of in needed.items()} for n in range(count))
