"""Text that users wrote, such as the name of a job, made safe to show on a terminal, on a page and in a document."""

LENGTH = 80  # characters; Slurm takes names of a thousand


def printable(text: str, length: int = LENGTH) -> str:
    r"""The text with each character that does not show itself as its escape (`\x1b`, `\u202e`), on one line.

    These are control characters, line separators, marks that reverse the direction of writing, and blanks other than
    the space. A longer text ends in `…`.
    """
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text[: length + 1])
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"
