"""`corral status`: shows what is up, its cost and end (from the account), and jobs and events (from the head)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from corral.cli.support.env_summary import EnvironmentSummary, read_summary
from corral.cli.support.exit_codes import ExitCode, Failure, print_error
from corral.cli.support.head_lookup import open_head
from corral.cli.support.options import (
    AsJson,
    BoxDirectory,
    Environment,
    InBox,
    Project,
    Since,
    examples,
    new_app,
    seconds_of,
)
from corral.cli.support.output import clear_screen, show, show_json, show_lines, waiting
from corral.cli.support.remote import HeadConnection, HeadUnreachable, fetch_events, fetch_state
from corral.cli.support.target_account import use_account
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.inventory.scan import open_session
from corral.inventory.status import Status, read_status
from corral.model.head_report import HeadStatus
from corral.report.account.job_view import slurm_view
from corral.report.account.status_view import status_document, status_view
from corral.report.timeline.event_lines import event_lines, read_events

app = new_app()
HEAD_TIMEOUT_S = 8.0  # then the rest is shown without it
REFRESH_S = 5.0
Events = Annotated[bool, typer.Option("--events", help="Show the events of the cluster instead.")]
Watch = Annotated[bool, typer.Option("--watch", help="Refresh every 5 s until Ctrl-C.")]


@app.command(
    epilog=examples("corral status dev", "corral status dev --box --json", "corral status dev --events --since 2h")
)
def status(
    env: Environment,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    events: Events = False,
    since: Since = None,
    watch: Watch = False,
    json: AsJson = False,
) -> None:
    """Show what is up, its cost, its time remaining and its jobs.

    Changes nothing. The exit code is 0 even if the environment is not up or its files have errors.
    """
    if watch and (json or not sys.stdout.isatty()):
        raise Failure("--watch needs a terminal and excludes --json", ExitCode.WRONG_INPUT)
    if since and not events:
        raise Failure("--since needs --events", ExitCode.WRONG_INPUT)
    began = time.time() - seconds_of("--since", since) if since else 0.0
    summary = read_summary(project, env, in_box=box, box_directory=box_dir)
    use_account(in_box=box, box_directory=box_dir)
    while True:
        if events:
            _show_events(summary, box_dir, began, as_json=json, clear=watch)
        else:
            _show_status(summary, box_dir, as_json=json, clear=watch)
        if summary.problem:
            print_error(summary.problem)
        if not watch:
            return
        time.sleep(REFRESH_S)


def _show_status(summary: EnvironmentSummary, box_dir: Path | None, *, as_json: bool, clear: bool) -> None:
    with waiting(f"reading the account in {summary.region}"):
        session = open_session(summary.region, quick=True)
        prices = catalog_prices(summary.region, summary.catalog)
        found = read_status(session, summary.name, summary.base, prices)
        head = open_head(found.head, session, box_dir)
        head_status, problem = _query_head(head, found)
    for warning in found.warnings:
        print_error(warning)
    if as_json:
        return show_json(status_document(found, head_status, problem))
    if clear:
        clear_screen()
    show((*status_view(found, datetime.now(UTC), summary.account_option), *_of_head(head_status, problem)))


def _show_events(
    summary: EnvironmentSummary, box_dir: Path | None, since: float, *, as_json: bool, clear: bool
) -> None:
    from corral.inventory.head_instance import head_of

    name, session = summary.name, open_session(summary.region, quick=True)
    head = open_head(head_of(session, name), session, box_dir)
    if head is None:
        command = f"corral timeline {name}{summary.account_option}"
        raise Failure(f"{name} has no head now - its recorded history: {command}", ExitCode.FAILED)
    try:
        lines = fetch_events(head, since)
    except HeadUnreachable as error:
        raise Failure(str(error), ExitCode.FAILED) from None
    if as_json:
        return show_lines(lines)
    if clear:
        clear_screen()
    show(event_lines(read_events(lines)))


def _query_head(head: HeadConnection | None, found: Status) -> tuple[HeadStatus | None, str]:
    """The status that the head reports, or the reason why there is none."""
    if head is None:
        return None, "no head" if found.cluster_is_up else ""
    try:
        return fetch_state(head, HEAD_TIMEOUT_S), ""
    except HeadUnreachable as error:
        return None, str(error)


def _of_head(head_status: HeadStatus | None, problem: str) -> Iterator[RenderableType]:
    if head_status is not None:
        yield from slurm_view(head_status)
    elif problem:
        yield Text(f"  Jobs: unknown ({problem})")
