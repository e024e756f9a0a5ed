"""Recover from mistakes in YAML: locate them, mark unreadable values, and parse in parts what the parser rejects.

`yaml_reader` interprets the scalars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from corral.spec.spec_errors import SpecError

_NEVER_CLOSED = ("'<stream end>'", "unexpected end of stream")
_MISALIGNED = ("indented like no line above", "align it with its siblings")
_TAB = ("a tab where spaces are expected", "indent with spaces")
_CLOSE = {'"': "quote", "'": "quote", "[": "bracket", "{": "brace"}
_DEEPEST = 30  # levels; a spec has eight, and an alias can contain itself

UNREADABLE = type("Unreadable", (), {"__repr__": lambda _: "UNREADABLE"})()


class PartialMapping(dict[str, Any]):
    """Fields of which some could not be read: a field that is not here may be missing or unreadable."""


@dataclass(frozen=True, slots=True, order=True)
class YamlMistake:
    """A mistake and its location; column 0 stands for the whole line."""

    line: int
    column: int
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return str(self.in_file(""))

    def in_file(self, file: str) -> SpecError:
        """Return this mistake as an error of this file."""
        position = f"line {self.line}, column {self.column}" if self.column else f"line {self.line}"
        message = f"{position}: {self.message}" if self.line else self.message
        return SpecError(file=file, path="", message=message, fix=self.fix)


class FieldCollector:
    """Fields by name as they are read. A field that is given twice with different values becomes UNREADABLE."""

    def __init__(self, mistakes: list[YamlMistake]) -> None:
        self.found: dict[str, Any] = {}
        self._mistakes = mistakes

    def add(self, key: str, value: Any, line: int, column: int) -> None:
        if key in self.found:
            self._mistakes.append(YamlMistake(line, column, f"{key!r} is given twice", "keep one"))
            value = value if type(value) is type(self.found[key]) and value == self.found[key] else UNREADABLE
        self.found[key] = value


class BlockReader:
    """Parse a text in parts, each field and each list entry alone, if the parser cannot read it as a whole.

    A part begins at a line with a key or a hyphen that is indented like the first line of its block. A line indented
    with a tab never begins a part. If an unreadable part may contain the start of another part, the rest of the block
    is not read, since it may belong to that other part.

    `whole` parses a text that begins at this line of its file, or raises yaml.MarkedYAMLError.
    """

    _KEY = re.compile(r"(?P<key>[A-Za-z_][\w:.-]*|\"[^\"\\]*\"|'[^']*')\s*:(?P<rest>\s.*|$)")
    _EMPTY = re.compile(r"\s*(#.*)?")

    def __init__(self, whole: Callable[[str, int], Any], mistakes: list[YamlMistake]) -> None:
        self._whole, self._mistakes = whole, mistakes
        self._is_cut = False

    def read(self, lines: list[str], first: int, depth: int) -> Any:
        """Parse these lines. `first`: the number of the first one in the file, counted from 0."""
        if first == 0:
            lines = ["" if line.startswith(("---", "%", "...")) else line for line in lines]
        base = next((_indent(line) for line in lines if not self._EMPTY.fullmatch(line) and _indent(line) >= 0), -1)
        starts = [number for number, line in enumerate(lines) if self._starts(line, base)]
        is_list = bool(starts) and self._is_entry(lines[starts[0]])
        starts = [number for number in starts if self._is_entry(lines[number]) is is_list]  # `key:` and `- x` below it
        meant = ((n, line) for n, line in enumerate(lines) if not self._EMPTY.fullmatch(line))
        if strange := [n for n, line in meant if 0 <= _indent(line) < base]:
            return self._as_whole(lines, first, self._misaligned(lines, first, strange[0]))
        before = lines[: starts[0]] if starts else lines
        if depth > _DEEPEST or not starts or not all(map(self._EMPTY.fullmatch, before)):
            return self._as_whole(lines, first)
        parts = [lines[start:end] for start, end in zip(starts, (*starts[1:], len(lines)), strict=True)]
        if is_list:
            return [self._entry(part, first + start, base, depth) for part, start in zip(parts, starts, strict=True)]
        return self._fields(parts, [first + start for start in starts], base, depth)

    def _misaligned(self, lines: list[str], first: int, strange: int) -> YamlMistake:
        """Return the mistake in a block where this line is indented too little; the cause may be a tab."""
        tab = next((number for number, line in enumerate(lines) if _indent(line) < 0), None)
        if tab is not None:
            return YamlMistake(first + tab + 1, 1, *_TAB)
        return YamlMistake(first + strange + 1, _indent(lines[strange]) + 1, *_MISALIGNED)

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
        fields, is_torn = FieldCollector(self._mistakes), False
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
        return PartialMapping(fields.found) if is_torn or self._is_cut else fields.found

    def _may_be_head(self, line: str) -> bool:
        found = self._KEY.match(line.strip().removeprefix("- ").lstrip())
        is_key = bool(found and self._EMPTY.fullmatch(found["rest"]))
        return bool(line.strip()) and (_indent(line) < 0 or self._is_entry(line) or is_key)

    def _as_whole(self, lines: list[str], first: int, mistake: YamlMistake | None = None) -> Any:
        value, error = self._parsed(lines, first)
        if error is not None:
            self._is_cut = self._is_cut or mistake is not None
            self._mistakes.append(mistake or error)
            return UNREADABLE
        return value

    def _parsed(self, lines: list[str], first: int) -> tuple[Any, YamlMistake | None]:
        """Parse these lines; return the value, and the mistake if there is one."""
        try:
            return self._whole("\n".join(lines), first), None
        except yaml.MarkedYAMLError as error:
            return UNREADABLE, explain(error)


def explain(error: yaml.MarkedYAMLError) -> YamlMistake:
    """Reword the parser's error; locate something unclosed where it was opened."""
    problem, fix, mark = str(error.problem or error.context), "", error.problem_mark or error.context_mark
    opened = error.context_mark
    if opened and any(sign in problem for sign in _NEVER_CLOSED) and (sign := _sign_at(opened)) in _CLOSE:
        return YamlMistake(opened.line + 1, opened.column + 1, f"unclosed {_CLOSE[sign]}")
    if r"'\t'" in problem:
        problem, fix = _TAB
    elif "'<stream end>'" in problem:
        problem, fix = "unexpected end of file", "close open quotes and brackets"
    elif problem.startswith("but "):
        problem = f"{error.context}, {problem}"
    return YamlMistake(mark.line + 1, mark.column + 1, problem, fix) if mark else YamlMistake(0, 0, problem, fix)


def _sign_at(mark: yaml.Mark) -> str:
    return str(mark.buffer[mark.pointer]) if mark.buffer and mark.pointer < len(mark.buffer) else ""


def _indent(line: str) -> int:
    """Return the number of spaces before the text of this line; -1 if there is a tab."""
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    return -1 if "\t" in blanks else len(blanks)
