"""YAML text to plain data, as Pulumi's own reader understands it: `on` is text, only true and false are booleans.

Stricter than YAML where leniency hides mistakes: no key twice, no tags, no merge keys, no numbers with two meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]{1,3})?|[-+]?[0-9]+[eE][-+]?[0-9]{1,3}")
# What YAML's versions and readers disagree about. Pulumi's makes 012 ten and a date a moment in time.
_DOUBTFUL = re.compile(
    r"[-+]?0[0-9_]+|[-+]?0[xob][0-9a-fA-F_]+|[-+]?[0-9][0-9_]*_[0-9_.]*"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?",
    re.IGNORECASE,
)
_LONG = re.compile(r"[-+]?[0-9]{19,}")  # more than 64 bits take, and some readers round it
_NO_NUMBER = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_KNOWN_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_TOLD = 24  # characters
_DEEPEST = 30  # levels; a spec has eight, and an alias that holds itself has no end
_LARGEST = 100_000  # values; aliases of aliases could grow without bound


class YamlError(Exception):
    """Text that is no YAML for us; the message begins with the line and column where people count from 1."""


def read_yaml(content: bytes) -> Any:
    """The data that this file holds. Raises YamlError."""
    text = _decode(content)
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        return None if node is None else _Reading().value(node, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"{_place(mark) if mark else ''}{_explain(error)}") from None
    except yaml.reader.ReaderError as error:
        raise YamlError(f"{_position(text, error.position)}a character that YAML does not allow") from None
    except RecursionError:
        raise YamlError(f"nested deeper than {_DEEPEST} levels") from None


class _Reading:
    """One pass over a document; it counts the values that it makes."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._count += 1
        if depth > _DEEPEST:
            raise YamlError(f"{_place(node.start_mark)}nested deeper than {_DEEPEST} levels")
        if self._count > _LARGEST:
            raise YamlError(f"{_place(node.start_mark)}more than {_LARGEST} values")
        if node.tag not in _KNOWN_TAGS:
            raise YamlError(f"{_place(node.start_mark)}tags such as {node.tag} are not supported - write plain values")
        if isinstance(node, yaml.MappingNode):
            return dict(self._entries(node, depth))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return _scalar(node)

    def _entries(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            key = _key(key_node)
            if key in seen:
                raise YamlError(f"{_place(key_node.start_mark)}{key!r} is given twice - keep one")
            seen.add(key)
            yield key, self.value(value_node, depth + 1)


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise YamlError(f"{_place(node.start_mark)}a key must be text")
    if node.value == "<<" and _is_plain(node):
        raise YamlError(f"{_place(node.start_mark)}merge keys (<<) are not supported - write the fields out")
    return _text(node)


def _scalar(node: yaml.Node) -> Any:
    text = _text(node)
    if not _is_plain(node):
        return text
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if problem := _problem(text):
        told = text if len(text) <= _TOLD else f"{text[:6]}..."  # it may be a secret that was pasted
        raise YamlError(f"{_place(node.start_mark)}{told} {problem}")
    return float(text) if _FLOAT.fullmatch(text) else text


def _problem(text: str) -> str | None:
    """What is wrong with plain text that looks like a number and is none that everybody reads alike."""
    if _LONG.fullmatch(text):
        return "has too many digits for a number - use a smaller one, or quotes where it is text"
    if _NO_NUMBER.fullmatch(text):
        return "is no number to count with - write one in digits, or leave the line out"
    return "is not read alike everywhere - put it in quotes" if _DOUBTFUL.fullmatch(text) else None


def _is_plain(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None


def _text(node: yaml.Node) -> str:
    text = str(node.value)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise YamlError(f"{_place(node.start_mark)}half of a character (a surrogate) cannot stand alone")
    return text


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise YamlError(
            f"line {line}: byte {content[error.start]:#04x} is not UTF-8 - save the file as UTF-8"
        ) from None


def _explain(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem or error.context)
    if r"'\t'" in problem:
        return "a tab where spaces are expected - indent with spaces"
    return f"{error.context}, {problem}" if problem.startswith("but ") else problem


def _place(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: "


def _position(text: str, offset: int) -> str:
    before = text[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}: "
