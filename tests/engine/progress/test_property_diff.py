"""Property differences as text."""

from __future__ import annotations

import json

from corral.engine.progress.engine_events import PropertyDiff
from corral.engine.progress.property_diff import UNKNOWN, diff_lines


def lines(old: object, new: object, kind: str = "update", path: str = "it") -> list[str]:
    return diff_lines(PropertyDiff(kinds={path: kind}, old={"it": old}, new={"it": new}))


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


def test_a_long_line_of_a_text_is_truncated() -> None:
    assert lines(f"a\n{'b' * 399}\n", f"a\n{'c' * 5000}\n")[-2:] == [
        f"    -{'b' * 399}",
        f"    +{'c' * 399}... (5001 characters)",
    ]


def test_value_is_shown_with_its_old_value() -> None:
    assert lines(4, 6, path="it") == ["it: 4 -> 6"]


def test_unknown_value_is_shown_as_known_afterwards() -> None:
    assert lines("vol-1", UNKNOWN) == ["it: vol-1 -> (known afterwards)"]


def test_replacing_property_is_marked() -> None:
    assert lines("10.0.0.0/24", "10.0.1.0/24", "update-replace") == [
        "it: 10.0.0.0/24 -> 10.0.1.0/24  (forces replacement)"
    ]


def test_paths_reach_into_lists_and_quoted_names() -> None:
    found = PropertyDiff(
        kinds={'it["a.b"][1].c': "add"}, old={"it": {"a.b": [{}, {}]}}, new={"it": {"a.b": [{}, {"c": "x"}]}}
    )
    assert diff_lines(found) == ['it["a.b"][1].c: - -> x']


def test_tags_are_shown_once() -> None:
    kinds = {"tags.Name": "update", "tagsAll.Name": "update"}
    found = PropertyDiff(kinds=kinds, old={"tags": {"Name": "a"}}, new={"tags": {"Name": "b"}})
    assert diff_lines(found) == ["tags.Name: a -> b"]


def test_long_value_is_truncated() -> None:
    assert lines("a", "x" * 300) == [f"it: a -> {'x' * 120}... (300 characters)"]


def test_an_output_that_aws_sets_anew_is_not_shown() -> None:
    kinds = {"content": "update", "versionId": "update"}
    found = PropertyDiff(kinds=kinds, old={"content": "a"}, new={"content": "b"}, outputs={"versionId": "v1"})
    assert diff_lines(found) == ["content: a -> b"]


def test_what_is_in_aws_alone_is_shown() -> None:
    found = PropertyDiff(kinds={"policy": "delete"}, outputs={"policy": "{}"})
    assert diff_lines(found) == ["policy: differs from the program"]
