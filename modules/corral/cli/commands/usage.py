"""`corral usage`: shows who used a cluster and what it cost, over all its deployments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.support.cost_report import Pricing, read_pricing
from corral.cli.support.env_summary import EnvironmentSummary, read_summary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import (
    AsJson,
    BoxDirectory,
    Environment,
    InBox,
    Project,
    examples,
    new_app,
    seconds_of,
)
from corral.cli.support.output import show, show_json, show_lines
from corral.cli.support.page_file import require_writable, write_page
from corral.cli.support.target_account import use_account
from corral.cli.support.timeline_data import ClusterHistory, read_cluster_histories
from corral.inventory.scan import open_session
from corral.report.usage.usage_by import GroupBy, UsageTable, usage_table
from corral.report.usage.usage_by_views import usage_table_csv, usage_table_document, usage_table_view
from corral.report.usage.usage_summary import Usage, compute_usage

app = new_app()
By = Annotated[GroupBy, typer.Option("--by", help="Show a row for each of these.")]
From = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Start: 2026-11-01, or 30d for 30 days ago (default: all)."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="End: 2026-12-01, or 12h for 12 hours ago (default: now).")
]
History = Annotated[
    str | None,
    typer.Option("--history", metavar="WHEN", help="Show only the recorded history that began then, e.g. 2026-11-22."),
]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write it as HTML, with a bar per day.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")]


@app.command(
    epilog=examples(
        "corral usage train",
        "corral usage train --by account --since 2026-11-01 --until 2026-12-01 --csv",
        "corral usage train --by day --since 14d",
        "corral usage train --by account --since 90d --html usage.html",
        "corral usage train --by job --json | jq '.rows[0]'",
    )
)
def usage(
    env: Environment,
    by: By = GroupBy.USER,
    since: From = None,
    until: Until = None,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    history: History = None,
    html: Html = None,
    csv: AsCsv = False,
    json: AsJson = False,
) -> None:
    """Show who used a cluster: GPU hours, waiting time and cost.

    Covers all deployments of this name, also deleted ones. Times are UTC; costs follow the catalog's prices. Rows add
    up to the whole time of the nodes: what no job used has rows of its own.
    """
    if csv and json:
        raise Failure("--csv excludes --json", ExitCode.WRONG_INPUT)
    if html is not None:
        require_writable(html)
    now = time.time()
    start = 0.0 if since is None else moment_of("--since", since, now)
    end = now if until is None else moment_of("--until", until, now)
    if start >= end:
        raise Failure(f"--since {since}: not before --until {until or 'now'}", ExitCode.WRONG_INPUT)
    summary = read_summary(project, env, in_box=box, box_directory=box_dir)
    pricing = read_pricing(summary, None)
    if pricing is None:
        raise Failure(f"no usage is shown, because of {summary.problem}", ExitCode.WRONG_INPUT)
    use_account(in_box=box, box_directory=box_dir)
    session = open_session(summary.region, quick=True)
    histories, problems = read_cluster_histories(summary, session, box_dir, history, start)
    usages = _usages(histories, pricing, start, end)
    if not usages:
        raise Failure(_nothing(summary, start, end), ExitCode.FAILED)
    shown = usage_table(usages, by)
    if html is not None:
        _write(html, env, shown, usages, problems)
    if json:
        return show_json(usage_table_document(env, shown, problems))
    if csv:
        for problem in problems:
            typer.echo(problem, err=True)
        return typer.echo(usage_table_csv(shown), nl=False)
    show(usage_table_view(env, shown, problems))
    if html is not None:
        show_lines((f"  Written: {html}",))  # a long path is not broken


def _write(html: Path, env: str, shown: UsageTable, usages: Sequence[Usage], problems: Sequence[str]) -> None:
    from corral.report.pages.usage_page import usage_page
    from corral.report.usage.daily_usage import daily_usage

    write_page(html, usage_page(env, shown, daily_usage(usages, shown.by), remarks=problems))


def moment_of(option: str, text: str, now: float) -> float:
    """The time of a date, a time or a duration before now, in seconds since 1970. Raises Failure."""
    from corral.spec.models.datetimes import parse_date

    if text[:1].isdigit() and text[-1:].isalpha() and text[-1:] != "Z":
        return max(0.0, now - seconds_of(option, text))
    try:
        return parse_date(text).timestamp()
    except ValueError:
        raise Failure(
            f"{option} {text}: not a time - write 2026-11-01, 2026-11-01T12:00, 12h or 30d", ExitCode.WRONG_INPUT
        ) from None


def _usages(histories: Sequence[ClusterHistory], pricing: Pricing, start: float, end: float) -> Sequence[Usage]:
    """The usage of each history between the two times."""
    found = []
    for one in histories:
        begins = max(one.timeline.start, datetime.fromtimestamp(start, UTC))
        ends = min(one.timeline.end, datetime.fromtimestamp(end, UTC))
        if begins < ends:
            found.append(compute_usage(one.events, one.runs, pricing.rates, start=begins, end=ends))
    return found


def _nothing(summary: EnvironmentSummary, start: float, end: float) -> str:
    between = " and ".join(f"{datetime.fromtimestamp(one, UTC):%Y-%m-%d %H:%M}" for one in (start, end))
    return (
        f"{summary.name} was not up between {between} UTC"
        f" - corral timeline {summary.name}{summary.account_option} --list-history lists its histories"
    )
