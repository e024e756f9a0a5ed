"""What a life took, as sections of its page: money, interruptions, jobs."""

from __future__ import annotations

from collections.abc import Iterator

from corral.report.amounts import summed, usd
from corral.report.charts import Part, stacked
from corral.report.sections.section import Section, Table, picture
from corral.report.spent import accrued, words
from corral.report.spent.compared import Comparison
from corral.report.spent.ledger import Spent
from corral.report.timeline import State, Timeline

_MOMENTS = 5  # of the table beside the picture of the money
_LOST = "c4"  # of no state, told from green, grey and amber also by who sees no red or no green


def cards(took: Spent) -> list[tuple[str, str]]:
    """The few figures that people look for first."""
    return [
        ("USD so far", summed(took.usd)),
        ("node hours", words.hours(took.node_s)),
        ("node time that was kept work", words.effective(took)),
        ("interruptions", str(len(took.interruptions))),
    ]


def spent_sections(took: Spent, shown: Timeline) -> Iterator[Section]:
    """What its money went into, what interrupted it, what its jobs took."""
    yield _money(took, shown)
    if took.machines:
        yield _time(took)
    if took.interruptions:
        yield _interruptions(took)
    if took.jobs:
        table = Table(caption="Jobs", columns=words.JOB_COLUMNS, rows=tuple(words.job_rows(took.jobs)))
        lead = "With all their runs; a machine that two jobs share counts for each."
        yield Section(anchor="jobs", title="Jobs", lead=lead, tables=(table,))


def comparison_section(against: Comparison) -> Section:
    """The forecast of the run beside what became of it."""
    rows = tuple(words.comparison_rows(against))
    table = Table(caption="The forecast, and so far", columns=words.COMPARISON_COLUMNS, rows=rows)
    lead = words.comparison_lead(against)
    return Section(anchor="forecast", title="Beside the forecast", lead=lead, tables=(table,))


def _money(took: Spent, shown: Timeline) -> Section:
    grown = tuple((words.when(one.at), usd(one.usd)) for one in accrued.accrued(took, _MOMENTS - 1))
    things = Table(caption="All else", columns=("for", ">USD"), rows=tuple(words.thing_rows(took)))
    over_time = Table(caption="US dollars spent by then", columns=("by", ">USD"), rows=grown)
    pools = Table(caption="Nodes", columns=words.POOL_COLUMNS, rows=tuple(words.pool_rows(took)))
    return Section(
        anchor="money",
        title="Money",
        lead=f"{words.so_far(took)}.",
        pictures=(picture(lambda width: accrued.drawn(took, shown, width)),),
        tables=(over_time, *([pools] if took.pools else []), things),
    )


def _time(took: Spent) -> Section:
    lost = took.lost.node_s
    booting, idle, busy = (took.total(of).node_s for of in words.PARTS)
    named = (
        ("jobs, kept work", max(0.0, busy - lost), State.RUNNING),
        ("jobs, lost at most", min(lost, busy), _LOST),
        ("idle", idle, State.IDLE),
        ("booting", booting, State.BOOTING),
    )
    parts = [
        Part(
            name=name,
            value=seconds,
            words=f"{name}: {words.hours(seconds)} node hours, {seconds / took.node_s:.1%}",
            colour=str(colour),
        )
        for name, seconds, colour in named
        if seconds
    ]
    rows = tuple((part.name, words.hours(part.value), f"{part.value / took.node_s:.1%}") for part in parts)
    title = "What the time of nodes went into"
    return Section(
        anchor="time",
        title=title,
        lead=f"{words.node_time(took)}.",
        pictures=(picture(lambda width: stacked(title, parts, width=width)),),
        tables=(Table(caption=title, columns=("part", ">node hours", ">share"), rows=rows),),
    )


def _interruptions(took: Spent) -> Section:
    rows = tuple(words.interruption_rows(took.interruptions))
    return Section(
        anchor="interruptions",
        title="Interruptions",
        lead=f"{words.interrupted(took)}.",
        tables=(Table(caption="Interruptions", columns=words.INTERRUPTION_COLUMNS, rows=rows),),
    )
