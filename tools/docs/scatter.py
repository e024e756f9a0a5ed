"""A scatter chart of predicted against reported speed, as one self-contained SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from xml.sax.saxutils import quoteattr

from corral.forecast.published.speed_validation import SpeedComparison

_SIZE = 640  # pixels, width and height
_EDGE = 60
_FAR = 0.4  # error of the dashed lines
_COLOURS = {"dense, 16 bits": "#1f6fb4", "dense, fewer bits": "#2a9d57", "mixtures of experts": "#c8553d"}


def scatter_svg(comparisons: Sequence[SpeedComparison], held_out: Sequence[SpeedComparison] = ()) -> str:
    """Tokens per second and accelerator, on logarithmic axes. The title of a point is its run and error.

    Held-out runs are rings.
    """
    points = [
        (one, one.run.reported, ring)
        for ones, ring in ((comparisons, False), (held_out, True))
        for one in ones
        if one.run.reported is not None
    ]
    powers = [math.log10(value) for one, reported, _ in points for value in (one.predicted, reported)]
    low, high = math.floor(min(powers)), math.ceil(max(powers))
    lines = [*_frame(low, high), *(_point(*point, low, high) for point in points), *_legend(bool(held_out))]
    title = "Tokens a second for each accelerator: predicted against reported"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" role="img" '
        f'font-family="sans-serif" font-size="13"><title>{title}</title>\n'
        f'<rect width="{_SIZE}" height="{_SIZE}" fill="#ffffff"/>\n' + "\n".join(lines) + "\n</svg>\n"
    )


def group_of(one: SpeedComparison) -> str:
    """The name of the group whose colour the run has."""
    if one.run.job.shape.is_moe:
        return "mixtures of experts"
    return "dense, 16 bits" if one.run.is_dense_16_bit else "dense, fewer bits"


def _position(power: float, low: int, high: int) -> float:
    return _EDGE + (power - low) / (high - low) * (_SIZE - 2 * _EDGE)


def _frame(low: int, high: int) -> Iterator[str]:
    for power in range(low, high + 1):
        x = _position(power, low, high)
        y = _SIZE - x
        cross = f"M{x:.1f} {_EDGE}V{_SIZE - _EDGE}M{_EDGE} {y:.1f}H{_SIZE - _EDGE}"
        yield f'<path d="{cross}" stroke="#dddddd" fill="none"/>'
        yield f'<text x="{x:.1f}" y="{_SIZE - _EDGE + 20}" text-anchor="middle">{10**power:,}</text>'
        yield f'<text x="{_EDGE - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:,}</text>'
    for factor, dash in ((1.0, ""), (1 + _FAR, ' stroke-dasharray="4 4"'), (1 - _FAR, ' stroke-dasharray="4 4"')):
        up = math.log10(factor)
        begin, end = low + max(0.0, -up), high - max(0.0, up)
        x1, x2 = _position(begin, low, high), _position(end, low, high)
        y1, y2 = _SIZE - _position(begin + up, low, high), _SIZE - _position(end + up, low, high)
        yield f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#666666" fill="none"{dash}/>'
    yield f'<text x="{_SIZE / 2}" y="{_SIZE - 12}" text-anchor="middle">reported (dashed: 40 % off)</text>'
    yield f'<text transform="translate(14 {_SIZE / 2}) rotate(-90)" text-anchor="middle">predicted</text>'


def _point(one: SpeedComparison, reported: float, ring: bool, low: int, high: int) -> str:
    x, y = _position(math.log10(reported), low, high), _SIZE - _position(math.log10(one.predicted), low, high)
    words = f"{one.run.run_id}: {one.predicted:,.1f} for {reported:,.1f} ({one.error or 0.0:+.1%})"
    colour = quoteattr(_COLOURS[group_of(one)])
    title = f"<title>{escape(words)}</title>"
    style = f'fill="none" stroke={colour} stroke-width="1.5"' if ring else f'fill={colour} fill-opacity="0.7"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {style}>{title}</circle>'


def _legend(rings: bool) -> Iterator[str]:
    for row, (name, colour) in enumerate(_COLOURS.items()):
        y = _EDGE + 18 + 20 * row
        yield f'<circle cx="{_EDGE + 14}" cy="{y}" r="4" fill="{colour}"/>'
        yield f'<text x="{_EDGE + 26}" y="{y + 4}">{escape(name)}</text>'
    if rings:
        y = _EDGE + 18 + 20 * len(_COLOURS)
        yield f'<circle cx="{_EDGE + 14}" cy="{y}" r="4" fill="none" stroke="#666666" stroke-width="1.5"/>'
        yield f'<text x="{_EDGE + 26}" y="{y + 4}">rings: held out</text>'
