"""Parse the parameters of a `corral box fault` command into a fault record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from corral.box.faults.fault_targets import known_call, known_type, known_zone, opt_in_region, require_queue
from corral.box.faults.records import KINDS, Fault, FaultError, FaultScope, LaunchFailure
from corral.model.enums import Market

_UNITS = {"s": 1, "m": 60, "h": 3600}
_SCOPE_FIELDS = ("type", "zone", "market", "target")
_LONGEST = timedelta(days=365)  # later dates overflow in some programs
_DIGITS = 9  # of the largest number accepted
_CODE = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def read_fault(kind: str, parameters: Mapping[str, str], now: datetime) -> Fault:
    """The fault of this kind that the parameters describe. Hold the cloud's lock. Raises FaultError."""
    known = {field.name for field in fields(KINDS[kind])} - {"scope", "until"} | {*_SCOPE_FIELDS, "duration"}
    if unknown := sorted(parameters.keys() - known):
        raise FaultError(f"{kind} has no option {unknown[0]}")
    given = {name: _READERS[name](text) for name, text in parameters.items()}
    duration = given.pop("duration", None)
    scope = FaultScope(**{name: given.pop(name) for name in _SCOPE_FIELDS if name in given})
    return KINDS[kind](scope=scope, until=now + duration if duration is not None else None, **given)


def parse_delay(text: str) -> timedelta:
    """`120` or `120s` seconds, `2m` minutes, `1h` hours. Raises FaultError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    if not number.isdecimal():
        raise FaultError(f"{text!r} is not a time - write 30s, 2m or 1h")
    if len(number) > _DIGITS or timedelta(seconds=int(number) * _UNITS[unit]) > _LONGEST:
        raise FaultError(f"{text!r} is too long - the maximum is 8760h, a year")
    return timedelta(seconds=int(number) * _UNITS[unit])


def _duration(text: str) -> timedelta:
    time = parse_delay(text)
    if not time:
        raise FaultError("--duration must be positive - write 30s, 2m or 1h")
    return time


def _times(text: str) -> int:
    if text.isdecimal() and len(text) <= _DIGITS and int(text) == 0:
        raise FaultError("--count must be 1 or more")
    return _number(text, "times")


def _remaining(text: str) -> int:
    return _number(text, "instances")


def _number(text: str, noun: str) -> int:
    if not text.isdecimal() or len(text) > _DIGITS:
        raise FaultError(f"{text!r} is not a number of {noun}")
    return int(text)


def _target(text: str) -> str:
    require_queue(text)
    return text


def _error_code(text: str) -> str:
    if not _CODE.fullmatch(text):
        raise FaultError(f"{text!r} is not an error code - write e.g. VcpuLimitExceeded")
    return text


def _policy(text: str) -> str:
    """The policy as compact JSON."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise FaultError(f"the policy is not JSON: {error}") from None
    if not isinstance(document, dict) or "Statement" not in document:
        raise FaultError("the policy has no Statement - write it as for `aws organizations create-policy`")
    return json.dumps(document, separators=(",", ":"))


def _one_of(kind: type[Market] | type[LaunchFailure], noun: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if text not in list(kind):
            raise FaultError(f"unknown {noun} {text!r} - expected one of {', '.join(kind)}")
        return kind(text)

    return read


_READERS: Mapping[str, Callable[[str], Any]] = {
    "type": known_type,
    "zone": known_zone,
    "market": _one_of(Market, "market"),
    "target": _target,
    "hits_left": _times,
    "remaining": _remaining,
    "duration": _duration,
    "after": parse_delay,
    "reason": _one_of(LaunchFailure, "reason"),
    "call": known_call,
    "code": _error_code,
    "message": str,
    "name": str,
    "policy": _policy,
    "region": opt_in_region,
}
