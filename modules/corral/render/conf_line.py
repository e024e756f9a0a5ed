"""Write a line of a Slurm configuration file from values.

Slurm's parser splits at white space, interprets quotes and `#`, and continues a line after a backslash, so values with
any of these are refused. Templates hold the comments and the order of lines.
"""

import re
from collections.abc import Mapping, Sequence

Value = str | int | Sequence[str] | None

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_REFUSED = re.compile(r"""[\s"'`#\\\x00-\x1f\x7f]""")


def slurm_line(fields: Mapping[str, Value]) -> str:
    """`Key=Value` for every field that has a value, in the given order: None and an empty list are left out.

    A list is joined by commas, True and False become YES and NO.
    Raises ValueError for a key or value that Slurm would read back differently.
    """
    written = ((key, _text(key, value)) for key, value in fields.items())
    return " ".join(f"{_checked_key(key)}={text}" for key, text in written if text is not None)


def _checked_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not a Slurm key - use letters and digits, a letter first")
    return key


def _text(key: str, value: Value) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, str | int):
        return _checked(key, str(value))
    return ",".join(_item(key, item) for item in value) or None


def _item(key: str, item: str) -> str:
    if "," in item:
        raise ValueError(f"{key}: {item!r} contains a comma - Slurm would read two values")
    return _checked(key, item)


def _checked(key: str, text: str) -> str:
    if not text or not text.isprintable() or _REFUSED.search(text):
        raise ValueError(
            f"{key}: {text!r} is not valid in a Slurm file - use no empty value, space, quote, '#' or '\\'"
        )
    return text
