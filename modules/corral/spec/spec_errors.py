"""Errors in a spec: where each is, what is wrong, and how to fix it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

Loc = tuple[str | int, ...]
_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_:-]*")


class _WithFix:
    """The fields that problem, finding and error share. `fix`: what to do, or what would be right; may be empty."""

    __slots__ = ()
    message: str
    fix: str

    @property
    def text(self) -> str:
        """The message with its fix, as users read it."""
        return f"{self.message} - {self.fix}" if self.fix else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecError(_WithFix):
    """One error. `path` points into the spec; empty if the error concerns the whole file."""

    file: str
    path: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.text) if part)


class SpecErrors(Exception):
    """All errors found, in file order; the message has one line each."""

    def __init__(self, errors: Iterable[SpecError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


@dataclass(frozen=True, slots=True)
class SpecFinding(_WithFix):
    """An error not yet assigned to a file. `loc`: the keys and indexes that lead to it."""

    loc: Loc
    message: str
    fix: str = ""

    def in_file(self, file: str) -> SpecError:
        """Return this finding as an error of this file."""
        return SpecError(file=file, path=path_of(self.loc), message=self.message, fix=self.fix)


@dataclass(frozen=True, slots=True)
class SpecProblem(_WithFix):
    """What is wrong with a value, wherever it is."""

    message: str
    fix: str = ""

    def at(self, loc: Loc) -> SpecFinding:
        """Return this problem as a finding at this location."""
        return SpecFinding(loc, self.message, self.fix)


def path_of(loc: Loc) -> str:
    """Return the path as users write it: `queues[1].capacity[0].zones`, `instances."p5.48xlarge".vcpus`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            key = step if _BARE_KEY.fullmatch(step) else json.dumps(step, ensure_ascii=False)
            text += f".{key}" if text else key
    return text
