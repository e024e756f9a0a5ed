"""The tables of docs/development.md that name the tests of each promise of README.md and docs/fidelity.md."""

from __future__ import annotations

import re
from collections.abc import Iterator


def promise_rows(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each row of these tables in the text of the page: the document that promises, and the cells.

    The last two cells name tests: those of `make test`, and those that `make test-all` adds.
    """
    document = ""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        document = cells[0] if cells and cells[0] in ("README", "docs/fidelity.md") else document if cells else ""
        if document and cells[0] != document and not cells[0].startswith("-"):
            yield document, cells


def named_tests(cell: str) -> list[str]:
    """The tests that a cell names."""
    return re.findall(r"`([^`]+)`", cell)
