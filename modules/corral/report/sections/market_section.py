"""A run in each market: days, cost, checkpoints."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.forecast.goodput import CurvePoint, effective_time_curve
from corral.forecast.run.checkpointing import CheckpointForecast
from corral.forecast.run.data_reading import DataReading
from corral.forecast.run.market_forecast import MarketForecast
from corral.forecast.run.run_outlook import RunOutlook
from corral.report.charts.bar_charts import Range, ranges
from corral.report.charts.line_plots import Axis, AxisMark, Line, plot
from corral.report.formatting import duration, durations, lacking, spread, summed, usd
from corral.report.run.run_view import daily_facts, loading_facts
from corral.report.sections.section import Section, Table, picture

_SHORTEST_S, _LONGEST_S = 10.0, 86_400.0  # range of checkpoint intervals in the curve


def days_section(run: RunOutlook) -> Section:
    """Days, goodput and interruptions in each market."""
    rows = tuple(
        (
            one.market.value if one.enough else f"{one.market.value} (not enough nodes)",
            durations(one.interruptions.shortest_mtbf_s, one.interruptions.longest_mtbf_s),
            _progress(one),
            spread(one.days.low, one.days.high),
        )
        for one in run.markets
    )
    found = [
        Range(name=one.market.value, low=one.days.low, high=one.days.high, words=spread(one.days.low, one.days.high))
        for one in run.markets
    ]
    columns = ("market", ">interrupted every", ">goodput", ">days")
    return Section(
        anchor="time",
        title="Duration",
        lead="From the fewest to the most interruptions expected.",
        pictures=(picture(lambda width: ranges("Days by market", found, width=width)),),
        tables=(Table(caption="Days by market", columns=columns, rows=rows),),
    )


def cost_by_market_section(run: RunOutlook) -> Section:
    """What each charge costs in each market."""
    names = [charge.what for charge in run.markets[0].charges[1:]]
    rows = [("nodes", *(usd(one.charges[0].usd) for one in run.markets))]
    rows += [
        (name, *(usd(one.charges[number].usd) for one in run.markets)) for number, name in enumerate(names, start=1)
    ]
    rows.append(("total", *(summed(one.usd) for one in run.markets)))
    found = [
        Range(name=one.market.value, low=one.usd.usd.low, high=one.usd.usd.high, words=f"{summed(one.usd)} USD")
        for one in run.markets
        if one.usd.usd
    ]
    title, columns = "US dollars by market", ("for", *(f">{one.market.value}" for one in run.markets))
    return Section(
        anchor="money",
        title="Cost of the run",
        lead="US dollars before taxes; a range if prices, speed and interruptions are uncertain.",
        pictures=(picture(lambda width: ranges(title, found, width=width)),),
        tables=(Table(caption=title, columns=columns, rows=tuple(rows)),),
        lines=tuple(f"{one.market.value}:{lacking(one.usd)}" for one in run.markets if one.usd.missing),
    )


def checkpoint_section(run: RunOutlook, checkpoints: CheckpointForecast) -> Section:
    """The checkpoint, and goodput by checkpoint interval."""
    dearest = max(run.markets, key=lambda one: one.interruptions.high_per_h)
    most_per_h = dearest.interruptions.high_per_h
    least_s = min(
        max(_SHORTEST_S, checkpoints.policy.checkpointing.behind_s), _LONGEST_S / 2
    )  # checkpoints do not overlap
    points = effective_time_curve(checkpoints.policy, most_per_h, shortest_s=least_s, longest_s=_LONGEST_S)
    saved_s = dearest.range.worst.interval_s
    return Section(
        anchor="checkpoints",
        title="Checkpoints",
        lead=f"Goodput by checkpoint interval; {dearest.market.value}, worst case.",
        pictures=(picture(lambda width: _progress_curve(points, saved_s, width)),),
        tables=(Table(caption="A checkpoint", columns=("", ""), rows=(*_checkpoint(checkpoints), *daily_facts(run))),),
    )


def data_section(data: DataReading) -> Section:
    """The data that the run reads."""
    table = Table(caption="Data", columns=("", ""), rows=tuple(loading_facts(data)))
    return Section(anchor="data", title="Data", lead=f"Read from {data.storage}.", tables=(table,))


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
    y = Axis(words="goodput", low=twentieths / 20, high=1.0, ticks=ticks, shown=lambda part: f"{part:.0%}")
    line = Line(name="goodput", points=tuple((point.interval_s, point.progress) for point in points))
    title = "Goodput by checkpoint interval"
    return plot(title, x, y, (line,), marks=(AxisMark(x=saved_s, words=f"every {duration(saved_s)}"),), width=width)


def _checkpoint(checkpoints: CheckpointForecast) -> list[tuple[str, str]]:
    rate = f"{checkpoints.write.bytes_per_s / 1e9:,.2f} GB/s"
    rows = [
        ("size", f"{checkpoints.size.size_bytes / 1e9:,.1f} GB"),
        ("written in", f"{duration(checkpoints.write_s)} at {rate}, {checkpoints.storage}"),
        ("stalls the run", f"{checkpoints.policy.checkpointing.stall_s:,.1f} s"),
        ("read in", duration(checkpoints.read_s)),
    ]
    if checkpoints.faster:
        system = checkpoints.faster.system
        rows.append(("in 1 min", f"with {system.size_gib:,} GiB of {system.deployment.name}"))
    return rows


def _progress(one: MarketForecast) -> str:
    return f"{one.range.worst.shares.progress:.1%} - {one.range.best.shares.progress:.1%}"
