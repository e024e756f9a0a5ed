"""Parse YAML text to plain data, as Pulumi does: `on` is text, only true and false are booleans.

Stricter than YAML where leniency hides mistakes: no duplicate keys, tags, merge keys or ambiguous numbers.
After a mistake, parsing continues, with UNREADABLE as the value of the invalid part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from corral.spec.spec_errors import SpecProblem
from corral.spec.yaml.yaml_recovery import UNREADABLE, BlockReader, FieldCollector, PartialMapping, YamlMistake, explain

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]{1,3})?|[-+]?[0-9]+[eE][-+]?[0-9]{1,3}")
# Scalars on which YAML versions and parsers disagree. Pulumi reads 012 as ten and a date as a timestamp.
_DOUBTFUL = re.compile(
    r"[-+]?0[0-9_]+|[-+]?0[xob][0-9a-fA-F_]+|[-+]?[0-9][0-9_]*_[0-9_.]*"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?",
    re.IGNORECASE,
)
_LONG = re.compile(r"[-+]?[0-9]{19,}")  # exceeds 64 bits; some parsers round it
_NO_NUMBER = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_KNOWN_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_MAX_QUOTED = 24  # characters
_DEEPEST = 30  # levels; a spec has eight, and an alias can contain itself
_LARGEST = 100_000  # values; aliases of aliases can grow without limit
_LOST = "\ufffd"  # replaces a byte or character that cannot be read


class YamlError(Exception):
    """Text that is not valid YAML here; the message begins with line and column, counted from 1."""


class _StopReading(Exception):
    """Stop parsing; the reason has been reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlDocument:
    """The readable data of a file, and its YAML mistakes, by line."""

    value: Any
    mistakes: tuple[YamlMistake, ...] = ()


def read_yaml(content: bytes) -> Any:
    """Parse this file. Raises YamlError with the first mistake."""
    document = read_document(content)
    if document.mistakes:
        raise YamlError(str(document.mistakes[0]))
    return document.value


def read_document(content: bytes) -> YamlDocument:
    """Parse this file, with UNREADABLE and PartialMapping exactly where something is wrong."""
    reading = _Reader()
    try:
        value = reading.text(reading.decoded(content))
    except _StopReading:
        value = UNREADABLE
    except RecursionError:
        reading.report(0, 0, f"nested deeper than {_DEEPEST} levels")
        value = UNREADABLE
    return YamlDocument(value=value, mistakes=tuple(sorted(dict.fromkeys(reading.mistakes))))


