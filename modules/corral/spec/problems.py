"""pydantic's findings in our words: what is wrong, both values, and what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from corral.catalog.names import suggestion
from corral.spec.errors import Finding, Loc

_SHOWN = 60  # characters of a wrong value; more would hide the message


def findings_of(error: ValidationError, model: type[BaseModel]) -> Iterator[Finding]:
    """What pydantic found, in its order, as findings about this model."""
    for detail in details(error):
        yield Finding(detail["loc"], _message(detail, model))


def details(error: ValidationError) -> tuple[ErrorDetails, ...]:
    """What pydantic found, without what only follows from the rest."""
    return tuple(detail for detail in error.errors(include_url=False) if not _is_consequence(detail))


def shown(value: Any) -> str:
    """A wrong value as it looks in YAML, on one line."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")
        case Mapping():
            return "fields" if value else "{}"
        case list() | tuple():
            return "a list"
        case _:
            return str(value)[:_SHOWN]


def _is_consequence(detail: ErrorDetails) -> bool:
    """Whether pydantic finds a list too short only because some of its entries are wrong."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _message(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, loc, value = detail["type"], detail["loc"], detail["input"]
    if kind == "missing":
        return f"is missing - {_description(model, loc)}"
    if kind == "extra_forbidden":
        return f"is not a known field - {suggestion(str(loc[-1]), _field_names(_model_at(model, loc[:-1])))}"
    if kind == "model_type":
        return f"expected fields ({', '.join(_field_names(_model_at(model, loc)))}), found {shown(value)}"
    return _MESSAGES[kind](shown(value), detail.get("ctx", {}), value) if kind in _MESSAGES else _unforeseen(detail)


def _unforeseen(detail: ErrorDetails) -> str:
    return f"{shown(detail['input'])} cannot be used: {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _choice(_: str, context: Mapping[str, Any], value: Any) -> str:
    known = re.findall(r"'([^']*)'", context["expected"])
    return f"{shown(value)} is not possible - {suggestion(value if isinstance(value, str) else '', known)}"


def _expected(what: str) -> Callable[[str, Mapping[str, Any], Any], str]:
    return lambda value, _, __: f"expected {what}, found {value}"


_MESSAGES: Mapping[str, Callable[[str, Mapping[str, Any], Any], str]] = {
    "literal_error": _choice,
    "enum": _choice,
    "string_type": lambda value, _, __: f"expected text, found {value} - put it in quotes",
    "int_type": _expected("a whole number"),
    "int_from_float": _expected("a whole number"),
    "float_type": _expected("a number"),
    "finite_number": _expected("a number"),
    "bool_type": _expected("true or false"),
    "tuple_type": _expected("a list"),
    "dict_type": _expected("fields"),
    "mapping_type": _expected("fields"),
    "duration": lambda value, _, __: f"{value} is not a duration - write it like 10m, 12h, 1h30m or 2d",
    "amount": lambda value, _, __: f"{value} is not an amount - write it like 15T, 300B, 4M or 4194304",
    "no_interval": lambda value, _, __: f"{value} is no time between two checkpoints - write it like 30m, or choose",
    "choose_or_duration": lambda value, _, __: f"{value} is not a duration - write it like 30m or 1h30m, or choose",
    "choose_or_fields": lambda value, _, __: f"{value} is not possible - write choose, or fields",
    "ip_v4_network": lambda value, _, __: f"{value} is not an IPv4 network - write it like 10.64.0.0/16",
    "ip_v4_address": lambda value, _, __: f"{value} is not an IPv4 address - write it like 10.64.0.20",
    "too_short": lambda _, context, __: f"is empty - give at least {context['min_length']}",
    "too_long": lambda _, context, __: (
        f"has {context['actual_length']} entries - at most {context['max_length']} are possible"
    ),
    "greater_than": lambda value, context, _: f"{value} is too small - use more than {context['gt']:g}",
    "greater_than_equal": lambda value, context, _: f"{value} is too small - use {context['ge']} or more",
    "less_than_equal": lambda value, context, _: f"{value} is too large - use {context['le']} or less",
}


def _description(model: type[BaseModel], loc: Loc) -> str:
    fields = _fields(_model_at(model, loc[:-1]))
    text = str(fields[str(loc[-1])].description)
    return f"{text[0].lower()}{text[1:]}".rstrip(".") if text[1].islower() or text[1] == " " else text.rstrip(".")


def _field_names(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(_fields(model))


def _fields(model: type[BaseModel]) -> Mapping[str, Any]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_at(model: type[BaseModel], loc: Loc) -> type[BaseModel]:
    """The model that the value at this place is parsed by."""
    for step in loc:
        if isinstance(step, str):
            model = _model_within(_fields(model)[step].annotation)
    return model


def _model_within(annotation: Any) -> type[BaseModel]:
    """The one model that an annotation such as `tuple[QueueSpec, ...]` or `HomeSpec | None` speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(_model_within(argument) for argument in get_args(annotation) if argument not in (None, type(None), ...))
