"""The patches of this folder, and the tests that docs/promises.md names for the promise of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.mutations.promise_map import named_tests, promise_rows

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
MAP = ROOT / "docs" / "promises.md"
_HEADER = re.compile(r"\APromise: (?P<promise>.+)\nBreaks: (?P<breaks>.+)\nCaught by: (?P<caught_by>.+)\n(?=--- )")


class PatchError(ValueError):
    """A patch has no header, or docs/promises.md does not list its promise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch. `promise`: "SECTION: TEXT"; `caught_by`: the id of a test, or a step of a scenario."""

    name: str
    promise: str
    breaks: str
    caught_by: str

    @property
    def path(self) -> Path:
        """The file that `git apply` reads."""
        return FOLDER / f"{self.name}.patch"


def patches() -> list[Patch]:
    """All patches by name. Raises PatchError."""
    return [read_patch(path) for path in sorted(FOLDER.glob("*.patch"))]


def read_patch(path: Path) -> Patch:
    """Read a patch and its header. Raises PatchError if the header is missing."""
    if not (found := _HEADER.match(path.read_text(encoding="utf-8"))):
        raise PatchError(f"{path.name}: the first lines must be 'Promise:', 'Breaks:' and 'Caught by:', then the diff")
    return Patch(name=path.stem, promise=found["promise"], breaks=found["breaks"], caught_by=found["caught_by"])


def promises(page: str) -> Mapping[str, tuple[str, ...]]:
    """The test files of each promise in the tables of docs/promises.md, relative to the checkout.

    A row of the README's tables is "SECTION: CLAIM"; a row of docs/fidelity.md's is "docs/fidelity.md: SECTION".
    """
    return {
        f"{cells[0]}: {cells[1]}" if document == "README" else f"{document}: {cells[0]}": tuple(
            dict.fromkeys(_file(name) for cell in cells[-2:] for name in named_tests(cell))
        )
        for document, cells in promise_rows(page)
    }


def _file(name: str) -> str:
    folder, _, stem = name.partition(":")[0].rpartition("/")
    return f"tests/{folder}/test_{stem}.py" if folder else f"tests/test_{stem}.py"
