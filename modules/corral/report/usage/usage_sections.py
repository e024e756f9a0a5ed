"""Usage as sections of the HTML page: cost, interruptions, jobs."""

from __future__ import annotations

from collections.abc import Iterator

from corral.report.charts.bar_charts import Part, stacked
from corral.report.formatting import summed, usd
from corral.report.sections.section import Section, Table, picture
from corral.report.timeline.timeline import State, Timeline
from corral.report.usage import cost_over_time, usage_text
from corral.report.usage.forecast_vs_actual import ForecastComparison
from corral.report.usage.usage_summary import Usage

_MOMENTS = 5  # rows of the table below the cost chart
_LOST = "c4"  # no state's colour; distinct from green, grey and amber for colour-blind readers


def cards(usage: Usage) -> list[tuple[str, str]]:
    """The key figures."""
    return [
        ("USD so far", summed(usage.usd)),
        ("node hours", usage_text.hours(usage.node_s)),
        ("goodput", usage_text.goodput(usage)),
        ("interruptions", str(len(usage.interruptions))),
    ]


def usage_sections(usage: Usage, shown: Timeline) -> Iterator[Section]:
    """The cost, node time, interruptions and jobs."""
    yield _money(usage, shown)
    if usage.machines:
        yield _time(usage)
    if usage.interruptions:
        yield _interruptions(usage)
    if usage.jobs:
        table = Table(caption="Jobs", columns=usage_text.JOB_COLUMNS, rows=tuple(usage_text.job_rows(usage.jobs)))
        lead = "Jobs with all their runs; jobs on a machine at the same time divide it."
        yield Section(anchor="jobs", title="Jobs", lead=lead, tables=(table,))


def comparison_section(against: ForecastComparison) -> Section:
    """The forecast of the run compared with its actual usage."""
    rows = tuple(usage_text.comparison_rows(against))
    table = Table(caption="Forecast and actual", columns=usage_text.COMPARISON_COLUMNS, rows=rows)
    lead = usage_text.comparison_lead(against)
    return Section(anchor="forecast", title="Forecast and actual", lead=lead, tables=(table,))


def _money(usage: Usage, shown: Timeline) -> Section:
    grown = tuple((usage_text.when(one.at), usd(one.usd)) for one in cost_over_time.accrued(usage, _MOMENTS - 1))
    other = Table(caption="Everything else", columns=("item", ">USD"), rows=tuple(usage_text.other_rows(usage)))
    over_time = Table(caption="Accumulated cost", columns=("until", ">USD"), rows=grown)
    pools = Table(caption="Nodes", columns=usage_text.POOL_COLUMNS, rows=tuple(usage_text.pool_rows(usage)))
    return Section(
        anchor="money",
        title="Cost",
        lead=f"{usage_text.so_far(usage)}.",
        pictures=(picture(lambda width: cost_over_time.draw_cost(usage, shown, width)),),
        tables=(over_time, *([pools] if usage.pools else []), other),
    )


def _time(usage: Usage) -> Section:
    lost = usage.lost.node_s
    booting, idle, busy = (usage.total(of).node_s for of in usage_text.PARTS)
    named = (
        ("jobs, progress", max(0.0, busy - lost), State.RUNNING),
        ("jobs, lost at most", min(lost, busy), _LOST),
        ("idle", idle, State.IDLE),
        ("booting", booting, State.BOOTING),
    )
    parts = [
        Part(
            name=name,
            value=seconds,
            words=f"{name}: {usage_text.hours(seconds)} node hours, {seconds / usage.node_s:.1%}",
            colour=str(colour),
        )
        for name, seconds, colour in named
        if seconds
    ]
    rows = tuple((part.name, usage_text.hours(part.value), f"{part.value / usage.node_s:.1%}") for part in parts)
    title = "Node time"
    return Section(
        anchor="time",
        title=title,
        lead=f"{usage_text.node_time(usage)}.",
        pictures=(picture(lambda width: stacked(title, parts, width=width)),),
        tables=(Table(caption=title, columns=("part", ">node hours", ">share"), rows=rows),),
    )


def _interruptions(usage: Usage) -> Section:
    rows = tuple(usage_text.interruption_rows(usage.interruptions))
    return Section(
        anchor="interruptions",
        title="Interruptions",
        lead=f"{usage_text.interrupted(usage)}.",
        tables=(Table(caption="Interruptions", columns=usage_text.INTERRUPTION_COLUMNS, rows=rows),),
    )
