"""Text of users, as it may be shown."""

from __future__ import annotations

import pytest

from corral.model.printable import printable, printable_document, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("llama-3 fine tuning, é 東", "llama-3 fine tuning, é 東"),
        ("a\nb\x0b\x1c\x85", r"a\nb\x0b\x1c\x85"),
        ("\x1b]0;title\x07\x9b31m", r"\x1b]0;title\x07\x9b31m"),
        ("a\u2028b\u2029", r"a\u2028b\u2029"),
        ("\u202efdp.exe\u2066", r"\u202efdp.exe\u2066"),
        ("a\udcffb", r"a\udcffb"),
        ("a\u200bb\ufeff\xa0", r"a\u200bb\ufeff\xa0"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("\n" * 60, r"\n" * 39 + "\\\N{HORIZONTAL ELLIPSIS}"),
    ],
)
def test_text_becomes_one_printable_line(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_stay_lines_and_as_long() -> None:
    assert printable_lines("a\n\x1b[2J" + "x" * 100 + "\n") == "a\n" + r"\x1b[2J" + "x" * 100 + "\n"


def test_all_texts_of_a_document_become_printable_and_stay_as_long() -> None:
    found = printable_document({"\x1bkey": ["\x9b1m" + "x" * 100, {"n": 1, "none": None}]})
    assert found == {r"\x1bkey": [r"\x9b1m" + "x" * 100, {"n": 1, "none": None}]}
