"""Mistakes in a project's own catalogue file: where each is, what is wrong, what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

Path = tuple[str | int, ...]
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake before it is known in which file it stands; `path` are the keys and indexes that lead to it."""

    path: Path
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueProblem:
    """One mistake. `path` leads to it as TOML writes it, and is empty where it concerns the whole file."""

    file: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.message) if part)


class CatalogueErrors(Exception):
    """Every mistake that was found, in the order of the file; its text has one line for each."""

    def __init__(self, errors: Iterable[CatalogueProblem]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


def path_of(path: Path) -> str:
    """The path as TOML writes it: `instances."p5.48xlarge".network_cards[1].first`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (step if _BARE_KEY.fullmatch(step) else f'"{step}"')
    return text
