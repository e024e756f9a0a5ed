"""YAML is read as Pulumi reads it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import CLUSTER

from corral.spec.yaml.yaml_reader import YamlError, read_document, read_yaml
from corral.spec.yaml.yaml_recovery import UNREADABLE


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("'true'", "true"),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("8.5", 8.5),
        ("1e3", 1000.0),
        ("12:30:00", "12:30:00"),
        ("10.64.0.0/16", "10.64.0.0/16"),
        ("'2026-11-21'", "2026-11-21"),
        ("0", 0),
        ("-0.5", -0.5),
        ("2026-11", "2026-11"),
        ("[a, 1]", ["a", 1]),
        ("{a: {b: }}", {"a": {"b": None}}),
        ("&x a", "a"),
        ("{a: &x [1], b: *x}", {"a": [1], "b": [1]}),
    ],
)
def test_a_scalar_means(text: str, value: Any) -> None:
    assert read_yaml(text.encode()) == value


@pytest.mark.parametrize("text", ["012", "0x10", "0o17", "1_000", "2026-11-21", "2026-11-21T10:00:00Z", "-0x1F"])
def test_what_readers_take_differently_must_be_quoted(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    assert str(caught.value) == f"line 1, column 1: {text} is ambiguous in YAML - quote it"


@pytest.mark.parametrize(("text", "shown"), [("9" * 19, "9" * 19), ("-" + "9" * 39, "-99999..."), ("0" * 19, "0" * 19)])
def test_a_number_of_too_many_digits_is_reported_and_a_long_one_not_repeated(text: str, shown: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    assert str(caught.value) == (
        f"line 1, column 1: {shown} has too many digits for a number - use a smaller one, or quote it"
    )


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN"])
def test_what_is_not_to_be_counted_with_is_reported(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    assert str(caught.value) == (f"line 1, column 1: {text} is not a finite number - write digits, or remove the line")


def test_aliases_of_aliases_do_not_grow_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(YamlError, match="more than 100000 values"):
        read_yaml("\n".join(lines).encode())


def errors_of(text: str) -> list[str]:
    return [str(mistake) for mistake in read_document(text.encode()).mistakes]


@pytest.mark.parametrize(
    ("text", "value", "mistakes"),
    [
        (
            "a: 012\nb: 9999999999999999999\nc: 3",
            {"a": UNREADABLE, "b": UNREADABLE, "c": 3},
            [
                "line 1, column 4: 012 is ambiguous in YAML - quote it",
                "line 2, column 4: 9999999999999999999 has too many digits for a number - use a smaller one,"
                " or quote it",
            ],
        ),
        ("a: 1\nb: 2\na: 3", {"a": UNREADABLE, "b": 2}, ["line 3, column 1: 'a' is given twice - keep one"]),
        ("a: 1\nb: 2\na: 1", {"a": 1, "b": 2}, ["line 3, column 1: 'a' is given twice - keep one"]),
        ('a: "\\q"\nb: 2', {"a": UNREADABLE, "b": 2}, ["line 1, column 6: found unknown escape character 'q'"]),
        ('a: "x\nb: 2', {"a": UNREADABLE, "b": 2}, ["line 1, column 4: unclosed quote"]),
        ("a: [1\nb: 2", {"a": UNREADABLE, "b": 2}, ["line 1, column 4: unclosed bracket"]),
        (
            "a: {b: 1\nc: 2\nd: [3\n",
            {"a": UNREADABLE, "c": 2, "d": UNREADABLE},
            ["line 1, column 4: unclosed brace", "line 3, column 4: unclosed bracket"],
        ),
        (
            "a:\n  b: 1\n\tc: 2\nd: 4",
            {"a": {"b": UNREADABLE}, "d": 4},
            ["line 3, column 1: a tab where spaces are expected - indent with spaces"],
        ),
        (
            "a:\n- b: 1\n- c: x: y\n- d: 3",
            {"a": [{"b": 1}, {"c": UNREADABLE}, {"d": 3}]},
            ["line 3, column 7: mapping values are not allowed here"],
        ),
        (
            "a:\n    b: 1\n  c: 2\nd: 4",
            {"a": UNREADABLE, "d": 4},
            ["line 3, column 3: indented like no line above - align it with its siblings"],
        ),
        (
            "a: 1\n---\nb: 2",
            {"a": 1},
            ["line 2, column 1: expected a single document in the stream, but found another document"],
        ),
        (
            "a: *x\nb: 2",
            {"a": UNREADABLE, "b": 2},
            ["line 1, column 4: *x has no anchor &x - quote it if it is text"],
        ),
        ("a: &x 1\nb: &x 2", {"a": 1, "b": 2}, ["line 2, column 4: &x is given twice - keep one"]),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n  d: 2",
            {"a": {"b": 1}, "c": {"b": 1, "d": 2}},
            ["line 3, column 3: merge keys (<<) are not supported - write the fields out"],
        ),
        ("a: {{ x }}\nb: 2", {"a": UNREADABLE, "b": 2}, ["line 1, column 5: keys must be text"]),
        (
            "a: {012: x}\nb: 2",
            {"a": UNREADABLE, "b": 2},
            ["line 1, column 5: the key 012 is not read as text - quote it"],
        ),
        (
            "Null: 1\n1e3: 2\n'1e4': 3\n7: 4",
            {"1e4": 3, "7": 4},
            [
                "line 1, column 1: the key Null is not read as text - quote it",
                "line 2, column 1: the key 1e3 is not read as text - quote it",
            ],
        ),
        (
            "a: !x 1\nb: 2",
            {"a": UNREADABLE, "b": 2},
            ["line 1, column 4: tags such as !x are not supported - write plain values"],
        ),
        (
            "a: &x 1\nb: [\nc: *x",
            {"a": 1, "b": UNREADABLE, "c": 1},
            ["line 2, column 5: unexpected end of file - close open quotes and brackets"],
        ),
    ],
)
def test_what_can_be_read_is_read_next_to_what_cannot(text: str, value: Any, mistakes: list[str]) -> None:
    assert (read_document(text.encode()).value, errors_of(text)) == (value, mistakes)


@settings(deadline=None)
@given(st.integers(0, len(CLUSTER)), st.integers(0, 20), st.text(max_size=5))
def test_every_mistake_of_a_broken_text_has_its_line(start: int, length: int, new: str) -> None:
    content = (CLUSTER[:start] + new + CLUSTER[start + length :]).encode(errors="surrogatepass")
    assert [str(one) for one in read_document(content).mistakes if not str(one).startswith("line ")] == []
