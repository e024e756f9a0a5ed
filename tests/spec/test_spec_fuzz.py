"""Whatever is done to a good spec, it is accepted or refused with sentences; nothing else comes out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BASE, CLUSTER

from corral.spec.parse import read_base_wishes, read_cluster_wishes
from corral.spec.surroundings import Surroundings
from corral.spec.yaml_text import read_yaml

GOOD_BASE = read_yaml(BASE.encode())["config"]["corral-base:spec"]
GOOD_CLUSTER = read_yaml(CLUSTER.encode())["config"]["corral-cluster:spec"]
AROUND = Surroundings(region="us-east-1")
ON_BASE = replace(AROUND, base=read_base_wishes(GOOD_BASE, name="dev", where="b", around=AROUND).spec)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**19), 10**19),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(["", "on", "10m", "use1-az1", "us-east-1a", "0.0.0.0/0", "10.64.0.0/33", "s3://", "/", "spot"]),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=3), max_size=3),
)
EDITS = st.lists(
    st.tuples(st.integers(0, 10**6), st.sampled_from(["set", "remove", "rename", "copy"]), VALUES), max_size=6
)


def mutated(good: Any, edits: list[tuple[int, str, Any]]) -> Any:
    """The data after these edits, each at a place that its number picks."""
    data = {"spec": copy.deepcopy(good)}
    for number, kind, value in edits:
        places = list(_places(data["spec"]))
        if not places:
            break
        holder, key = places[number % len(places)]
        _edit(holder, key, kind, value)
    return data["spec"]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _edit(holder: Any, key: Any, kind: str, value: Any) -> None:
    match kind, holder:
        case "remove", _:
            del holder[key]
        case "rename", dict():
            holder[str(value)[:10]] = holder.pop(key)
        case "copy", list():
            holder.append(copy.deepcopy(holder[key]))
        case _:
            holder[key] = copy.deepcopy(value)


@settings(max_examples=300, deadline=None)
@given(EDITS)
def test_a_mutated_cluster_is_accepted_or_refused(edits: list[tuple[int, str, Any]]) -> None:
    raw = mutated(GOOD_CLUSTER, edits)
    outcome = read_cluster_wishes(raw, name="dev", where="c", around=ON_BASE)
    assert outcome.spec is not None  # with something possible in each wrong place, so the rules have seen the rest


@settings(max_examples=300, deadline=None)
@given(EDITS)
def test_a_mutated_base_is_accepted_or_refused(edits: list[tuple[int, str, Any]]) -> None:
    raw = mutated(GOOD_BASE, edits)
    outcome = read_base_wishes(raw, name="dev", where="b", around=AROUND)
    assert outcome.spec is not None


@settings(max_examples=200, deadline=None)
@given(EDITS)
def test_every_message_is_one_line_in_our_own_words(edits: list[tuple[int, str, Any]]) -> None:
    raw = mutated(GOOD_CLUSTER, edits)
    outcome = read_cluster_wishes(raw, name="dev", where="c", around=ON_BASE)
    assert [e.message for e in outcome.errors if "\n" in str(e) or "cannot be used" in e.message] == []
