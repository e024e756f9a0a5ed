"""What can still be checked in a spec with mistakes: the spec without them.

A spec whose shape is wrong in one place is parsed again without that place, so that the rules can speak about the rest
and a user sees every mistake at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from corral.spec.errors import Finding, Loc
from corral.spec.problems import details, findings_of

Model = TypeVar("Model", bound=BaseModel)
_ROUNDS = 5  # taking out an entry can leave a list too short, its parent incomplete, and so on up to the root


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed(Generic[Model]):
    """A model, or as much of it as could be saved; `findings` say what is wrong with its shape."""

    model: Model | None
    findings: tuple[Finding, ...] = ()
    removed: frozenset[Loc] = frozenset()
    kept: Mapping[Loc, tuple[int, ...]] = field(default_factory=dict)

    def original(self, loc: Loc) -> Loc:
        """Where in the file that stands which is at `loc` in the model: entries may have been taken out before it."""
        return _original(loc, self.kept)

    def is_touched(self, loc: Loc) -> bool:
        """Whether something at, above or below this place of the file was taken out."""
        return any(loc[: len(gone)] == gone or gone[: len(loc)] == loc for gone in self.removed)


def parse_model(model: type[Model], raw: Mapping[str, Any]) -> Parsed[Model]:
    """The model that this raw data is, or what can be saved of it, with every mistake in its shape."""
    empty = tuple(_empty_places(raw, ()))
    found = tuple(Finding(loc, "has no value - give one, or leave the line out") for loc in empty)
    removed = frozenset(empty)
    for attempt in range(_ROUNDS):
        kept: dict[Loc, tuple[int, ...]] = {}
        text = json.dumps(_without(raw, removed, (), (), kept))
        try:
            saved = model.model_validate_json(text)
            return Parsed(model=saved, findings=found, removed=removed, kept=kept)
        except ValidationError as error:
            if attempt == 0:  # later ones only follow from what was taken out
                found += tuple(_findings(error, model, removed, kept))
            removed |= {_original(_faulty(detail), kept) for detail in details(error)}
    return Parsed(model=None, findings=found, removed=removed)


def _findings(
    error: ValidationError, model: type[Model], removed: frozenset[Loc], kept: Mapping[Loc, tuple[int, ...]]
) -> Iterator[Finding]:
    """What pydantic found, without what is missing only because it had no value."""
    for finding in findings_of(error, model):
        loc = _original(finding.loc, kept)
        if loc not in removed:
            yield Finding(loc, finding.message)


def _empty_places(value: Any, loc: Loc) -> Iterator[Loc]:
    """Where a key or an entry stands without a value: YAML's null, which is easily written by mistake."""
    if value is None:
        yield loc
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _empty_places(item, (*loc, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _empty_places(item, (*loc, number))


def _original(loc: Loc, kept: Mapping[Loc, tuple[int, ...]]) -> Loc:
    steps: list[str | int] = []
    for number, step in enumerate(loc):
        numbers = kept.get(loc[:number])
        steps.append(numbers[step] if isinstance(step, int) and numbers else step)
    return tuple(steps)


def _faulty(detail: ErrorDetails) -> Loc:
    """What must be left out for this mistake to vanish: the parent where a field is missing, else the value itself."""
    return detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]


def _without(value: Any, removed: frozenset[Loc], there: Loc, here: Loc, kept: dict[Loc, tuple[int, ...]]) -> Any:
    """The value without the removed places. `there` is its place in the file, `here` its place in the result."""
    if isinstance(value, Mapping):
        return {
            key: _without(item, removed, (*there, key), (*here, key), kept)
            for key, item in value.items()
            if (*there, key) not in removed
        }
    if isinstance(value, list):
        numbers = tuple(number for number in range(len(value)) if (*there, number) not in removed)
        kept[here] = numbers
        return [
            _without(value[number], removed, (*there, number), (*here, place), kept)
            for place, number in enumerate(numbers)
        ]
    return value
