"""Tags of resources, which whoever may set tags has written, as they are read."""

from __future__ import annotations

from corral.inventory.ec2_resources import tags_of


def test_tags_are_read_as_printable_text() -> None:
    pairs = [
        {"Key": "corral:queue", "Value": "q\x1b]0;owned\x07\x9b2J\u202e"},
        {"Key": "N\x1b", "Value": "a\nb" + "x" * 250},
    ]
    assert tags_of(pairs) == {"corral:queue": r"q\x1b]0;owned\x07\x9b2J\u202e", r"N\x1b": r"a\nb" + "x" * 250}
