"""A life as one HTML file to hand on: its picture, what it took, what went otherwise. Nothing in it is fetched."""

from __future__ import annotations

from collections.abc import Sequence

from corral.report.html import template
from corral.report.sections.section import Section, Table, picture
from corral.report.spent import words
from corral.report.spent.compared import Comparison
from corral.report.spent.ledger import Spent
from corral.report.spent.sections import cards, comparison_section, spent_sections
from corral.report.timeline import Timeline
from corral.report.timeline_picture import drawn, marks
from corral.report.timeline_text import heading_of, moment


def page(
    shown: Timeline, took: Spent | None = None, against: Comparison | None = None, *, notes: Sequence[str] = ()
) -> str:
    """The whole HTML file. `notes`: what is said of it as a whole, as which life this is."""
    sections = [_picture(shown, notes)]
    if took is not None:
        sections += spent_sections(took, shown)
    if against is not None:
        sections.append(comparison_section(against))
    if found := marks(shown):
        rows = tuple((moment(mark.at, shown), mark.kind, mark.text) for mark in found)
        table = Table(caption="What went otherwise", columns=("at", "event", "what"), rows=rows)
        sections.append(Section(anchor="events", title="What went otherwise", tables=(table,)))
    if took is not None:
        sections.append(Section(anchor="assumed", title="Assumed", lines=words.ASSUMED))
    return template("plan.html.j2").render(
        title=f"Cluster {shown.cluster}",
        lead=heading_of(shown),
        cards=cards(took) if took is not None else [],
        sections=sections,
    )


def _picture(shown: Timeline, notes: Sequence[str]) -> Section:
    return Section(
        anchor="life",
        title="Over time",
        lead="The head, each node, each job; times are UTC. Point at anything to read more of it.",
        pictures=(picture(lambda width: drawn(shown, width)),),
        lines=(*notes, *([shown.problem] if shown.problem else [])),
    )
