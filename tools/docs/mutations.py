"""The table of docs/development.md, from the headers of the patches. The text outside the marks is written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tools.docs.tables import filled, table
from tools.mutations.patches import patches


def fill(page: str) -> str:
    """Return the page with a new table."""
    return filled(page, {"mutations": table(_mutations())})


def _mutations() -> Iterator[Mapping[str, str]]:
    for patch in patches():
        number = patch.name.partition("-")[0]
        yield {"": number, "promise": patch.row, "breaks": patch.breaks, "caught by": _test(patch.caught_by)}


def _test(caught_by: str) -> str:
    """The test as docs/promises.md writes it: its path below tests/, and its name or its step."""
    test, _, step = caught_by.partition(", step: ")
    file, _, name = test.partition("::")
    path = file.removeprefix("tests/").removesuffix(".py").replace("test_", "")
    return f"`{path}: {step or name.removeprefix('test_')}`"
