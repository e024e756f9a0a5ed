"""Differences of properties as text."""

from __future__ import annotations

import json

from corral.engine.differences import UNKNOWN, difference_lines
from corral.engine.progress import Differences


def lines(old: object, new: object, kind: str = "update", path: str = "it") -> list[str]:
    return difference_lines(Differences(kinds={path: kind}, old={"it": old}, new={"it": new}))


def test_a_text_is_shown_line_by_line() -> None:
    old, new = "a\nNodeName=n-[1-4]\nb\nc\n", "a\nNodeName=n-[1-6]\nb\nc\n"
    assert lines(old, new) == [
        "it:",
        "    @@ -1,3 +1,3 @@",
        "     a",
        "    -NodeName=n-[1-4]",
        "    +NodeName=n-[1-6]",
        "     b",
    ]


def test_a_document_in_one_line_is_shown_by_its_fields() -> None:
    assert lines(json.dumps({"a": 1, "b": 2}), json.dumps({"b": 3, "a": 1}))[-3:] == [
        '    - "b": 2',
        '    + "b": 3',
        "     }",
    ]


def test_a_value_is_shown_with_what_it_was() -> None:
    assert lines(4, 6, path="it") == ["it: 4 -> 6"]


def test_what_is_known_afterwards_is_said_so() -> None:
    assert lines("vol-1", UNKNOWN) == ["it: vol-1 -> (known afterwards)"]


def test_what_makes_a_new_one_is_said_so() -> None:
    assert lines("10.0.0.0/24", "10.0.1.0/24", "update-replace") == [
        "it: 10.0.0.0/24 -> 10.0.1.0/24  (makes a new one)"
    ]


def test_paths_reach_into_lists_and_quoted_names() -> None:
    found = Differences(
        kinds={'it["a.b"][1].c': "add"}, old={"it": {"a.b": [{}, {}]}}, new={"it": {"a.b": [{}, {"c": "x"}]}}
    )
    assert difference_lines(found) == ['it["a.b"][1].c: - -> x']


def test_tags_are_said_once() -> None:
    kinds = {"tags.Name": "update", "tagsAll.Name": "update"}
    found = Differences(kinds=kinds, old={"tags": {"Name": "a"}}, new={"tags": {"Name": "b"}})
    assert difference_lines(found) == ["tags.Name: a -> b"]


def test_a_long_value_is_cut() -> None:
    assert lines("a", "x" * 300) == [f"it: a -> {'x' * 120}... (300 characters)"]
