"""What writing rendered files changes, on a terminal and as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.render.directory import Change, FileChange
from corral.report.documents import Document
from corral.report.tables import facts, lines

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def changes_view(changes: Sequence[FileChange], where: str) -> Iterator[RenderableType]:
    """Each file with what happened to it, then how many."""
    yield facts((one.change.value, one.path) for one in changes)
    counts = ((kind, sum(one.change is kind for one in changes)) for kind in Change)
    yield lines([f"{where}: " + ", ".join(f"{number} {kind.value}" for kind, number in counts if number)])


def difference_view(changes: Sequence[FileChange]) -> Iterator[RenderableType]:
    """The differences line by line, as `diff -u` shows them; one sentence where there is none."""
    differing = [one for one in changes if one.change is not Change.SAME]
    for one in differing:
        for line in one.lines():
            yield Text(line, style=_STYLES.get(line[:1], ""), no_wrap=True, overflow="ignore")
    if not differing:
        yield Text("no difference")


def changes_document(changes: Sequence[FileChange], directory: str) -> Document:
    """What `corral render --json` prints."""
    return {
        "schema": "corral.render/1",
        "directory": directory,
        "files": [{"path": one.path, "change": one.change.value} for one in changes],
    }
