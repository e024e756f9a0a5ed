"""Records to JSON text and back.

JSON keys are the field names, and equal records give equal bytes, so that a text difference means something.
"""

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from typing import Any, TypeVar

Record = TypeVar("Record")

_BARE = frozenset({str, int, float, bool, type(None)})


def to_json(record: object) -> str:
    """The record as JSON text: fields in their declared order, mappings by key, a newline at the end."""
    return json.dumps(_plain(record), indent=2, ensure_ascii=False) + "\n"


def to_line(record: object) -> str:
    """The same JSON in one line, for files that only programs read: several times faster."""
    return json.dumps(_plain(record), separators=(",", ":"), ensure_ascii=False) + "\n"


def from_json(kind: type[Record], text: str, *, lenient: bool = False) -> Record:
    """The record of this kind that `to_json` wrote.

    `lenient`: accept JSON of another version; missing fields get their defaults, unknown ones are dropped. Raises
    ValueError if the text is not JSON, or if fields are missing, unknown or of another type.
    """
    try:
        document = json.loads(text)
    except RecursionError:  # of lists within lists, a thousand deep
        raise ValueError(f"{kind.__name__}: nested too deeply") from None
    return from_document(kind, document, lenient=lenient)


def from_document(kind: type[Record], document: Any, *, lenient: bool = False) -> Record:
    """The same of JSON that is already read."""
    record: Record = _parse(kind, document, kind.__name__, lenient)
    return record


def _plain(value: object) -> Any:
    if type(value) in _BARE:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(value[key]) for key in sorted(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, IPv4Address | IPv4Network | StrEnum):
        return str(value)
    return value


@lru_cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _parse(kind: Any, value: Any, where: str, lenient: bool) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        one = next(a for a in arguments if a is not type(None))
        return None if value is None else _parse(one, value, where, lenient)
    if origin is tuple:
        items = enumerate(_expect(list, value, where))
        return tuple(_parse(arguments[0], item, f"{where}[{i}]", lenient) for i, item in items)
    if origin is Mapping:
        return {k: _parse(arguments[1], v, f"{where}.{k}", lenient) for k, v in _expect(dict, value, where).items()}
    if is_dataclass(kind):
        return _record(kind, _expect(dict, value, where), where, lenient)
    if kind in (IPv4Address, IPv4Network) or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return kind(value)
    if kind is float:
        return _float(_expect((int, float), value, where), where)
    return _expect(kind, value, where)


def _float(value: int | float, where: str) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise ValueError(f"{where}: too large a number") from None


@lru_cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _record(kind: Any, value: dict[str, Any], where: str, lenient: bool) -> Any:
    known = _hints(kind)
    missing, unknown = sorted(set(known) - set(value)), sorted(set(value) - set(known))
    if lenient:
        missing, unknown = sorted(set(missing) - _optional(kind)), []
    if missing or unknown:
        raise ValueError(f"{where}: missing fields {missing}, unknown fields {unknown}")
    present = {name: hint for name, hint in known.items() if name in value}
    return kind(**{name: _parse(hint, value[name], f"{where}.{name}", lenient) for name, hint in present.items()})


@lru_cache
def _optional(kind: Any) -> frozenset[str]:
    """The fields that have a default."""
    return frozenset(one.name for one in fields(kind) if {one.default, one.default_factory} != {MISSING})


def _expect(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{where}: expected {kind}, found {value!r}")
    return value
