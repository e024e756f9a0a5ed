"""Turn pydantic errors into messages: what is wrong, both values, and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from corral.catalog.loader.suggestions import suggestion
from corral.spec.spec_errors import Loc, SpecFinding, SpecProblem

_Build = Callable[[str, Mapping[str, Any], Any], SpecProblem]  # from the value as text, pydantic's context, the value
_SHOWN = 60  # characters of a wrong value; more would hide the message


def to_findings(error: ValidationError, model: type[BaseModel]) -> Iterator[SpecFinding]:
    """Yield pydantic's errors as findings about this model, in order."""
    for detail in details(error):
        yield _problem(detail, model).at(detail["loc"])


def details(error: ValidationError) -> tuple[ErrorDetails, ...]:
    """Return pydantic's errors, without those that only follow from others."""
    return tuple(detail for detail in error.errors(include_url=False) if not _is_consequence(detail))


def format_value(value: Any) -> str:
    """Return an invalid value as YAML on one line."""
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
    """Whether a list is too short only because some of its entries are invalid."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> SpecProblem:
    kind, loc, value = detail["type"], detail["loc"], detail["input"]
    if kind == "missing":
        return SpecProblem("is missing", _description(model, loc))
    if kind == "extra_forbidden":
        return SpecProblem("unknown field", suggestion(str(loc[-1]), _field_names(_model_at(model, loc[:-1]))))
    if kind == "model_type":
        fields = ", ".join(_field_names(_model_at(model, loc)))
        return SpecProblem(f"expected fields ({fields}), found {format_value(value)}")
    if kind not in _PROBLEMS:
        return _unforeseen(detail)
    return _PROBLEMS[kind](format_value(value), detail.get("ctx", {}), value)


def _unforeseen(detail: ErrorDetails) -> SpecProblem:
    why = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return SpecProblem(f"{format_value(detail['input'])} cannot be used: {why}")


def _choice(_: str, context: Mapping[str, Any], value: Any) -> SpecProblem:
    known = re.findall(r"'([^']*)'", context["expected"])
    hint = suggestion(value if isinstance(value, str) else "", known)
    return SpecProblem(f"invalid value {format_value(value)}; {hint}")


def _expected(what: str) -> _Build:
    return lambda value, _, __: SpecProblem(f"expected {what}, found {value}")


_PROBLEMS: Mapping[str, _Build] = {
    "literal_error": _choice,
    "enum": _choice,
    "string_type": lambda value, _, __: SpecProblem(f"expected text, found {value}", "quote it"),
    "int_type": _expected("a whole number"),
    "int_from_float": _expected("a whole number"),
    "float_type": _expected("a number"),
    "finite_number": _expected("a number"),
    "bool_type": _expected("true or false"),
    "tuple_type": _expected("a list"),
    "dict_type": _expected("fields"),
    "mapping_type": _expected("fields"),
    "duration": lambda value, _, __: SpecProblem(f"{value} is not a duration", "write it like 10m, 12h, 1h30m or 2d"),
    "amount": lambda value, _, __: SpecProblem(f"{value} is not an amount", "write it like 15T, 300B, 4M or 4194304"),
    "no_interval": lambda value, _, __: SpecProblem(f"{value} is not an interval", "write it like 30m, or choose"),
    "choose_or_duration": lambda value, _, __: SpecProblem(
        f"{value} is not a duration", "write it like 30m or 1h30m, or choose"
    ),
    "choose_or_fields": lambda value, _, __: SpecProblem(f"invalid value {value}; write choose, or fields"),
    "ip_v4_network": lambda value, _, __: SpecProblem(f"{value} is not an IPv4 network", "write it like 10.64.0.0/16"),
    "ip_v4_address": lambda value, _, __: SpecProblem(f"{value} is not an IPv4 address", "write it like 10.64.0.20"),
    **dict.fromkeys(
        ("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"),
        lambda value, _, __: SpecProblem(f"{value} is not a date", "write it like 2026-11-21"),
    ),
    "too_short": lambda _, context, __: SpecProblem("is empty", f"add at least {context['min_length']}"),
    "too_long": lambda _, context, __: SpecProblem(
        f"has {context['actual_length']} entries", f"use at most {context['max_length']}"
    ),
    "greater_than": lambda value, context, _: SpecProblem(f"{value} is too small", f"use more than {context['gt']:g}"),
    "greater_than_equal": lambda value, context, _: SpecProblem(
        f"{value} is too small", f"use {context['ge']} or more"
    ),
    "less_than_equal": lambda value, context, _: SpecProblem(f"{value} is too large", f"use {context['le']} or less"),
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
    """Return the model that parses the value at this location."""
    kind: Any = model
    for step in loc:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = _alone(_fields(kind)[str(step)].annotation)
        else:  # tuple[QueueSpec, ...], Mapping[str, PriceRow]
            kind = _alone(get_args(kind)[1 if get_origin(kind) is Mapping else 0])
    return cast(type[BaseModel], kind)


def _alone(annotation: Any) -> Any:
    """Return the annotation without None and Annotated: HomeSpec for `HomeSpec | None`."""
    if get_origin(annotation) not in (Annotated, Union, UnionType):
        return annotation
    return _alone(next(one for one in get_args(annotation) if one is not NoneType))
