"""How the cost of a life grew, moment by moment, and the picture of it under the same axis as the timeline's. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from corral.forecast.money import Usd, total
from corral.report.amounts import usd
from corral.report.charts import svg
from corral.report.spent.ledger import Spent
from corral.report.timeline import Timeline
from corral.report.timeline_picture import Frame

_POINTS = 100  # of the curve
_HEIGHT, _TOP, _BOTTOM = 150.0, 14.0, 8.0
TITLE = "US dollars spent over time, from the least to the most that it may be"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accrued:
    """What was spent by then, of what has a known price."""

    at: datetime
    usd: Usd


def accrued(took: Spent, points: int = _POINTS) -> tuple[Accrued, ...]:
    """What was spent at so many moments after the start, evenly apart, the last at the end."""
    step = (took.end - took.start) / points
    return tuple(_by(took, took.start + step * number) for number in range(points + 1))


def drawn(took: Spent, shown: Timeline, width: float) -> str:
    """The picture: a band from the least to the most, with its scale."""
    frame, found = Frame(width=width), accrued(took)
    most = max(found[-1].usd.high, 0.01)
    return svg(TITLE, width, _HEIGHT, [*_scale(frame, most), _band(found, frame, shown, most)])


def _by(took: Spent, at: datetime) -> Accrued:
    nodes = [one.usd(max(0.0, (min(one.over, at) - one.launched).total_seconds())) for one in took.machines]
    whole = (took.end - took.start).total_seconds()
    part = (at - took.start).total_seconds() / whole if whole else 0.0
    things = [usd.times(part) for _, usd in took.things if usd]
    return Accrued(at=at, usd=total((*things, *(one for one in nodes if one))))


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
