"""`corral status`: what is up, until when, what it costs now, from the account; jobs and events, from the head."""

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

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure, tell
from corral.cli.heads import reach
from corral.cli.on_head import Head, Unreachable, events_of, state_of
from corral.cli.options import AsJson, BoxDirectory, Environment, InBox, Project, Since, examples, new_app, seconds_of
from corral.cli.outlines import Outline, read_outline
from corral.cli.screen import clear, show, show_json, show_lines, waiting
from corral.forecast.catalogue import catalogue_prices
from corral.inventory.account import open_session
from corral.inventory.status import Status, read_status
from corral.model.head import HeadState
from corral.report.events import event_lines, read_events
from corral.report.jobs import slurm_view
from corral.report.status import status_document, status_view

app = new_app()
ANSWERS_WITHIN_S = 8.0  # the rest is worth to be seen without it
WATCH_EACH_S = 5.0
Events = Annotated[bool, typer.Option("--events", help="Show what happened instead, a line for each event.")]
Watch = Annotated[bool, typer.Option("--watch", help="Show it anew every five seconds, until Ctrl-C.")]


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
    """Show what is up, how long it will live, what it costs now, and its jobs. Nothing is changed.

    An environment that is not up is no failure: it is said, and the exit code is 0. Nor are mistakes in its files.
    """
    if watch and (json or not sys.stdout.isatty()):
        raise Failure("--watch shows it on a terminal, and this is none, or --json was asked for", ExitCode.WRONG_INPUT)
    if since and not events:
        raise Failure("--since says from when on events are shown: add --events", ExitCode.WRONG_INPUT)
    began = time.time() - seconds_of("--since", since) if since else 0.0
    seen = read_outline(project, env, in_box=box, box_directory=box_dir)
    mean_account(in_box=box, box_directory=box_dir)
    while True:
        if events:
            _show_events(seen, box_dir, began, as_json=json, anew=watch)
        else:
            _show_status(seen, box_dir, as_json=json, anew=watch)
        if seen.mistakes:
            tell(seen.mistakes)
        if not watch:
            return
        time.sleep(WATCH_EACH_S)


def _show_status(seen: Outline, box_dir: Path | None, *, as_json: bool, anew: bool) -> None:
    with waiting(f"reading what is there in {seen.region}"):
        session = open_session(seen.region, quick=True)
        prices = catalogue_prices(seen.region, seen.catalogue)
        found = read_status(session, seen.name, seen.base, prices)
        head = reach(found.head, session, box_dir)
        state, problem = _asked(head, found)
    if as_json:
        return show_json(status_document(found, state, problem))
    if anew:
        clear()
    show((*status_view(found, datetime.now(UTC), seen.account_option), *_of_head(state, problem)))


def _show_events(seen: Outline, box_dir: Path | None, since: float, *, as_json: bool, anew: bool) -> None:
    from corral.inventory.heads import head_of

    name, session = seen.name, open_session(seen.region, quick=True)
    head = reach(head_of(session, name), session, box_dir)
    if head is None:
        command = f"corral timeline {name}{seen.account_option}"
        raise Failure(f"{name} has no head now - what is kept of its life: {command}", ExitCode.FAILED)
    try:
        lines = events_of(head, since)
    except Unreachable as error:
        raise Failure(str(error), ExitCode.FAILED) from None
    if as_json:
        return show_lines(lines)
    if anew:
        clear()
    show(event_lines(read_events(lines)))


def _asked(head: Head | None, found: Status) -> tuple[HeadState | None, str]:
    """What the head says, and why it does not."""
    if head is None:
        return None, "there is no head" if found.cluster_is_up else ""
    try:
        return state_of(head, ANSWERS_WITHIN_S), ""
    except Unreachable as error:
        return None, str(error)


def _of_head(state: HeadState | None, problem: str) -> Iterator[RenderableType]:
    if state is not None:
        yield from slurm_view(state)
    elif problem:
        yield Text(f"  Jobs are not shown: {problem}")
