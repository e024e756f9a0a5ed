"""The speed of a run by number of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.training.explanations import layout_words
from corral.forecast.training.from_spec import open_job_of
from corral.forecast.training.scaling import ScalingPoint, scaling_curve
from corral.report.charts.line_plots import Axis, Line, log_axis, plot
from corral.report.formatting import count, short
from corral.report.sections.section import Section, Table, picture

_COLUMNS = ("nodes", ">tokens/s", ">efficiency", ">communication", "layout")
_MARGIN = 1.3  # factor above and below the curve


def scaling_section(run: RunOutlook) -> Section:
    """Speed and efficiency by the number of nodes."""
    training = run.training
    points = scaling_curve(open_job_of(training.run), training.layout, training.speed)
    first = "one node" if points[0].nodes == 1 else f"{points[0].nodes:,} nodes"
    return Section(
        anchor="scaling",
        title="Speed by number of nodes",
        lead=(
            "The same batch on more and fewer nodes, each in its fastest layout. Efficiency: speed per accelerator"
            f" relative to {first}, the fewest on which the run fits; above 100% if the fewest nodes must recompute"
            " what more nodes can store."
        ),
        pictures=(
            picture(lambda width: _tokens(points, width)),
            picture(lambda width: _efficiency(points, width)),
        ),
        tables=(
            Table(
                caption="Speed by nodes",
                columns=_COLUMNS,
                rows=tuple(_row(point, own=point.nodes == run.spec.nodes) for point in points),
            ),
        ),
    )


def _row(point: ScalingPoint, *, own: bool) -> tuple[str, ...]:
    return (
        f"{point.nodes:,}{' (this run)' if own else ''}",
        f"{point.speed.tokens_per_s:,.0f}",
        f"{point.efficiency:.0%}",
        f"{point.speed.communication_share:.0%}",
        layout_words(point.layout),
    )


def _tokens(points: Sequence[ScalingPoint], width: float) -> str:
    first = points[0].speed.tokens_per_s / points[0].nodes
    reached = tuple((point.nodes, point.speed.tokens_per_s) for point in points)
    ideal = tuple((point.nodes, first * point.nodes) for point in points)
    speeds = [speed for _, speed in (*reached, *ideal)]
    lines = (Line(name="forecast", points=reached), Line(name="linear", points=ideal, dashed=True))
    y = log_axis("tokens/s", min(speeds) / _MARGIN, max(speeds) * _MARGIN, short)
    return plot("Tokens per second by nodes", _nodes(points), y, lines, width=width)


def _efficiency(points: Sequence[ScalingPoint], width: float) -> str:
    most = max(1.0, *(point.efficiency for point in points))
    quarters = math.ceil(most * 4)
    ticks = tuple(step / 4 for step in range(quarters + 1))
    y = Axis(words="parallel efficiency", low=0.0, high=quarters / 4, ticks=ticks, shown=lambda part: f"{part:.0%}")
    line = Line(name="efficiency", points=tuple((point.nodes, point.efficiency) for point in points))
    return plot("Parallel efficiency by nodes", _nodes(points), y, (line,), width=width)


def _nodes(points: Sequence[ScalingPoint]) -> Axis:
    ticks = tuple(float(point.nodes) for point in points)
    return Axis(words="nodes", low=ticks[0], high=max(ticks[-1], ticks[0] * 2), ticks=ticks, shown=count, log=True)
