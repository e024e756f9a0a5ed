"""How fast a run is: where the time of a step goes."""

from __future__ import annotations

from dataclasses import fields

from corral.forecast.training.reasons import PARTS
from corral.forecast.whole.run import WholeRun
from corral.report.charts import Part, stacked
from corral.report.run import peak_words
from corral.report.sections.section import Section, Table, picture


def step(run: WholeRun) -> Section:
    """Where the time of a step goes."""
    speed = run.training.speed
    seconds = {field.name: float(getattr(speed.parts, field.name)) for field in fields(speed.parts)}
    ranked = [(PARTS[name], value) for name, value in sorted(seconds.items(), key=lambda item: -item[1]) if value]
    total = speed.parts.total
    parts = [
        Part(name=name, value=value, words=f"{name}: {value:.3g} s, {value / total:.1%}") for name, value in ranked
    ]
    off = f"May be off by {run.training.certainty.off:.0%} either way: {run.training.certainty.why}."
    rows = tuple((part.name, f"{part.value:.3g}", f"{part.value / total:.1%}") for part in parts)
    title = "Where the time of a step goes"
    return Section(
        anchor="speed",
        title=f"A step of {total:.3g} s, bound by {run.training.bound}",
        lead=f"{speed.tokens_per_s:,.0f} tokens a second, MFU {run.training.mfu:.1%}{peak_words(run)}. {off}",
        pictures=(picture(lambda width: stacked(title, parts, width=width)),),
        tables=(Table(caption=title, columns=("part", ">s", ">share"), rows=rows),),
    )
