"""YAML text to plain data, as Pulumi's own reader understands it: `on` is text, only true and false are booleans.

Stricter than YAML where leniency hides mistakes: no key twice, no tags, no merge keys, no numbers with two meanings.
What cannot be read does not keep the rest from being read: UNREADABLE stands in its place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from corral.spec.yaml_parts import UNREADABLE, Fields, Mistake, Parts, Torn, explained

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
_LOST = "\ufffd"  # in the place of a byte or a character that cannot be read


class YamlError(Exception):
    """Text that is no YAML for us; the message begins with the line and column where people count from 1."""


class _Stop(Exception):
    """A reason to read no further; it has been told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The data of a file as far as it can be read, and everything that is wrong with its YAML, by line."""

    value: Any
    mistakes: tuple[Mistake, ...] = ()


def read_yaml(content: bytes) -> Any:
    """The data that this file holds. Raises YamlError with the first mistake."""
    document = read_document(content)
    if document.mistakes:
        raise YamlError(str(document.mistakes[0]))
    return document.value


def read_document(content: bytes) -> Document:
    """What this file holds; UNREADABLE and Torn stand where something is wrong, and only there."""
    reading = _Reading()
    try:
        value = reading.text(reading.decoded(content))
    except _Stop:
        value = UNREADABLE
    except RecursionError:
        reading.tell(0, 0, f"nested deeper than {_DEEPEST} levels")
        value = UNREADABLE
    return Document(value=value, mistakes=tuple(sorted(dict.fromkeys(reading.mistakes))))


class _Loader(yaml.BaseLoader):
    """PyYAML's parser, which tells of an anchor without a place and goes on."""

    def __init__(self, text: str, reading: _Reading, first: int) -> None:
        super().__init__(text)
        self.line = first  # where the text begins in its file, for the places of mistakes
        self._reading = reading

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, mark = getattr(event, "anchor", None), event.start_mark
        if isinstance(event, yaml.AliasEvent) and anchor not in self.anchors:
            self.get_event()  # type: ignore[no-untyped-call]
            if not self._reading.is_in_parts:
                self._reading.tell_at(mark, f"there is no &{anchor} for *{anchor} - quote it where it is text")
            return yaml.ScalarNode("!lost", "", mark, mark)
        if not isinstance(event, yaml.AliasEvent) and anchor in self.anchors:
            self._reading.tell_at(mark, f"&{anchor} is given twice - keep one")
            del self.anchors[anchor]
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _Reading:
    """One pass over a file; it counts the values that it makes and keeps what is wrong."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self.anchors: dict[Any, yaml.Node] = {}
        self.is_in_parts = False
        self._count = 0

    def tell(self, line: int, column: int, message: str) -> Any:
        self.mistakes.append(Mistake(line, column, message))
        return UNREADABLE

    def tell_at(self, mark: yaml.Mark, message: str) -> Any:
        return self.tell(mark.line + 1, mark.column + 1, message)

    def decoded(self, content: bytes) -> str:
        """The text, _LOST in the place of what cannot be in it. Raises _Stop where it is none at all."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            self.tell(line, 0, f"byte {content[error.start]:#04x} is not UTF-8 - save the file as UTF-8")
            if b"\0" in content:
                raise _Stop from None
            text = content.decode("utf-8-sig", errors="replace")
        if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
            line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
            self.tell(line, column, "a character that YAML does not allow")
            text = yaml.reader.Reader.NON_PRINTABLE.sub(_LOST, text)
        return text

    def text(self, text: str) -> Any:
        """The value of a text; where the parser cannot go on, of its parts."""
        told = len(self.mistakes)
        try:
            return self.whole(text)
        except yaml.MarkedYAMLError as error:
            self.is_in_parts = True
            value = Parts(self.whole, self.mistakes).read(text.splitlines(), 0, 0)
            if not self.mistakes[told:]:
                self.mistakes.append(explained(error))
            return value

    def whole(self, text: str, first: int = 0) -> Any:
        """The value of a text that the parser can read to its end. Raises yaml.MarkedYAMLError."""
        told, anchors = len(self.mistakes), dict(self.anchors)
        try:
            return self._whole(text, first)
        except yaml.MarkedYAMLError:
            del self.mistakes[told:]
            self.anchors = anchors
            raise

    def _whole(self, text: str, first: int) -> Any:
        loader = _Loader(text, self, first)
        if not loader.check_node():
            return None
        loader.anchors = self.anchors
        node = loader.get_node()
        if loader.check_node():
            message = "expected a single document in the stream, but found another document"
            self.tell_at(loader.peek_event().start_mark, message)  # type: ignore[no-untyped-call]
            return None if node is None else _torn_off(self.value(node, 0))
        return None if node is None else self.value(node, 0)

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._count += 1
        if depth > _DEEPEST:
            self.tell_at(node.start_mark, f"nested deeper than {_DEEPEST} levels")
            raise _Stop
        if self._count > _LARGEST:
            self.tell_at(node.start_mark, f"more than {_LARGEST} values")
            raise _Stop
        if node.tag == "!lost":
            return UNREADABLE
        if node.tag not in _KNOWN_TAGS:
            return self.tell_at(node.start_mark, f"tags such as {node.tag} are not supported - write plain values")
        if isinstance(node, yaml.MappingNode):
            return self._fields(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self._scalar(node)

    def _fields(self, node: yaml.MappingNode, depth: int) -> Any:
        fields, is_torn = Fields(self.mistakes), False
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            value = self.value(value_node, depth + 1)
            if key is UNREADABLE:
                is_torn = True
            elif key == "<<" and _is_plain(key_node):
                is_torn = is_torn or not isinstance(value, Mapping)
                merged = {**merged, **value} if isinstance(value, Mapping) else merged
            else:
                fields.add(key, value, key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        found = {**{key: value for key, value in merged.items() if key not in fields.found}, **fields.found}
        return found if not is_torn else Torn(found) if found else UNREADABLE

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            return self.tell_at(node.start_mark, "a key must be text")
        if node.value == "<<" and _is_plain(node):
            self.tell_at(node.start_mark, "merge keys (<<) are not supported - write the fields out")
        if _is_plain(node) and _is_other_key(node.value):
            return self.tell_at(node.start_mark, f"the key {node.value[:_TOLD]} is not read as text - put it in quotes")
        return self._text(node)

    def _scalar(self, node: yaml.Node) -> Any:
        text = self._text(node)
        if not _is_plain(node) or text is UNREADABLE:
            return text
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if problem := _problem(text):
            told = text if len(text) <= _TOLD else f"{text[:6]}..."  # it may be a secret that was pasted
            return self.tell_at(node.start_mark, f"{told} {problem}")
        return float(text) if _FLOAT.fullmatch(text) else text

    def _text(self, node: yaml.Node) -> Any:
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            return self.tell_at(node.start_mark, "half of a character (a surrogate) cannot stand alone")
        return UNREADABLE if _LOST in text and self.mistakes else text


def _problem(text: str) -> str | None:
    """What is wrong with plain text that looks like a number and is none that everybody reads alike."""
    if _LONG.fullmatch(text):
        return "has too many digits for a number - use a smaller one, or quotes where it is text"
    if _NO_NUMBER.fullmatch(text):
        return "is no number to count with - write one in digits, or leave the line out"
    return "is not read alike everywhere - put it in quotes" if _DOUBTFUL.fullmatch(text) else None


def _is_other_key(text: str) -> bool:
    """Whether Pulumi's reader makes another key of this plain one: of 012 it makes 10, of 1e3 1000, of Null <nil>."""
    if text in _NULLS or (text in _BOOLEANS and text not in ("true", "false")):
        return True
    return any(kind.fullmatch(text) for kind in (_FLOAT, _DOUBTFUL, _LONG, _NO_NUMBER)) or text.startswith("+")


def _is_plain(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None


def _torn_off(value: Any) -> Any:
    """The value, of which more may stand behind its end."""
    if isinstance(value, dict) and value:
        last = next(reversed(value))
        return Torn({**value, last: _torn_off(value[last])})
    if isinstance(value, list) and value:
        return [*value[:-1], _torn_off(value[-1])]
    return UNREADABLE if value is None else value
