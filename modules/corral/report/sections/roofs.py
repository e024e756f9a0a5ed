"""The roofline of a run: what limits each kind of its work."""

from __future__ import annotations

import math

from corral.forecast.training.roofline import Roofline, Work, roofline
from corral.forecast.whole.run import WholeRun
from corral.report.amounts import three_digits
from corral.report.plots import Dot, Line, log_axis, plot
from corral.report.sections.section import Section, Table, picture

_LEAST = 0.05  # FLOP/byte, less than any sum of numbers has
_TERA = 1e12
_COLUMNS = ("work", ">FLOP/byte", ">TFLOP/s in the forecast", ">TFLOP/s of the roof", "limited by")


def roofs(run: WholeRun) -> Section:
    """The roofs, and each kind of work below them."""
    found, name = roofline(run.training.job), run.training.job.machine.accelerator.name
    rows = tuple(_row(number, work, found) for number, work in enumerate(found.works, start=1))
    return Section(
        anchor="roofline",
        title="What limits each kind of work",
        lead=(
            f"An {name} reaches {found.reached_flops / _TERA:,.0f} of {found.peak_flops / _TERA:,.0f} TFLOP/s and"
            f" {found.reached_bytes_per_s / 1e9:,.0f} of {found.peak_bytes_per_s / 1e9:,.0f} GB/s: below"
            f" {found.ridge:,.0f} FLOP/byte memory limits, above it compute. Work of one layer and micro-batch."
        ),
        pictures=(picture(lambda width: _drawn(f"Roofline of {name}", found, width)),),
        tables=(Table(caption="Kinds of work", columns=_COLUMNS, rows=rows),),
    )


def _row(number: int, work: Work, found: Roofline) -> tuple[str, ...]:
    figures = work.intensity, work.flops_per_s / _TERA, found.roof(work.intensity) / _TERA
    return f"{number}: {work.name}", *map(three_digits, figures), found.bound(work)


def _drawn(title: str, found: Roofline, width: float) -> str:
    most = max(found.ridge, *(work.intensity for work in found.works))
    right = 10.0 ** math.ceil(math.log10(most) + 0.2)
    lines = (
        Line(name="reached", points=_roof(found.reached_flops, found.reached_bytes_per_s, right)),
        Line(name="peak", points=_roof(found.peak_flops, found.peak_bytes_per_s, right), dashed=True),
    )
    dots = [
        Dot(
            x=one.intensity,
            y=one.flops_per_s,
            name=one.name,
            words=f"{one.name}: {three_digits(one.intensity)} FLOP/byte",
        )
        for one in found.works
    ]
    x = log_axis("FLOP for each byte of memory", _LEAST, right, three_digits)
    y = log_axis(
        "TFLOP/s",
        _LEAST * found.reached_bytes_per_s / 2,
        found.peak_flops * 2,
        lambda flops: three_digits(flops / _TERA),
    )
    return plot(title, x, y, lines, dots=dots, width=width)


def _roof(flops: float, bytes_per_s: float, right: float) -> tuple[tuple[float, float], ...]:
    """The slope of memory, then the level of compute."""
    return (_LEAST, _LEAST * bytes_per_s), (flops / bytes_per_s, flops), (right, flops)
