"""Split text as a shell does: commands, words, quotes, redirections.

Nothing is run or rejected: an unclosed quote is an ordinary character. In addition, brackets and commas between
strings, as in JSON and Python, end a word, and `name(` opens a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

_PIECE = re.compile(
    r"""(?P<gap>(?:[ \t\r\f\v]|\\\n)++)
    |(?P<end>\n|\|\|?|;;?|&&)
    |(?P<redirect>&?>>?[|&]?|<<<|<<-?|<[&>]?)
    |(?P<background>&)
    |(?P<open>\()|(?P<close>\))
    |"(?P<double>(?:[^"\\]++|\\.)*+)"
    |\$?'(?P<single>[^']*+)'
    |(?P<unknown>\$\{[^}\n]{0,500}+\}|`[^`]*+`|\$[\w@*?!-]++)
    |(?P<substitution>\$\()
    |\\(?P<escaped>.)
    |(?P<bare>[^\s"'`$\\;&|()<>,]++)
    |(?P<stray>.)""",
    re.VERBOSE | re.DOTALL,
)
_DEEPEST = 20  # nested calls; more would be slow on long text
_PARENTHESIS = re.compile(r"[()]")
_DEFAULT = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*:?[-=]([^${}`]*)\}")
_ESCAPED = re.compile(r"\\([\"\\$`])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word and its start. `parts` are pieces of its text, each with its quote."""

    start: int
    parts: tuple[tuple[str, str], ...]
    has_comma: bool = False

    @property
    def text(self) -> str:
        """The word without its quotes, with `$NAME` and the like unexpanded."""
        return "".join(text for text, _ in self.parts)

    @property
    def raw(self) -> str:
        """The word with its quotes."""
        return "".join(f"{quote}{text}{quote}" for text, quote in self.parts)

    @property
    def is_quoted(self) -> bool:
        """Whether the whole word is one quoted string."""
        return len(self.parts) == 1 and self.parts[0][1] != ""

    def without(self, length: int) -> Word:
        """Return the word without its first `length` characters."""
        parts = list(self.parts)
        while parts and length >= len(parts[0][0]):
            length -= len(parts.pop(0)[0])
        if parts and length:
            parts[0] = (parts[0][0][length:], parts[0][1])
        return replace(self, parts=tuple(parts))

    def value(self) -> str | None:
        """Return the value that a program gets, with defaults of `${NAME:-default}`; None if only a shell knows it."""
        values = [text if quote == "'" else _expanded(text) for text, quote in self.parts]
        return None if None in values else "".join(value for value in values if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command: its words, the names of the calls around it, and whether a file gets its output."""

    words: tuple[Word, ...]
    calls: tuple[str, ...] = ()
    is_to_file: bool = False
    is_piped: bool = False
    here: tuple[str, ...] = ()  # delimiters of its here-documents


@dataclass(slots=True)
class _Splitter:
    """One pass over a text."""

    commands: list[Command] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    parts: list[tuple[str, str]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    here: list[str] = field(default_factory=list)
    start: int = 0
    redirect: str = ""
    is_to_file: bool = False
    unclosed: str = ""

    def add(self, at: int, text: str, quote: str) -> None:
        if not self.parts:
            self.start = at
        self.parts.append((text, quote))

    def end_word(self, *, has_comma: bool = False) -> None:
        if not self.parts:
            return
        word = Word(start=self.start, parts=tuple(self.parts), has_comma=has_comma)
        self.parts.clear()
        redirect, self.redirect = self.redirect, ""
        if not redirect:
            self.words.append(word)
        elif redirect in ("<<", "<<-"):
            self.here.append(word.text)
        elif redirect in (">", ">>", ">|", "&>", "&>>"):
            self.is_to_file = self.is_to_file or not word.text.startswith("/dev/")

    def end_command(self, *, is_piped: bool = False) -> None:
        self.end_word()
        if self.words or self.here:
            self.commands.append(
                Command(
                    words=tuple(self.words),
                    calls=tuple(call for call in self.calls[-_DEEPEST:] if call),
                    is_to_file=self.is_to_file,
                    is_piped=is_piped,
                    here=tuple(self.here),
                )
            )
        self.words.clear()
        self.here.clear()
        self.redirect, self.is_to_file = "", False

    def open_redirect(self, sign: str) -> None:
        number = "".join(text for text, _ in self.parts)
        if number.isdigit():
            self.parts.clear()
        self.end_word()
        self.redirect = "2>" if number not in ("", "1") and number.isdigit() and ">" in sign else sign

    def open(self) -> None:
        call = "".join(text for text, _ in self.parts)
        self.end_command()
        self.calls.append(call if re.fullmatch(r"[\w.]+", call) else "")


def commands_of(text: str) -> tuple[Sequence[Command], str]:
    """Return the commands in this text, and the unclosed quote, if there is one."""
    split, at = _Splitter(), 0
    while found := _PIECE.match(text, at):
        kind, at = found.lastgroup, found.end()
        piece = found[kind or 0]
        if kind == "substitution":
            at = _closing(text, at)
            split.add(found.start(), text[found.start() : at], "")
        elif kind in ("bare", "stray", "unknown"):
            at = _take_bare(split, text, found.start(), at, piece)
        elif kind in ("double", "single", "escaped"):
            quote = '"' if kind == "double" else "'"
            split.add(found.start(), _ESCAPED.sub(r"\1", piece) if kind == "double" else piece, quote)
            at = _end_string(split, text, at) if kind != "escaped" else at
        else:
            _take_sign(split, kind, piece)
    split.end_command()
    return split.commands, split.unclosed


def _take_bare(split: _Splitter, text: str, start: int, end: int, piece: str) -> int:
    """Return the position after an unquoted piece: a comment ends the line, a comma an argument of a call."""
    if not split.parts and piece[0] == "#":
        stop = text.find("\n", start)
        return len(text) if stop < 0 else stop
    if piece == "," and split.calls and split.calls[-1]:
        split.end_word(has_comma=True)
        return end
    if not split.parts and piece in ("[", "{", "[{", "{[", "[[") and text[end : end + 1] in ("'", '"'):
        return end
    if piece in ("'", '"'):
        split.unclosed = split.unclosed or piece
    split.add(start, piece, "")
    return end


def _end_string(split: _Splitter, text: str, at: int) -> int:
    """Return the position after a string: in JSON and Python, the next character ends the word."""
    begin = at
    if split.parts[0][0].startswith("--"):
        return at
    while at < len(text) and text[at] in ",]}":
        at += 1
    if at > begin:
        split.end_word(has_comma=True)
    return at


def _take_sign(split: _Splitter, kind: str | None, piece: str) -> None:
    match kind:
        case "gap":
            split.end_word()
        case "redirect":
            split.open_redirect(piece)
        case "open":
            split.open()
        case "close":
            split.end_command()
            if split.calls:
                split.calls.pop()
        case "background" if split.redirect:
            split.redirect = "2>"
        case _:
            split.end_command(is_piped=piece == "|")


def _closing(text: str, at: int) -> int:
    """Return the end of a substitution that was opened before this position."""
    depth = 1
    for found in _PARENTHESIS.finditer(text, at):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.end()
    return len(text)


def _expanded(text: str) -> str | None:
    plain = _DEFAULT.sub(r"\1", text) if "$" in text else text
    return None if "$" in plain or "`" in plain else plain
