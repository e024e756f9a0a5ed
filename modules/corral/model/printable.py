"""Text that users wrote, such as the name of a job, made safe to show on a terminal, on a page and in a document."""

from typing import Any

LENGTH = 80  # characters; Slurm takes names of a thousand


def printable(text: str, length: int = LENGTH) -> str:
    r"""The text with each character that does not show itself as its escape (`\x1b`, `\u202e`), on one line.

    These are control characters, line separators, marks that reverse the direction of writing, and blanks other than
    the space. A longer text ends in `…`.
    """
    shown = _escaped(text[: length + 1])
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def printable_document(value: Any) -> Any:
    """The JSON value with all its texts escaped in this way, and none of them shortened."""
    if isinstance(value, str):
        return _escaped(value)
    if isinstance(value, dict):
        return {_escaped(key): printable_document(one) for key, one in value.items()}
    return [printable_document(one) for one in value] if isinstance(value, list) else value


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
