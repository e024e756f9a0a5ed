"""The property test of spec errors: a mutated spec is accepted, or refused with one line for each mistake."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from specs import BASE, CLUSTER

from corral.spec.loader import try_parse_base, try_parse_cluster
from corral.spec.validation_context import ValidationContext
from corral.spec.yaml.yaml_reader import read_yaml

GOOD_BASE = read_yaml(BASE.encode())["config"]["corral-base:spec"]
GOOD_CLUSTER = read_yaml(CLUSTER.encode())["config"]["corral-cluster:spec"]
CONTEXT = ValidationContext(region="us-east-1")
ON_BASE = replace(CONTEXT, base=try_parse_base(GOOD_BASE, name="dev", where="b", context=CONTEXT).spec)

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
    """The data after these edits, each at the path with its number."""
    data = {"spec": copy.deepcopy(good)}
    for number, kind, value in edits:
        paths = list(_paths(data["spec"]))
        if not paths:
            break
        holder, key = paths[number % len(paths)]
        _edit(holder, key, kind, value)
    return data["spec"]


def _paths(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _paths(value[key])


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
@given(EDITS, EDITS)
def test_a_mutated_spec_is_accepted_or_refused_in_lines_of_our_own_words(
    in_base: list[tuple[int, str, Any]], in_cluster: list[tuple[int, str, Any]]
) -> None:
    base = try_parse_base(mutated(GOOD_BASE, in_base), name="dev", where="b", context=CONTEXT)
    cluster = try_parse_cluster(mutated(GOOD_CLUSTER, in_cluster), name="dev", where="c", context=ON_BASE)
    assert base.spec is not None and cluster.spec is not None  # placeholders let the rules check the rest
    errors = (*base.errors, *cluster.errors)
    assert [e.message for e in errors if "\n" in str(e) or "cannot be used" in e.message] == []
