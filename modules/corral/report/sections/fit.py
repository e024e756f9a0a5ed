"""How a run is laid out, and whether it fits."""

from __future__ import annotations

from corral.forecast.training.memory import GIB
from corral.forecast.training.reasons import layout_words, why_it_loses
from corral.forecast.whole.run import WholeRun
from corral.report.charts import Part, stacked
from corral.report.run import MEMORY_PARTS, NONE_FITS
from corral.report.sections.section import Section, Table, picture


def layout(run: WholeRun) -> Section:
    """The layout, and why others lose."""
    choice = run.training.choice
    if choice is None:
        lead, why = "As the run file says.", "declared"
    elif choice.best is None:
        lead, why = f"{NONE_FITS}.", "the one that lacks least"
    else:
        lead, why = f"Of {choice.examined:,} layouts.", "the fastest that fits"
    rows = [(layout_words(run.training.layout), why)]
    if choice and choice.best:
        others = [*choice.others, *([choice.too_large] if choice.too_large else [])]
        rows += [(layout_words(one.layout), why_it_loses(one, choice.best)) for one in others]
    found = Table(caption="The layout, and the runners-up", columns=("layout", "why"), rows=tuple(rows))
    return Section(anchor="layout", title="Layout", lead=lead, tables=(found,))


def memory(run: WholeRun) -> Section:
    """The memory stack."""
    needs, limit = run.training.memory, run.training.memory_gib
    found = [(name, float(getattr(needs, name)) / GIB) for name in MEMORY_PARTS]
    parts = [Part(name=name, value=gib, words=f"{name}: {gib:.1f} GiB") for name, gib in found if gib]
    title, has = "Memory by what takes it", f"{limit:,.0f} GiB"
    rows = (*((part.name, f"{part.value:.1f}") for part in parts), ("together", f"{needs.total_gib:.1f}"))
    return Section(
        anchor="memory",
        title="Memory of the accelerator that needs most",
        lead=f"{needs.total_gib:,.1f} of {has}{_lacking(run)}.",
        pictures=(picture(lambda width: stacked(title, parts, limit=limit, limit_words=has, width=width)),),
        tables=(Table(caption=title, columns=("part", ">GiB"), rows=rows),),
    )


def _lacking(run: WholeRun) -> str:
    """What is said of a run that does not fit; nothing of others."""
    training = run.training
    if training.fits:
        return ""
    change = f"; change first: {training.change}" if training.change else ""
    return f": it lacks {training.missing_gib:,.1f} GiB{change}"
