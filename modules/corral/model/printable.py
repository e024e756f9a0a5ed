"""Text that others wrote, such as the name of a job, made safe to show on a terminal, on a page and in a document."""

from typing import Any

LENGTH = 80  # characters; Slurm takes names of a thousand


def printable(text: str, length: int = LENGTH) -> str:
    r"""The text with each character that does not show itself as its escape (`\x1b`, `\u202e`), on one line.

    These are control characters, line separators, marks that reverse the direction of writing, and blanks other than
    the space. A longer text ends in `…`.
    """
    shown = escape(text[: length + 1])
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def printable_lines(text: str) -> str:
    """The text with each of its lines escaped in this way, and none shortened."""
    return text if text.isprintable() else "\n".join(map(escape, text.split("\n")))


def printable_document(value: Any) -> Any:
    """The JSON value with all its texts escaped in this way, and none of them shortened."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, dict):
        return {escape(key): printable_document(one) for key, one in value.items()}
    return [printable_document(one) for one in value] if isinstance(value, list) else value


def escape(text: str) -> str:
    """The text escaped in this way, on one line, however long it is."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