class _Loader(yaml.BaseLoader):
    """PyYAML's parser, but it reports an undefined anchor and continues."""

    def __init__(self, text: str, reading: _Reader, first: int) -> None:
        super().__init__(text)
        self.line = first  # the line of the file where the text begins, to locate mistakes
        self._reading = reading

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        anchor, mark = getattr(event, "anchor", None), event.start_mark
        if isinstance(event, yaml.AliasEvent) and anchor not in self.anchors:
            self.get_event()  # type: ignore[no-untyped-call]
            if not self._reading.is_in_parts:
                self._reading.report_at(mark, f"*{anchor} has no anchor &{anchor}", "quote it if it is text")
            return yaml.ScalarNode("!lost", "", mark, mark)
        if not isinstance(event, yaml.AliasEvent) and anchor in self.anchors:
            self._reading.report_at(mark, f"&{anchor} is given twice", "keep one")
            del self.anchors[anchor]
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _Reader:
    """One pass over a file: counts values and collects mistakes."""

    def __init__(self) -> None:
        self.mistakes: list[YamlMistake] = []
        self.anchors: dict[Any, yaml.Node] = {}
        self.is_in_parts = False
        self._count = 0

    def report(self, line: int, column: int, message: str, fix: str = "") -> Any:
        self.mistakes.append(YamlMistake(line, column, message, fix))
        return UNREADABLE

    def report_at(self, mark: yaml.Mark, message: str, fix: str = "") -> Any:
        return self.report(mark.line + 1, mark.column + 1, message, fix)

    def decoded(self, content: bytes) -> str:
        """Decode the file, with _LOST for invalid characters. Raises _StopReading if it is not text."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            self.report(line, 0, f"byte {content[error.start]:#04x} is not UTF-8", "save the file as UTF-8")
            if b"\0" in content:
                raise _StopReading from None
            text = content.decode("utf-8-sig", errors="replace")
        if found := yaml.reader.Reader.NON_PRINTABLE.search(text):
            line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
            self.report(line, column, "a character that YAML does not allow")
            text = yaml.reader.Reader.NON_PRINTABLE.sub(_LOST, text)
        return text

    def text(self, text: str) -> Any:
        """Parse a text, in parts if the parser cannot read it as a whole."""
        before = len(self.mistakes)
        try:
            return self.whole(text)
        except yaml.MarkedYAMLError as error:
            self.is_in_parts = True
            value = BlockReader(self.whole, self.mistakes).read(text.splitlines(), 0, 0)
            if not self.mistakes[before:]:
                self.mistakes.append(explain(error))
            return value

    def whole(self, text: str, first: int = 0) -> Any:
        """Parse a text as a whole. Raises yaml.MarkedYAMLError."""
        before, anchors = len(self.mistakes), dict(self.anchors)
        try:
            return self._whole(text, first)
        except yaml.MarkedYAMLError:
            del self.mistakes[before:]
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
            self.report_at(loader.peek_event().start_mark, message)  # type: ignore[no-untyped-call]
            return None if node is None else _cut_short(self.value(node, 0))
        return None if node is None else self.value(node, 0)

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._count += 1
        if depth > _DEEPEST:
            self.report_at(node.start_mark, f"nested deeper than {_DEEPEST} levels")
            raise _StopReading
        if self._count > _LARGEST:
            self.report_at(node.start_mark, f"more than {_LARGEST} values")
            raise _StopReading
        if node.tag == "!lost":
            return UNREADABLE
        if node.tag not in _KNOWN_TAGS:
            return self.report_at(node.start_mark, f"tags such as {node.tag} are not supported", "write plain values")
        if isinstance(node, yaml.MappingNode):
            return self._fields(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self._scalar(node)

    def _fields(self, node: yaml.MappingNode, depth: int) -> Any:
        fields, is_torn = FieldCollector(self.mistakes), False
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
        return found if not is_torn else PartialMapping(found) if found else UNREADABLE

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            return self.report_at(node.start_mark, "keys must be text")
        if node.value == "<<" and _is_plain(node):
            self.report_at(node.start_mark, "merge keys (<<) are not supported", "write the fields out")
        if _is_plain(node) and _is_other_key(node.value):
            return self.report_at(
                node.start_mark, f"the key {node.value[:_MAX_QUOTED]} is not read as text", "quote it"
            )
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
            quoted = text if len(text) <= _MAX_QUOTED else f"{text[:6]}..."  # it may be a pasted secret
            return self.report_at(node.start_mark, f"{quoted} {problem.message}", problem.fix)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _text(self, node: yaml.Node) -> Any:
        text = str(node.value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            return self.report_at(node.start_mark, "an unpaired surrogate character")
        return UNREADABLE if _LOST in text and self.mistakes else text


def _problem(text: str) -> SpecProblem | None:
    """Return why parsers may disagree on this unquoted scalar; None if they do not."""
    if _LONG.fullmatch(text):
        return SpecProblem("has too many digits for a number", "use a smaller one, or quote it")
    if _NO_NUMBER.fullmatch(text):
        return SpecProblem("is not a finite number", "write digits, or remove the line")
    return SpecProblem("is ambiguous in YAML", "quote it") if _DOUBTFUL.fullmatch(text) else None


def _is_other_key(text: str) -> bool:
    """Return whether Pulumi changes this unquoted key: 012 to 10, 1e3 to 1000, Null to <nil>."""
    if text in _NULLS or (text in _BOOLEANS and text not in ("true", "false")):
        return True
    return any(kind.fullmatch(text) for kind in (_FLOAT, _DOUBTFUL, _LONG, _NO_NUMBER)) or text.startswith("+")


def _is_plain(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None


def _cut_short(value: Any) -> Any:
    """Mark the end of this value as incomplete: more of it may follow."""
    if isinstance(value, dict) and value:
        last = next(reversed(value))
        return PartialMapping({**value, last: _cut_short(value[last])})
    if isinstance(value, list) and value:
        return [*value[:-1], _cut_short(value[-1])]
    return UNREADABLE if value is None else value
