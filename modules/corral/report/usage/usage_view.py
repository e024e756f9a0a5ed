"""Usage on a terminal, below the timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from corral.report.formatting import count
from corral.report.tables import facts, heading, lines, table
from corral.report.usage import usage_text
from corral.report.usage.forecast_vs_actual import ForecastComparison
from corral.report.usage.usage_summary import Usage

_SHOWN = 20  # rows of a table; the page and the document have all


def usage_view(usage: Usage, against: ForecastComparison | None = None) -> Iterator[RenderableType]:
    """The sums, then tables of pools, interruptions and jobs."""
    yield heading("Usage")
    yield facts(
        (
            ("cost", usage_text.so_far(usage)),
            ("node time", usage_text.node_time(usage)),
            ("goodput", f"{usage_text.goodput(usage)} of the node time"),
            ("interruptions", usage_text.interrupted(usage)),
        )
    )
    yield from _table(usage_text.POOL_COLUMNS, list(usage_text.pool_rows(usage)))
    yield from _table(usage_text.INTERRUPTION_COLUMNS, list(usage_text.interruption_rows(usage.interruptions)))
    yield from _table(usage_text.JOB_COLUMNS, list(usage_text.job_rows(usage.jobs)))
    if against is not None:
        yield heading("Forecast and actual")
        yield lines([usage_text.comparison_lead(against)])
        yield from _table(usage_text.COMPARISON_COLUMNS, list(usage_text.comparison_rows(against)))


def _table(columns: Sequence[str], rows: Sequence[usage_text.Row]) -> Iterator[RenderableType]:
    if rows:
        yield Text()
        yield table(columns, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield Text(f"  and {count(len(rows) - _SHOWN)} more")
