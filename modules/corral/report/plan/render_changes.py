"""The changes that `corral render` makes to files, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.render.output_dir import FileChange, FileStatus
from corral.report.plan.plan_json import Document
from corral.report.tables import facts, lines

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def changes_view(changes: Sequence[FileChange], where: str) -> Iterator[RenderableType]:
    """Each file with its change, then the counts."""
    yield facts((one.change.value, one.path) for one in changes)
    counts = ((kind, sum(one.change is kind for one in changes)) for kind in FileStatus)
    yield lines([f"{where}: " + ", ".join(f"{number} {kind.value}" for kind, number in counts if number)])


def difference_view(changes: Sequence[FileChange]) -> Iterator[RenderableType]:
    """The differences as `diff -u` prints them; one line if there are none."""
    differing = [one for one in changes if one.change is not FileStatus.SAME]
    for one in differing:
        for line in one.lines():
            yield Text(line, style=_STYLES.get(line[:1], ""), no_wrap=True, overflow="ignore")
    if not differing:
        yield Text("no difference")


def changes_document(changes: Sequence[FileChange], directory: str) -> Document:
    """The document of `corral render --json`."""
    return {
        "schema": "corral.render/1",
        "directory": directory,
        "files": [{"path": one.path, "change": one.change.value} for one in changes],
    }
