"""Accumulated cost over time, and its chart on the same axis as the timeline. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.cost.cost_range import Usd, total
from corral.report.charts.bar_charts import svg
from corral.report.formatting import usd
from corral.report.timeline.timeline import Timeline
from corral.report.timeline.timeline_svg import Frame
from corral.report.usage.usage_summary import Usage

_POINTS = 100  # of the curve
_HEIGHT, _TOP, _BOTTOM = 150.0, 14.0, 8.0
TITLE = "Accumulated cost in US dollars, from its lowest to its highest possible value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accrued:
    """The cost until then, of everything with a known price."""

    at: datetime
    usd: Usd


def accrued(usage: Usage, points: int = _POINTS) -> tuple[Accrued, ...]:
    """The accumulated cost at the start and at `points` evenly spaced times until the end."""
    step = (usage.end - usage.start) / points
    return tuple(_cost_until(usage, usage.start + step * number) for number in range(points + 1))


def draw_cost(usage: Usage, shown: Timeline, width: float) -> str:
    """The chart: a band from the lowest to the highest cost, with its scale."""
    frame, found = Frame(width=width), accrued(usage)
    most = max(found[-1].usd.high, 0.01)
    return svg(TITLE, width, _HEIGHT, [*_scale(frame, most), _band(found, frame, shown, most)])


def _cost_until(usage: Usage, at: datetime) -> Accrued:
    nodes = [one.usd(max(0.0, (min(one.ended, at) - one.launched).total_seconds())) for one in usage.machines]
    whole = (usage.end - usage.start).total_seconds()
    part = (at - usage.start).total_seconds() / whole if whole else 0.0
    other = [usd.times(part) for _, usd in usage.other if usd]
    return Accrued(at=at, usd=total((*other, *(one for one in nodes if one))))


def _scale(frame: Frame, most: float) -> Iterator[str]:
    for part in (0.0, 0.5, 1.0):
        y = _y(most * part, most)
        yield f'<path class="grid" d="M{frame.left:.0f} {y:.1f}H{frame.left + frame.axis:.0f}"/>'
        words = usd(Usd.exact(most * part))
        yield f'<text class="quiet" x="{frame.left - 8:.0f}" y="{y + 4:.1f}" text-anchor="end">{words}</text>'


def _band(found: Sequence[Accrued], frame: Frame, shown: Timeline, most: float) -> str:
    across = [frame.left + frame.x(shown, one.at) for one in found]
    above = [f"{x:.1f} {_y(one.usd.high, most):.1f}" for x, one in zip(across, found, strict=True)]
    below = [f"{x:.1f} {_y(one.usd.low, most):.1f}" for x, one in zip(across, found, strict=True)]
    words = f"<title>{usd(found[-1].usd)} USD at the end</title>"
    line = f'<path class="line" d="M{"L".join(above)}"/>'
    return f'<path class="c0" opacity="0.45" d="M{"L".join((*above, *reversed(below)))}Z">{words}</path>{line}'


def _y(amount: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - amount / most * (_HEIGHT - _TOP - _BOTTOM)
