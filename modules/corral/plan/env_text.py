"""Assignments to environment variables in the texts that people have them in: what `env` prints, nccl.conf, scripts,
#SBATCH --export, Dockerfiles. Found line by line, without a shell: what only a shell knows stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.plan.lint_env import Assignment

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'"
# A word of a shell: quoted parts, ${...} and plain characters next to each other.
_WORD = rf"(?:{_QUOTED}|\$\{{[^}}]*\}}|\$\([^)]*\)|\\.|[^\s\"';|&()<>\\])*"
_ASSIGNMENT = re.compile(rf"(?<![\w.$/{{-])({_NAME})=({_WORD})")
_LISTED = re.compile(rf"({_NAME})=(.*)")
_EXPORT_OPTION = re.compile(rf"--export(?:=|\s+)({_WORD})")
_EXPORTED = re.compile(rf"(?:^|,)({_NAME})=({_QUOTED}|[^,]*)")
_OLD_ENV = re.compile(rf"\s*ENV\s+({_NAME})\s+(?!=)(.+)", re.IGNORECASE)
_DEFAULT = re.compile(rf"\$\{{{_NAME}:?[-=](.*)\}}")


def assignments_in(text: str) -> Iterator[Assignment]:
    """Every assignment of the text, by line. A line that a backslash continues is one line with those below it."""
    for number, line in enumerate(text.splitlines(), start=1):
        for name, value in _of_line(line):
            yield Assignment(line=number, name=name, value=value)


def _of_line(line: str) -> Iterator[tuple[str, str | None]]:
    stripped = line.strip()
    if stripped.startswith("#SBATCH") or _EXPORT_OPTION.search(_code(stripped)):
        for option in _EXPORT_OPTION.finditer(stripped):
            names = _EXPORTED.findall(_unquoted(option[1]) if option[1][:1] in "\"'" else option[1])
            yield from ((name, _known(value)) for name, value in names)
        return
    if stripped.startswith("#"):
        return
    listed = _LISTED.fullmatch(line.rstrip())
    if listed and not _ASSIGNMENT.search(listed[2]) and not set(listed[2]) & set("\"'$`;#\\"):
        yield listed[1], listed[2]  # as `env` prints it: all that follows is the value
        return
    if "=" not in stripped and (old := _OLD_ENV.fullmatch(stripped)):
        yield old[1], _known(old[2].strip())
        return
    yield from ((name, _known(value)) for name, value in _ASSIGNMENT.findall(_code(line)))


def _code(line: str) -> str:
    """The line without the comment at its end."""
    return re.sub(rf"((?:{_QUOTED}|[^\"'#]|(?<=\S)#)*)(?<!\S)#.*", r"\1", line)


def _known(value: str) -> str | None:
    """The value as the program gets it, a default where the variable may be set before; None where a shell decides."""
    if default := _DEFAULT.fullmatch(value.strip("\"'")):
        value = default[1]
    if "$" in value or "`" in value:
        return None if not value.startswith("'") else _unquoted(value)
    return _unquoted(value)


def _unquoted(value: str) -> str:
    parts = re.findall(rf"{_QUOTED}|[^\"']+|[\"']", value)
    plain = (part[1:-1] if len(part) > 1 and part[0] in "\"'" else part for part in parts)
    return re.sub(r"\\(.)", r"\1", "".join(plain))
