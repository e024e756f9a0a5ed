"""Compares what two providers did in the same life: calls that change something, and the stacks' outputs. Pure."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from corral.box.api_calls import READS

# What differs between any two lives: ids, Pulumi's names, times, tokens, addresses, texts that hold them.
VARIES = re.compile(
    r"(?:vpc|subnet|sg|sgr|rtb|rtbassoc|igw|nat|eni|eipalloc|eipassoc|i|vol|lt|pg|fs|fsmt|dra|vpce|scr|key|ami)-[0-9a-f]{8,}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d+\.\d+\.\d+\.\d+|[0-9a-f]{16,}"
    r"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)|-[0-9a-f]{7}\b|\b[0-9a-f]{8}\b|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}"
    r"|\b(?:AROA|AIPA|ANPA)\w{12,}|\bZ[0-9A-Z]{10,}"
)
SECRET = "4dabf18193072939515e22adb298388d"  # Pulumi's key in a record that holds an encrypted value
ENGINES = frozenset({"__meta", "__pulumi_raw_state_delta", "__defaults"})  # how a provider keeps its state


def changing_calls(calls: Iterable[Mapping[str, Any]]) -> Mapping[str, int]:
    """How often each action that changes something was called with success, by service and action."""
    return Counter(
        f"{call['service']}:{call['action']}"
        for call in calls
        if call["status"] < 400 and call["action"] and not READS.match(call["action"])
    )


def call_differences(official: Mapping[str, int], stand_in: Mapping[str, int]) -> Sequence[tuple[str, int, int]]:
    """Action, calls of the official provider, calls of the stand-in, where the numbers differ."""
    return [
        (action, official.get(action, 0), stand_in.get(action, 0))
        for action in sorted(official.keys() | stand_in.keys())
        if official.get(action, 0) != stand_in.get(action, 0)
    ]


def output_differences(
    official: Sequence[Mapping[str, Any]], stand_in: Sequence[Mapping[str, Any]]
) -> Sequence[tuple[str, str, str, str]]:
    """Type, property and both values where the resources of two states differ: one example of each property.

    An empty value is none. Ids, times and addresses count as equal.
    """
    theirs, ours = _by_name(official), _by_name(stand_in)
    found = {(urn.split("::")[2], "", "declared", "missing") for urn in theirs.keys() - ours.keys()}
    found |= {(urn.split("::")[2], "", "missing", "declared") for urn in ours.keys() - theirs.keys()}
    for urn in theirs.keys() & ours.keys():
        found |= set(_unequal(urn.split("::")[2].rpartition("$")[2], theirs[urn], ours[urn]))
    return sorted({one[:2]: one for one in sorted(found, reverse=True)}.values())


def _by_name(resources: Sequence[Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    custom = (one for one in resources if "aws:" in one["type"] and one.get("custom"))
    return {one["urn"]: {**one.get("outputs", {}), "id": one.get("id")} for one in custom}  # a state may have it once


def _unequal(kind: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for name in sorted((theirs.keys() | ours.keys()) - ENGINES):
        values = [_shown(one.get(name)) for one in (theirs, ours)]
        if values[0] != values[1]:
            yield kind, name, values[0], values[1]


def _shown(value: Any) -> str:
    """The value as a text in which what varies is `*`, in an order of its own; empty for none."""
    if isinstance(value, Mapping):
        if SECRET in value:
            return "(secret)"
        parts = sorted(f"{name}={text}" for name, one in value.items() if (text := _shown(one)))
        return f"{{{', '.join(parts)}}}" if parts else ""
    if isinstance(value, list):
        parts = sorted(text for one in value if (text := _shown(one)))
        return f"[{', '.join(parts)}]" if parts else ""
    if isinstance(value, str) and value.startswith("{"):
        with contextlib.suppress(ValueError):
            return _shown(json.loads(value))  # a policy
    return "" if value in (None, "", False, 0) else VARIES.sub("*", str(value))
