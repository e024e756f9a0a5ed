"""Mistakes in a spec: where each is, what is wrong, what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

Loc = tuple[str | int, ...]
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_:-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecError:
    """One mistake. `path` leads to it inside the spec, and is empty where it concerns the whole file."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.message) if part)


class SpecErrors(Exception):
    """Every mistake that was found, in the order of the files; its text has one line for each."""

    def __init__(self, errors: Iterable[SpecError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake before it is known in which file it stands; `loc` are the keys and indexes that lead to it."""

    loc: Loc
    message: str


def path_of(loc: Loc) -> str:
    """The path as people write it: `queues[1].capacity[0].zones`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text
