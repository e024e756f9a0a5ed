"""The tables of docs/promises.md: the tests of each claim of README.md and of each section of docs/fidelity.md."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DOCUMENTS = {"README.md": "README", "docs/fidelity.md": "docs/fidelity.md"}


def promise_rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each row of these tables in the text of the page: the document that promises, and the cells.

    A row of README.md begins with its section and the claim, one of docs/fidelity.md with its section. The last two
    cells name tests: those of `make test`, and those that `make test-all` adds.
    """
    document = section = above = ""
    for line in page.splitlines():
        if line.startswith("## "):
            document = _DOCUMENTS[line.removeprefix("## ")]
        elif line.startswith("### "):
            section = line.removeprefix("### ")
        elif line.startswith("|") and above.startswith("|") and not line.startswith("|--"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            yield document, [section, *cells] if document == "README" else cells
        above = line


def named_tests(cell: str) -> list[str]:
    """The tests that a cell names."""
    return re.findall(r"`([^`]+)`", cell)
