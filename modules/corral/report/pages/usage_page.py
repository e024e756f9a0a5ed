"""Who used a cluster and when, as one HTML file: a bar for each day or month, and the rows. The file loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.report.charts.bar_charts import Part, Row, stacked_rows
from corral.report.formatting import lacking, summed
from corral.report.html_templates import template
from corral.report.sections.section import Section, Table, picture
from corral.report.timeline.timeline import State
from corral.report.usage.daily_usage import MOST_BARS, DailyGroup, DailyUsage
from corral.report.usage.usage_by import GroupBy, RowKind, UsageTable
from corral.report.usage.usage_by_views import PRICES, table_cells, table_columns
from corral.report.usage.usage_text import hours

_COLOURS = {RowKind.IDLE: str(State.IDLE), RowKind.BOOTING: str(State.BOOTING)}
_OF_JOBS = ("c0", *(f"c{number}" for number in range(2, 12)))  # the second colour looks like that of booting


def usage_page(cluster: str, shown: UsageTable, daily: DailyUsage, *, remarks: Sequence[str] = ()) -> str:
    """The HTML file. `remarks`: lines about the whole, such as histories that could not be read."""
    table = Table(caption=f"By {shown.by}", columns=table_columns(shown.by), rows=tuple(table_cells(shown)))
    lines = (*remarks, f"{PRICES}{lacking(shown.total.usd)}")
    return template("plan.html.j2").render(
        title=f"Usage of {cluster}",
        lead=f"{shown.start:%Y-%m-%d %H:%M} to {shown.end:%Y-%m-%d %H:%M} UTC",
        cards=_cards(shown),
        sections=[_over_time(daily), Section(anchor="rows", title=f"By {shown.by}", tables=(table,), lines=lines)],
    )


def _cards(shown: UsageTable) -> list[tuple[str, str]]:
    unused = sum(row.node_s for row in shown.rows if row.kind in _COLOURS)
    whole = shown.total.node_s
    return [
        ("USD", summed(shown.total.usd)),
        ("node hours", hours(whole)),
        ("GPU hours of jobs", hours(sum(row.gpu_s for row in shown.rows if row.kind is RowKind.JOBS))),
        ("idle or booting", f"{unused / whole:.0%}" if whole else "-"),
    ]


def _over_time(daily: DailyUsage) -> Section:
    rows = list(_rows(daily))
    every = "month" if daily.monthly else "day"
    of_whom = "of jobs" if daily.by is GroupBy.DAY else f"of each {daily.by}"
    title = f"Node hours {of_whom} by {every}"
    longer = f" More than {MOST_BARS} days are shown by month." if daily.monthly else ""
    table = Table(
        caption=title,
        columns=(every, *(f">{_name(group, daily)}" for group in daily.groups)),
        rows=tuple(
            (period, *(hours(group.node_s[at]) for group in daily.groups)) for at, period in enumerate(daily.periods)
        ),
    )
    return Section(
        anchor="time",
        title="Over time",
        lead=f"{title}, and what no job used; days are UTC. Hover over a bar for details.{longer}",
        pictures=(picture(lambda width: stacked_rows(title, rows, width=width)),),
        tables=(table,),
    )


def _rows(daily: DailyUsage) -> Iterator[Row]:
    for at, period in enumerate(daily.periods):
        parts = [
            Part(
                name=_name(group, daily),
                value=group.node_s[at],
                words=f"{period}, {_name(group, daily)}: {hours(group.node_s[at])} node hours",
                colour=_COLOURS.get(group.kind, _OF_JOBS[number % len(_OF_JOBS)]),
            )
            for number, group in enumerate(daily.groups)
        ]
        yield Row(name=period, parts=parts, words=f"{hours(sum(part.value for part in parts))} h")


def _name(group: DailyGroup, daily: DailyUsage) -> str:
    if group.kind is not RowKind.JOBS:
        return str(group.kind)
    return group.name or ("jobs" if daily.by is GroupBy.DAY else "(none)")
