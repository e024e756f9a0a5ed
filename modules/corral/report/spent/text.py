"""What a life took, on a terminal: below its picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.report.amounts import count
from corral.report.spent import words
from corral.report.spent.compared import Comparison
from corral.report.spent.ledger import Spent
from corral.report.tables import facts, heading, lines, table

_SHOWN = 20  # rows of a table; the rest is counted, and stands on the page and in the document


def spent_view(took: Spent, against: Comparison | None = None) -> Iterator[RenderableType]:
    """The sums, then what each pool, interruption and job took."""
    yield heading("What it took")
    yield facts(
        (
            ("cost", words.so_far(took)),
            ("node time", words.node_time(took)),
            ("kept work", f"{words.effective(took)} of the node time"),
            ("interruptions", words.interrupted(took)),
        )
    )
    yield from _table(words.POOL_COLUMNS, list(words.pool_rows(took)))
    yield from _table(words.INTERRUPTION_COLUMNS, list(words.interruption_rows(took.interruptions)))
    yield from _table(words.JOB_COLUMNS, list(words.job_rows(took.jobs)))
    if against is not None:
        yield heading("Beside the forecast")
        yield lines([words.comparison_lead(against)])
        yield from _table(words.COMPARISON_COLUMNS, list(words.comparison_rows(against)))


def _table(columns: Sequence[str], rows: Sequence[words.Row]) -> Iterator[RenderableType]:
    if rows:
        yield Text()
        yield table(columns, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield Text(f"  and {count(len(rows) - _SHOWN)} more")
