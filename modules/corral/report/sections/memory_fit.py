"""The layout of a run, and whether it fits."""

from __future__ import annotations

from corral.forecast.run.run_outlook import RunOutlook
from corral.forecast.training.explanations import layout_words, why_it_loses
from corral.forecast.training.memory import GIB
from corral.report.charts.bar_charts import Part, stacked
from corral.report.run.run_view import MEMORY_PARTS, NONE_FITS
from corral.report.sections.section import Section, Table, picture


def layout_section(run: RunOutlook) -> Section:
    """The layout, and why the runners-up lose."""
    choice = run.training.choice
    if choice is None:
        lead, why = "From the run file.", "declared"
    elif choice.best is None:
        lead, why = f"{NONE_FITS}.", "lacks the least memory"
    else:
        lead, why = f"Chosen from {choice.examined:,} layouts.", "the fastest that fits"
    rows = [(layout_words(run.training.layout), why)]
    if choice and choice.best:
        others = [*choice.others, *([choice.too_large] if choice.too_large else [])]
        rows += [(layout_words(one.layout), why_it_loses(one, choice.best)) for one in others]
    found = Table(caption="The layout and the runners-up", columns=("layout", "why"), rows=tuple(rows))
    return Section(anchor="layout", title="Layout", lead=lead, tables=(found,))


def memory_section(run: RunOutlook) -> Section:
    """The memory by parts."""
    needs, limit = run.training.memory, run.training.memory_gib
    found = [(name, float(getattr(needs, name)) / GIB) for name in MEMORY_PARTS]
    parts = [Part(name=name, value=gib, words=f"{name}: {gib:.1f} GiB") for name, gib in found if gib]
    title, has = "Memory by parts", f"{limit:,.0f} GiB"
    rows = (*((part.name, f"{part.value:.1f}") for part in parts), ("total", f"{needs.total_gib:.1f}"))
    return Section(
        anchor="memory",
        title="Memory of the accelerator that needs the most",
        lead=f"{needs.total_gib:,.1f} of {has}{_lacking(run)}.",
        pictures=(picture(lambda width: stacked(title, parts, limit=limit, limit_words=has, width=width)),),
        tables=(Table(caption=title, columns=("part", ">GiB"), rows=rows),),
    )


def _lacking(run: RunOutlook) -> str:
    """The suffix for a run that does not fit; empty for others."""
    training = run.training
    if training.fits:
        return ""
    change = f"; change first: {training.change}" if training.change else ""
    return f"; {training.missing_gib:,.1f} GiB missing{change}"
