"""The same run on other machines, as a section of the page."""

from __future__ import annotations

from collections.abc import Sequence

from corral.forecast.run.comparison import Alternative
from corral.report.charts.bar_charts import Range, ranges
from corral.report.run.comparison_view import COLUMNS, ORDER, cells, cost, exclusions
from corral.report.sections.section import Section, Table, picture

_MAX_DRAWN = 12  # bars; the table has all rows


def compare_section(rows: Sequence[Alternative]) -> Section:
    """A bar for each of the cheapest alternatives, a row for each possible one, a line for each other."""
    able = [row for row in rows if row.why_not is None]
    drawn = [
        Range(name=cells(row)[0], low=row.usd.usd.low, high=row.usd.usd.high, words=cost(row))
        for row in able
        if row.usd.usd and not row.usd.missing
    ]
    return Section(
        anchor="compared",
        title="The same run elsewhere",
        lead=f"US dollars for the whole run: {ORDER}.",
        pictures=(picture(lambda width: ranges("US dollars by type and market", drawn[:_MAX_DRAWN], width=width)),)
        if drawn
        else (),
        tables=(Table(caption="By cost", columns=tuple(COLUMNS), rows=tuple(map(cells, able))),),
        lines=tuple(exclusions(rows)),
    )
