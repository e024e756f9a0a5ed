"""How a run goes until it is done, in each market: days, dollars, what checkpoints are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.forecast.reliability import CurvePoint, effective_time_curve
from corral.forecast.whole.course import Course
from corral.forecast.whole.loading import Loading
from corral.forecast.whole.run import WholeRun
from corral.forecast.whole.saving import Saving
from corral.report.amounts import duration, durations, lacking, spread, summed, usd
from corral.report.charts import Range, ranges
from corral.report.plots import Axis, Line, Mark, plot
from corral.report.run import daily_facts, loading_facts
from corral.report.sections.section import Section, Table, picture

_SHORTEST_S, _LONGEST_S = 10.0, 86_400.0  # between checkpoints, of the curve


def days(run: WholeRun) -> Section:
    """How long it takes."""
    rows = tuple(
        (
            one.market.value if one.enough else f"{one.market.value} (not enough nodes)",
            durations(one.interruptions.shortest_mtbf_s, one.interruptions.longest_mtbf_s),
            _progress(one),
            spread(one.days.low, one.days.high),
        )
        for one in run.courses
    )
    found = [
        Range(name=one.market.value, low=one.days.low, high=one.days.high, words=spread(one.days.low, one.days.high))
        for one in run.courses
    ]
    columns = ("market", ">interrupted every", ">time that is progress", ">days")
    return Section(
        anchor="time",
        title="Days until it is done",
        lead="From the fewest to the most interruptions that are to be expected.",
        pictures=(picture(lambda width: ranges("Days by market", found, width=width)),),
        tables=(Table(caption="Days by market", columns=columns, rows=rows),),
    )


def dollars(run: WholeRun) -> Section:
    """What it costs."""
    names = [charge.what for charge in run.courses[0].charges[1:]]
    rows = [("the nodes", *(usd(one.charges[0].usd) for one in run.courses))]
    rows += [(name, *(usd(one.charges[place].usd) for one in run.courses)) for place, name in enumerate(names, start=1)]
    rows.append(("together", *(summed(one.usd) for one in run.courses)))
    found = [
        Range(name=one.market.value, low=one.usd.usd.low, high=one.usd.usd.high, words=f"{summed(one.usd)} USD")
        for one in run.courses
        if one.usd.usd
    ]
    title, columns = "US dollars by market", ("for", *(f">{one.market.value}" for one in run.courses))
    return Section(
        anchor="money",
        title="US dollars until it is done",
        lead="Before taxes; a range where prices, speed and interruptions are not certain.",
        pictures=(picture(lambda width: ranges(title, found, width=width)),),
        tables=(Table(caption=title, columns=columns, rows=tuple(rows)),),
        lines=tuple(f"{one.market.value}:{lacking(one.usd)}" for one in run.courses if one.usd.missing),
    )


def checkpoints(run: WholeRun, saving: Saving) -> Section:
    """What a checkpoint is, and how much of the time is progress by how often there is one."""
    dearest = max(run.courses, key=lambda one: one.interruptions.high_per_h)
    most_per_h = dearest.interruptions.high_per_h
    least_s = min(max(_SHORTEST_S, saving.habits.checkpointing.behind_s), _LONGEST_S / 2)  # one is written at a time
    points = effective_time_curve(saving.habits, most_per_h, shortest_s=least_s, longest_s=_LONGEST_S)
    saved_s = dearest.range.worst.interval_s
    return Section(
        anchor="checkpoints",
        title="Checkpoints",
        lead=f"How much of the time is progress, by how often the run saves; {dearest.market.value}, at worst.",
        pictures=(picture(lambda width: _progress_curve(points, saved_s, width)),),
        tables=(Table(caption="A checkpoint", columns=("", ""), rows=(*_checkpoint(saving), *daily_facts(run))),),
    )


def data(loading: Loading) -> Section:
    """What the run reads."""
    table = Table(caption="What is read", columns=("", ""), rows=tuple(loading_facts(loading)))
    return Section(anchor="data", title="Data", lead=f"Read from {loading.place}.", tables=(table,))


def _progress_curve(points: Sequence[CurvePoint], saved_s: float, width: float) -> str:
    twentieths = math.floor(min(point.progress for point in points) * 20)
    ticks = tuple(part / 20 for part in range(twentieths, 21, max(1, (20 - twentieths) // 4)))
    x = Axis(
        words="computing between two checkpoints",
        low=_SHORTEST_S,
        high=_LONGEST_S,
        ticks=(10, 60, 600, 3600, 21_600, 86_400),
        shown=duration,
        log=True,
    )
    y = Axis(words="progress", low=twentieths / 20, high=1.0, ticks=ticks, shown=lambda part: f"{part:.0%}")
    line = Line(name="progress", points=tuple((point.interval_s, point.progress) for point in points))
    title = "Time that is progress, by the time between checkpoints"
    return plot(title, x, y, (line,), marks=(Mark(x=saved_s, words=f"saved each {duration(saved_s)}"),), width=width)


def _checkpoint(saving: Saving) -> list[tuple[str, str]]:
    rows = [
        ("size", f"{saving.size.size_bytes / 1e9:,.1f} GB"),
        ("written in", f"{duration(saving.write_s)} at {saving.write.bytes_per_s / 1e9:,.2f} GB/s, {saving.place}"),
        ("stops the run", f"{saving.habits.checkpointing.stall_s:,.1f} s"),
        ("read in", duration(saving.read_s)),
    ]
    if saving.faster:
        system = saving.faster.system
        rows.append(("in a minute", f"with {system.size_gib:,} GiB of {system.deployment.name}"))
    return rows


def _progress(one: Course) -> str:
    return f"{one.range.worst.shares.progress:.1%} - {one.range.best.shares.progress:.1%}"
