"""YAML is read as Pulumi reads it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specs import CLUSTER

from corral.spec.yaml_text import YamlError, read_yaml


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
    assert str(caught.value) == f"line 1, column 1: {text} is not read alike everywhere - put it in quotes"


@pytest.mark.parametrize(("text", "told"), [("9" * 19, "9" * 19), ("-" + "9" * 39, "-99999..."), ("0" * 19, "0" * 19)])
def test_a_number_of_too_many_digits_is_told_and_a_long_one_not_repeated(text: str, told: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    assert str(caught.value) == (
        f"line 1, column 1: {told} has too many digits for a number - use a smaller one, or quotes where it is text"
    )


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan", ".NaN"])
def test_what_is_not_to_be_counted_with_is_told(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    assert str(caught.value) == (
        f"line 1, column 1: {text} is no number to count with - write one in digits, or leave the line out"
    )


def test_aliases_of_aliases_do_not_grow_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(YamlError, match="more than 100000 values"):
        read_yaml("\n".join(lines).encode())


@given(st.integers(0, len(CLUSTER)), st.integers(0, 20), st.text(max_size=5))
def test_broken_text_is_read_or_refused_with_its_line(start: int, length: int, new: str) -> None:
    try:
        read_yaml((CLUSTER[:start] + new + CLUSTER[start + length :]).encode(errors="surrogatepass"))
    except YamlError as error:
        assert str(error).startswith("line ")
