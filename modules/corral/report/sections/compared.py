"""The same run on other machines, as a section of the page."""

from __future__ import annotations

from collections.abc import Sequence

from corral.forecast.whole.compare import Compared
from corral.report.charts import Range, ranges
from corral.report.compare import COLUMNS, ORDER, cells, cost, why_nots
from corral.report.sections.section import Section, Table, picture

_MOST_DRAWN = 12  # bars; more are a wall, and all rows are in the table


def compare_section(rows: Sequence[Compared]) -> Section:
    """A bar for each of the cheapest, a row for each that can be had, a sentence for each that cannot."""
    able = [row for row in rows if row.why_not is None]
    drawn = [
        Range(name=cells(row)[0], low=row.usd.usd.low, high=row.usd.usd.high, words=cost(row))
        for row in able
        if row.usd.usd and not row.usd.missing
    ]
    return Section(
        anchor="compared",
        title="The same run elsewhere",
        lead=f"US dollars until it is done: {ORDER}.",
        pictures=(picture(lambda width: ranges("US dollars by type and market", drawn[:_MOST_DRAWN], width=width)),)
        if drawn
        else (),
        tables=(Table(caption="By cost", columns=tuple(COLUMNS), rows=tuple(map(cells, able))),),
        lines=tuple(why_nots(rows)),
    )
