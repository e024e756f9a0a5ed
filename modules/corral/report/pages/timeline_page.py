"""A cluster's history as one HTML file: timeline, usage, unexpected events. The file loads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from corral.report.html_templates import template
from corral.report.sections.section import Section, Table, picture
from corral.report.timeline.timeline import Timeline
from corral.report.timeline.timeline_svg import draw_timeline, marks
from corral.report.timeline.timeline_text import heading_of, time_text
from corral.report.usage import usage_text
from corral.report.usage.forecast_vs_actual import ForecastComparison
from corral.report.usage.usage_sections import cards, comparison_section, usage_sections
from corral.report.usage.usage_summary import Usage


def timeline_page(
    shown: Timeline,
    usage: Usage | None = None,
    against: ForecastComparison | None = None,
    *,
    remarks: Sequence[str] = (),
) -> str:
    """The HTML file. `remarks`: lines about the whole, such as which recorded history this is."""
    sections = [_picture(shown, remarks)]
    if usage is not None:
        sections += usage_sections(usage, shown)
    if against is not None:
        sections.append(comparison_section(against))
    if found := marks(shown):
        rows = tuple((time_text(mark.at, shown), mark.kind, mark.text) for mark in found)
        table = Table(caption="Unexpected events", columns=("at", "event", "what"), rows=rows)
        sections.append(Section(anchor="events", title="Unexpected events", tables=(table,)))
    if usage is not None:
        sections.append(Section(anchor="assumed", title="Assumed", lines=usage_text.ASSUMED))
    return template("plan.html.j2").render(
        title=f"Cluster {shown.cluster}",
        lead=heading_of(shown),
        cards=cards(usage) if usage is not None else [],
        sections=sections,
    )


def _picture(shown: Timeline, remarks: Sequence[str]) -> Section:
    return Section(
        anchor="timeline",
        title="Over time",
        lead="The head, each node, each job; times are UTC. Hover over a bar or mark for details.",
        pictures=(picture(lambda width: draw_timeline(shown, width)),),
        lines=(*remarks, *([shown.problem] if shown.problem else [])),
    )
