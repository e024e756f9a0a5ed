"""From the words of a command to the record of a fault, and the sentences for words that mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box.faults.records import KINDS, Death, Fault, FaultError, Market, Where

_UNITS = {"s": 1, "m": 60, "h": 3600}
_PLACES = ("type", "zone", "market", "of")


def read_fault(kind: str, words: Mapping[str, str], now: datetime) -> Fault:
    """The fault of this kind that the words describe. Raises FaultError."""
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
    return timedelta(seconds=int(number) * _UNITS[unit])


def _count(text: str) -> int:
    if not text.isdecimal():
        raise FaultError(f"{text!r} is not a number of times")
    return int(text)


def _type(text: str) -> str:
    if text not in INSTANCE_TYPES:
        raise FaultError(f"{text!r} is no instance type of EC2")
    return text


def _zone(text: str) -> str:
    """The zone's name; it may be said by its id."""
    zones = [zone for held in RegionsAndZonesBackend.zones.values() for zone in held]
    found = next((zone.name for zone in zones if text in (zone.name, zone.zone_id)), None)
    if found is None:
        raise FaultError(f"{text!r} is no zone of EC2 - write us-east-1a or use1-az1")
    return str(found)


def _one_of(kind: type[Market] | type[Death], noun: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if text not in list(kind):
            raise FaultError(f"there is no {noun} {text!r} - there are {', '.join(kind)}")
        return kind(text)

    return read


def _call(text: str) -> str:
    """RunInstances is EC2's; another service's is said with its name: s3:PutObject."""
    return text if ":" in text else f"ec2:{text}"


_READERS: Mapping[str, Callable[[str], Any]] = {
    "type": _type,
    "zone": _zone,
    "market": _one_of(Market, "market"),
    "of": str,
    "left": _count,
    "room": _count,
    "for": parse_delay,
    "after": parse_delay,
    "reason": _one_of(Death, "reason"),
    "call": _call,
    "code": str,
    "message": str,
}
