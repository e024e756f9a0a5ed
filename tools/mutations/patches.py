"""The patches of this folder and of security/, and the tests that must fail with each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.mutations.promise_map import named_tests, promise_rows

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).parent
SECURITY = FOLDER / "security"
MAP = ROOT / "docs" / "promises.md"
_PROMISE, _WEAKENED = "Promise", "Weakened"
_HEADER = r"\A{word}: (?P<row>.+)\nBreaks: (?P<breaks>.+)\nCaught by: (?P<caught_by>.+)\n(?=--- )"


class PatchError(ValueError):
    """A patch has no header."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch. `row`: of docs/promises.md, "SECTION: TEXT"; of a defect in security, its row in docs/security.md.

    `caught_by`: the id of a test, or a step of a scenario.
    """

    name: str
    row: str
    breaks: str
    caught_by: str

    @property
    def path(self) -> Path:
        """The file that `git apply` reads."""
        return FOLDER / f"{self.name}.patch"

    def tests(self, of_promises: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """The tests of which one must fail: the files of the promise's row, or the test that the security row names."""
        return (self.caught_by,) if self.path.parent == SECURITY else of_promises[self.row]


def patches() -> list[Patch]:
    """The patches that break promises, by name. Raises PatchError."""
    return [read_patch(path) for path in sorted(FOLDER.glob("*.patch"))]


def sown_defects() -> list[Patch]:
    """The patches that weaken the security of clusters and boxes, by name. Raises PatchError."""
    return [read_patch(path) for path in sorted(SECURITY.glob("*.patch"))]


def read_patch(path: Path) -> Patch:
    """Read a patch and its header. Raises PatchError if the header is missing."""
    is_sown = path.parent == SECURITY
    word = _WEAKENED if is_sown else _PROMISE
    if not (found := re.match(_HEADER.format(word=word), path.read_text(encoding="utf-8"))):
        raise PatchError(f"{path.name}: the first lines must be '{word}:', 'Breaks:' and 'Caught by:', then the diff")
    name = f"{SECURITY.name}/{path.stem}" if is_sown else path.stem
    return Patch(name=name, row=found["row"], breaks=found["breaks"], caught_by=found["caught_by"])


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
