"""`corral timeline`: shows what head, nodes and jobs did over time and what it cost, also of a deleted cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from corral.cli.support.cost_report import CostReport, cost_report, read_pricing
from corral.cli.support.env_summary import EnvironmentSummary, read_summary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import (
    AsJson,
    BoxDirectory,
    Environment,
    Html,
    InBox,
    Project,
    Since,
    examples,
    new_app,
    seconds_of,
)
from corral.cli.support.output import show, show_json, show_lines, waiting
from corral.cli.support.page_file import require_writable, write_page
from corral.cli.support.target_account import use_account
from corral.cli.support.timeline_data import ClusterHistory, read_cluster_history
from corral.inventory.scan import open_session
from corral.report.tables import heading, lines
from corral.report.timeline.history_list import history_view
from corral.report.timeline.timeline_text import TimelineText, heading_of
from corral.report.usage.usage_json import timeline_document
from corral.report.usage.usage_view import usage_view

app = new_app()
History = Annotated[
    str | None,
    typer.Option("--history", metavar="WHEN", help="Show the recorded history that began then, e.g. 2026-11-22."),
]
Run = Annotated[
    Path | None, typer.Option("--run", metavar="FILE", help="Compare with the forecast of this run (docs/spec.md).")
]
ListHistory = Annotated[bool, typer.Option("--list-history", help="List the recorded histories.")]


@app.command(
    epilog=examples(
        "corral timeline dev",
        "corral timeline dev --box --html timeline.html",
        "corral timeline dev --since 2h",
        "corral timeline dev --json | jq .usage.usd",
        "corral timeline train --run examples/runs/llama3-8b.yaml",
        "corral timeline dev --list-history",
        "corral timeline dev --history 2026-11-22",
    )
)
def timeline(
    env: Environment,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    since: Since = None,
    html: Html = None,
    history: History = None,
    list_history: ListHistory = False,
    run: Run = None,
    json: AsJson = False,
) -> None:
    """Show what a cluster's nodes and jobs did over time, and its cost.

    Times are UTC; costs follow the catalog's prices. If no head runs, shows the newest recorded history. --run
    compares the largest job of the run's queue with its forecast.
    """
    if list_history and (history is not None or since or html or run or json):
        raise Failure("--list-history excludes --history, --since, --html, --run and --json", ExitCode.WRONG_INPUT)
    long_s = None if since is None else seconds_of("--since", since)
    if html is not None:
        require_writable(html)
    summary = read_summary(project, env, in_box=box, box_directory=box_dir)
    pricing = None if list_history else read_pricing(summary, run)
    use_account(in_box=box, box_directory=box_dir)
    session = open_session(summary.region, quick=True)
    if list_history:
        return _list_history(summary, session)
    cluster_history = read_cluster_history(summary, session, box_dir, history, long_s)
    report = cost_report(pricing, cluster_history)
    if html is not None:
        _write(html, cluster_history, report)
    if json:
        return show_json(
            timeline_document(
                cluster_history.timeline,
                report.usage,
                report.comparison,
                source=cluster_history.source,
                problem=report.problem,
            )
        )
    _show(cluster_history, report, summary.account_option)
    if html is not None:
        show_lines((f"  Written: {html}",))  # a long path is not broken


def _list_history(summary: EnvironmentSummary, session: Any) -> None:
    from corral.inventory.history_store import list_histories

    with waiting(f"reading the recorded histories of {summary.name}"):
        found = list_histories(session, summary.base, summary.name)
    show(history_view(summary.name, found, summary.account_option))


def _show(cluster_history: ClusterHistory, report: CostReport, account_option: str) -> None:
    """Prints the timeline. A recorded history has no head to query for events: its HTML page lists them."""
    shown, source = cluster_history.timeline, cluster_history.source
    command, option = ("timeline", "--html FILE") if source else ("status", "--events")
    text = TimelineText(shown, f"corral {command} {shown.cluster}{account_option} {option}")
    show((heading(shown.cluster, heading_of(shown)), *([lines([source])] if source else []), Text(), text))
    if shown.problem:
        show((Text(f"  {shown.problem}"),))
    if report.usage is not None:
        show(usage_view(report.usage, report.comparison))
    if report.problem:
        show((Text(f"  {report.problem}"),))


def _write(html: Path, cluster_history: ClusterHistory, report: CostReport) -> None:
    from corral.report.pages.timeline_page import timeline_page

    remarks = [line for line in (cluster_history.source, report.problem) if line]
    page = timeline_page(cluster_history.timeline, report.usage, report.comparison, remarks=remarks)
    write_page(html, page)
