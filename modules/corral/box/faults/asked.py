"""From the words of a command to the record of a fault, and the sentences for words that mean nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from corral.box.faults.names import known_call, known_type, known_zone, require_queue
from corral.box.faults.records import KINDS, Death, Fault, FaultError, Market, Where

_UNITS = {"s": 1, "m": 60, "h": 3600}
_PLACES = ("type", "zone", "market", "of")
_LONGEST = timedelta(days=365)  # what is later has no date that everybody can write
_DIGITS = 9  # of a number that anybody means
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def read_fault(kind: str, words: Mapping[str, str], now: datetime) -> Fault:
    """The fault of this kind that the words describe. Hold the cloud's lock. Raises FaultError."""
    known = {field.name for field in fields(KINDS[kind])} - {"where", "until"} | {*_PLACES, "for"}
    if strange := sorted(words.keys() - known):
        raise FaultError(f"{kind} has no {strange[0]}")
    given = {name: _READERS[name](text) for name, text in words.items()}
    lasts = given.pop("for", None)
    where = Where(**{name: given.pop(name) for name in _PLACES if name in given})
    return KINDS[kind](where=where, until=now + lasts if lasts is not None else None, **given)


def parse_delay(text: str) -> timedelta:
    """`120` or `120s` seconds, `2m` minutes, `1h` hours. Raises FaultError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    if not number.isdecimal():
        raise FaultError(f"{text!r} is not a time - write 30s, 2m or 1h")
    if len(number) > _DIGITS or timedelta(seconds=int(number) * _UNITS[unit]) > _LONGEST:
        raise FaultError(f"{text!r} is too long - a year, 8760h, is the most")
    return timedelta(seconds=int(number) * _UNITS[unit])


def _lasts(text: str) -> timedelta:
    time = parse_delay(text)
    if not time:
        raise FaultError(f"a fault for {text!r} would be over at once - write 30s, 2m or 1h")
    return time


def _times(text: str) -> int:
    if text.isdecimal() and len(text) <= _DIGITS and int(text) == 0:
        raise FaultError("a fault that strikes 0 times is none - write 1 or more")
    return _number(text, "times")


def _room(text: str) -> int:
    return _number(text, "instances")


def _number(text: str, noun: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS:
        raise FaultError(f"{text!r} is not a number of {noun}")
    return int(text)


def _which(text: str) -> str:
    require_queue(text)
    return text


def _error_code(text: str) -> str:
    if not _CODE.fullmatch(text):
        raise FaultError(f"{text!r} is no error code - write one as VcpuLimitExceeded")
    return text


def _one_of(kind: type[Market] | type[Death], noun: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if text not in list(kind):
            raise FaultError(f"there is no {noun} {text!r} - there are {', '.join(kind)}")
        return kind(text)

    return read


_READERS: Mapping[str, Callable[[str], Any]] = {
    "type": known_type,
    "zone": known_zone,
    "market": _one_of(Market, "market"),
    "of": _which,
    "left": _times,
    "room": _room,
    "for": _lasts,
    "after": parse_delay,
    "reason": _one_of(Death, "reason"),
    "call": known_call,
    "code": _error_code,
    "message": str,
}
