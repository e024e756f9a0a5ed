"""Validate as much as possible of a spec with errors, by replacing each invalid value with placeholders.

An invalid value is replaced by valid placeholders, or omitted if it is optional, so that the rules can check everything
else. Each placeholder yields a variant of the spec. A finding that occurs in every variant holds whatever the invalid
value was meant to be; a finding that occurs in only some variants is dropped.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from corral.spec.pydantic_messages import details, to_findings
from corral.spec.spec_errors import Loc, SpecFinding
from corral.spec.yaml.yaml_recovery import UNREADABLE, PartialMapping

Model = TypeVar("Model", bound=BaseModel)
_ROUNDS = 5  # a list that was too long is read to its end in the second; more are not known to be needed
_ABSENT = object()  # placeholder: omit the key
_UNKNOWN: Mapping[str, Any] = {}  # what the schema says of a field that it does not know
_TEXTS = ("?", "??")  # two, so that what quotes them differs; no rule takes either for something that it knows
_ADDRESSES = ("10.0.0.1", "192.168.255.254")
_NEARLY_ALL = 2 / 3  # of the variants; of two placeholders that take turns, one is in two thirds of them at most
_HUGE = 1_000_000  # beyond what any rule accepts of a number without an upper bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed(Generic[Model]):
    """A parsed model, or its variants with placeholders. `findings`: errors in its shape."""

    variants: tuple[Model, ...] = ()
    findings: tuple[SpecFinding, ...] = ()
    replaced: frozenset[Loc] = frozenset()

    @property
    def model(self) -> Model | None:
        """The first variant; None if the data could not be parsed at all."""
        return self.variants[0] if self.variants else None

    def certain_findings(self, rules: Callable[[Model], Iterable[SpecFinding]]) -> tuple[SpecFinding, ...]:
        """Return the findings that do not depend on placeholders, and none about placeholders themselves.

        Where every variant has a finding at the same location, keep the wording that nearly all variants share: a
        message that mentions a placeholder's value would confuse the user.
        """
        by_variant = [dict.fromkeys(rules(variant)) for variant in self.variants]
        locs = [{finding.loc for finding in found} for found in by_variant]
        votes = Counter(finding for found in by_variant for finding in found)
        return tuple(
            finding
            for finding, number in votes.items()
            if number > _NEARLY_ALL * len(by_variant)
            and all(finding.loc in there for there in locs)
            and not _is_within(finding.loc, self.replaced)
        )


def parse_model(model: type[Model], raw: Mapping[str, Any]) -> Parsed[Model]:
    """Parse raw data, with placeholders for invalid values and a finding for every error in its shape."""
    found = [SpecFinding(loc, "has no value", "set one, or remove the line") for loc in _locs_of(None, raw, ())]
    unread = (*_locs_of(UNREADABLE, raw, ()), *_unread_fields(model, raw, ()))
    choices = {loc: _choices(model, loc) for loc in (*(finding.loc for finding in found), *unread)}
    cuts: dict[Loc, int] = {}
    for _ in range(_ROUNDS):
        try:
            first = model.model_validate_json(_text(raw, choices, cuts, 0))
            others = _others(model, raw, choices, cuts)
            return Parsed(variants=(first, *others), findings=tuple(found), replaced=frozenset(choices))
        except ValidationError as error:
            found += [finding for finding in to_findings(error, model) if not _is_within(finding.loc, choices)]
            for detail in details(error):
                if detail["type"] == "too_long":
                    cuts[detail["loc"]] = detail["ctx"]["max_length"]
                else:
                    loc = _not_yet_replaced(detail["loc"], choices)
                    choices[loc] = _choices(model, loc)
    return Parsed(findings=tuple(found), replaced=frozenset(choices))


def _others(
    model: type[Model], raw: Mapping[str, Any], choices: Mapping[Loc, Sequence[Any]], cuts: Mapping[Loc, int]
) -> Iterator[Model]:
    for number in range(1, max(map(len, choices.values()), default=1)):
        try:
            yield model.model_validate_json(_text(raw, choices, cuts, number))
        except ValidationError:  # pragma: no cover - a placeholder that its own schema allows and pydantic does not
            continue


def _is_within(loc: Loc, locs: Iterable[Loc]) -> bool:
    return any(loc[: len(one)] == one for one in locs)


def _not_yet_replaced(loc: Loc, choices: Mapping[Loc, Sequence[Any]]) -> Loc:
    while loc in choices:
        loc = loc[:-1]
    return loc


def _locs_of(what: Any, value: Any, loc: Loc) -> Iterator[Loc]:
    """Yield the locations of this marker: None (a key without a value) or UNREADABLE."""
    if value is what:
        yield loc
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _locs_of(what, item, (*loc, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _locs_of(what, item, (*loc, number))


def _unread_fields(model: type[BaseModel], value: Any, loc: Loc) -> Iterator[Loc]:
    """Yield the fields that may exist in the unreadable part of a partial mapping."""
    if isinstance(value, Mapping):
        if isinstance(value, PartialMapping):
            known = _node(model, loc)[0].get("properties", {})
            yield from ((*loc, key) for key in known if key not in value)
        for key, item in value.items():
            yield from _unread_fields(model, item, (*loc, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _unread_fields(model, item, (*loc, number))


def _text(raw: Any, choices: Mapping[Loc, Sequence[Any]], cuts: Mapping[Loc, int], number: int) -> str:
    """Return variant `number` as JSON."""
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
            items_ = [variant(item, (*loc, index)) for index, item in enumerate(value[: cuts.get(loc)])]
            return [item for item in items_ if item is not _ABSENT]
        return value

    return json.dumps(variant(raw, ()))


def _choices(model: type[BaseModel], loc: Loc) -> tuple[Any, ...]:
    """Return the placeholders for this location: omission if it is optional or unknown, and valid values."""
    node, is_optional = _node(model, loc)
    return ((_ABSENT,) if is_optional else ()) + (_values(node, _schema(model)) if node is not _UNKNOWN else ())


def _node(model: type[BaseModel], loc: Loc) -> tuple[Mapping[str, Any], bool]:
    """Return the schema node of this location, and whether the field is optional."""
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
    """Return the node with references resolved and without the null alternative."""
    if "$ref" in node:
        return _plain(schema["$defs"][node["$ref"].rpartition("/")[2]], schema)
    others = [choice for choice in node.get("anyOf", ()) if choice != {"type": "null"}]
    return _plain(others[0], schema) if others else node


def _values(node: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return values that this JSON Schema node allows, as different as possible."""
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
