"""The speed of a run: the parts of a step, and its roofline, the limit of each kind of work."""

from __future__ import annotations

import math
from dataclasses import fields

from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.training.explanations import PARTS
from corral.forecast.training.roofline import Roofline, Work, roofline
from corral.report.charts.bar_charts import Part, stacked
from corral.report.charts.line_plots import Dot, Line, log_axis, plot
from corral.report.formatting import three_digits
from corral.report.run.run_view import peak_words
from corral.report.sections.section import Section, Table, picture

_MIN = 0.05  # FLOP/byte, below that of any kind of work
_TERA = 1e12
_COLUMNS = ("work", ">FLOP/byte", ">TFLOP/s forecast", ">TFLOP/s roof", "limited by")


def speed_section(run: RunOutlook) -> Section:
    """The parts of a step."""
    speed = run.training.speed
    seconds = {field.name: float(getattr(speed.parts, field.name)) for field in fields(speed.parts)}
    ranked = [(PARTS[name], value) for name, value in sorted(seconds.items(), key=lambda item: -item[1]) if value]
    total = speed.parts.total
    parts = [
        Part(name=name, value=value, words=f"{name}: {value:.3g} s, {value / total:.1%}") for name, value in ranked
    ]
    off = f"Uncertainty +-{run.training.certainty.off:.0%}: {run.training.certainty.why}."
    rows = tuple((part.name, f"{part.value:.3g}", f"{part.value / total:.1%}") for part in parts)
    title = "Time of a step by parts"
    return Section(
        anchor="speed",
        title=f"A step of {total:.3g} s, bound by {run.training.bound}",
        lead=f"{speed.tokens_per_s:,.0f} tokens per second, MFU {run.training.mfu:.1%}{peak_words(run)}. {off}",
        pictures=(picture(lambda width: stacked(title, parts, width=width)),),
        tables=(Table(caption=title, columns=("part", ">s", ">share"), rows=rows),),
    )


def roofline_section(run: RunOutlook) -> Section:
    """The roofs, and the kinds of work below them."""
    found, name = roofline(run.training.job), run.training.job.machine.accelerator.name
    rows = tuple(_row(number, work, found) for number, work in enumerate(found.works, start=1))
    return Section(
        anchor="roofline",
        title="Limits by kind of work",
        lead=(
            f"An {name} reaches {found.reached_flops / _TERA:,.0f} of {found.peak_flops / _TERA:,.0f} TFLOP/s and"
            f" {found.reached_bytes_per_s / 1e9:,.0f} of {found.peak_bytes_per_s / 1e9:,.0f} GB/s: below"
            f" {found.ridge:,.0f} FLOP/byte memory is the limit, above it compute. Per layer and micro-batch."
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
    x = log_axis("FLOP per byte of memory traffic", _MIN, right, three_digits)
    y = log_axis(
        "TFLOP/s",
        _MIN * found.reached_bytes_per_s / 2,
        found.peak_flops * 2,
        lambda flops: three_digits(flops / _TERA),
    )
    return plot(title, x, y, lines, dots=dots, width=width)


def _roof(flops: float, bytes_per_s: float, right: float) -> tuple[tuple[float, float], ...]:
    """The slope of the memory limit, then the level of the compute limit."""
    return (_MIN, _MIN * bytes_per_s), (flops / bytes_per_s, flops), (right, flops)
