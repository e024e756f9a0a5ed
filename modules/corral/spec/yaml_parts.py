"""What there is of a YAML text with mistakes: what is wrong where, what stands in the place of what cannot be read, and
the text in parts where the parser cannot read it as a whole. What the scalars mean is `spec.yaml_text`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

_NEVER_CLOSED = ("'<stream end>'", "unexpected end of stream")
_ASTRAY = "indented like nothing above it - line it up with what it stands beside"
_TAB = "a tab where spaces are expected - indent with spaces"
_CLOSE = {'"': "quote", "'": "quote", "[": "bracket", "{": "brace"}
_DEEPEST = 30  # levels; a spec has eight, and an alias that holds itself has no end

UNREADABLE = type("Unreadable", (), {"__repr__": lambda _: "UNREADABLE"})()


class Torn(dict[str, Any]):
    """Fields of which some could not be read: of one that is not here nothing is known, not even that it is missing."""


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """What is wrong at a place; a place without a column is a whole line."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}" if self.column else f"line {self.line}"
        return f"{place}: {self.message}" if self.line else self.message


class Fields:
    """Fields by name as they are read; one that is given twice with two values has none that we could know."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.found: dict[str, Any] = {}
        self._mistakes = mistakes

    def add(self, key: str, value: Any, line: int, column: int) -> None:
        if key in self.found:
            self._mistakes.append(Mistake(line, column, f"{key!r} is given twice - keep one"))
            value = value if type(value) is type(self.found[key]) and value == self.found[key] else UNREADABLE
        self.found[key] = value


class Parts:
    """A text that the parser cannot read to its end, in parts: each field and each entry by itself.

    A part begins where a line stands as far to the left as the first one of its block, with a key or a hyphen. A line
    that is indented with a tab begins none, wherever it stands. Where a part that cannot be read may have swallowed the
    head of another one, what follows in its block is left unread, for it may belong there.

    `whole` gives the value of a text that begins in this line of its file, or raises yaml.MarkedYAMLError.
    """

    _KEY = re.compile(r"(?P<key>[A-Za-z_][\w:.-]*|\"[^\"\\]*\"|'[^']*')\s*:(?P<rest>\s.*|$)")
    _EMPTY = re.compile(r"\s*(#.*)?")

    def __init__(self, whole: Callable[[str, int], Any], mistakes: list[Mistake]) -> None:
        self._whole, self._mistakes = whole, mistakes
        self._is_cut = False

    def read(self, lines: list[str], first: int, depth: int) -> Any:
        """The value of these lines, the first of which has this number in the file, counted from 0."""
        if first == 0:
            lines = ["" if line.startswith(("---", "%", "...")) else line for line in lines]
        base = next((_indent(line) for line in lines if not self._EMPTY.fullmatch(line) and _indent(line) >= 0), -1)
        starts = [number for number, line in enumerate(lines) if self._starts(line, base)]
        is_list = bool(starts) and self._is_entry(lines[starts[0]])
        starts = [number for number in starts if self._is_entry(lines[number]) is is_list]  # `key:` and `- x` below it
        meant = ((n, line) for n, line in enumerate(lines) if not self._EMPTY.fullmatch(line))
        if strange := [n for n, line in meant if 0 <= _indent(line) < base]:
            return self._alone(lines, first, self._astray(lines, first, strange[0]))
        before = lines[: starts[0]] if starts else lines
        if depth > _DEEPEST or not starts or not all(map(self._EMPTY.fullmatch, before)):
            return self._alone(lines, first)
        parts = [lines[start:end] for start, end in zip(starts, (*starts[1:], len(lines)), strict=True)]
        if is_list:
            return [self._entry(part, first + start, base, depth) for part, start in zip(parts, starts, strict=True)]
        return self._fields(parts, [first + start for start in starts], base, depth)

    def _astray(self, lines: list[str], first: int, strange: int) -> Mistake:
        """What is wrong with a block of which this line stands too far to the left; a tab may be to blame."""
        tab = next((number for number, line in enumerate(lines) if _indent(line) < 0), None)
        if tab is not None:
            return Mistake(first + tab + 1, 1, _TAB)
        return Mistake(first + strange + 1, _indent(lines[strange]) + 1, _ASTRAY)

    def _starts(self, line: str, base: int) -> bool:
        return 0 <= _indent(line) == base and (bool(self._KEY.match(line[base:])) or self._is_entry(line))

    def _is_entry(self, line: str) -> bool:
        return f"{line.strip()} ".startswith("- ")

    def _entry(self, lines: list[str], first: int, base: int, depth: int) -> Any:
        value, error = self._parsed(lines, first)
        if error is None:
            return value[0]
        inner = [f"{lines[0][:base]} {lines[0][base + 1 :]}", *lines[1:]]
        return self.read(inner, first, depth + 1)

    def _fields(self, parts: list[list[str]], firsts: list[int], base: int, depth: int) -> Any:
        fields, is_torn = Fields(self._mistakes), False
        for lines, first in zip(parts, firsts, strict=True):
            found = self._KEY.match(lines[0][base:])
            assert found
            key = found["key"].strip("\"'")
            value, error = self._parsed(lines, first)
            is_leaf = not self._EMPTY.fullmatch(found["rest"]) or len(lines) == 1
            if error is None:
                value = value[next(iter(value))] if isinstance(value, Mapping) and value else UNREADABLE
            elif not is_leaf:
                value = self.read(lines[1:], first + 1, depth + 1)
                is_torn = is_torn or value is UNREADABLE
            else:
                self._mistakes.append(error)
                value, is_torn = UNREADABLE, True
            fields.add(key, value, first + 1, base + 1)
            if error is not None and is_leaf and any(map(self._may_be_head, lines[1:])):
                self._is_cut = True
                break
        return Torn(fields.found) if is_torn or self._is_cut else fields.found

    def _may_be_head(self, line: str) -> bool:
        found = self._KEY.match(line.strip().removeprefix("- ").lstrip())
        is_key = bool(found and self._EMPTY.fullmatch(found["rest"]))
        return bool(line.strip()) and (_indent(line) < 0 or self._is_entry(line) or is_key)

    def _alone(self, lines: list[str], first: int, told: Mistake | None = None) -> Any:
        value, error = self._parsed(lines, first)
        if error is not None:
            self._is_cut = self._is_cut or told is not None
            self._mistakes.append(told or error)
            return UNREADABLE
        return value

    def _parsed(self, lines: list[str], first: int) -> tuple[Any, Mistake | None]:
        """The value of these lines, or why there is none."""
        try:
            return self._whole("\n".join(lines), first), None
        except yaml.MarkedYAMLError as error:
            return UNREADABLE, explained(error)


def explained(error: yaml.MarkedYAMLError) -> Mistake:
    """The mistake at which the parser ended, in our words; of what is never closed, where it was opened."""
    problem, mark = str(error.problem or error.context), error.problem_mark or error.context_mark
    opened = error.context_mark
    if opened and any(sign in problem for sign in _NEVER_CLOSED) and (sign := _sign_at(opened)) in _CLOSE:
        return Mistake(opened.line + 1, opened.column + 1, f"a {_CLOSE[sign]} that is not closed")
    if r"'\t'" in problem:
        problem = _TAB
    elif "'<stream end>'" in problem:
        problem = "ends where more is expected - close what is open"
    elif problem.startswith("but "):
        problem = f"{error.context}, {problem}"
    return Mistake(mark.line + 1, mark.column + 1, problem) if mark else Mistake(0, 0, problem)


def _sign_at(mark: yaml.Mark) -> str:
    return str(mark.buffer[mark.pointer]) if mark.buffer and mark.pointer < len(mark.buffer) else ""


def _indent(line: str) -> int:
    """The blanks before the text of this line; -1 where a tab is among them."""
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    return -1 if "\t" in blanks else len(blanks)
