"""`corral timeline`: what a cluster's head, nodes and jobs did over time, as a picture."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corral.cli.failure import ExitCode, Failure, at
from corral.cli.heads import find_head, reach
from corral.cli.on_head import Unreachable, events_of, history_of
from corral.cli.options import BoxDirectory, Environment, InBox, Project, Since, examples, new_app, seconds_of
from corral.cli.screen import show, waiting
from corral.inventory.account import open_session
from corral.report.events import read_events
from corral.report.tables import heading
from corral.report.timeline import timeline as lived
from corral.report.timeline_text import TimelineText, heading_of

app = new_app()
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page to this file as well.")
]


@app.command(
    epilog=examples(
        "corral timeline dev", "corral timeline dev --box --html life.html", "corral timeline dev --since 2h"
    )
)
def timeline(
    env: Environment,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    since: Since = None,
    html: Html = None,
) -> None:
    """Show what the head, the nodes and the jobs of a cluster did over time. Times are UTC."""
    now = time.time()
    began = 0.0 if since is None else now - seconds_of("--since", since)
    if html is not None:
        _require_writable(html)
    spec, found = find_head(env, project, in_box=box, box_directory=box_dir)
    head = reach(found, open_session(spec.base.region), box_dir)
    assert head is not None  # `find_head` has found one
    with waiting(f"asking the head of {env}"):
        try:
            events, history = read_events(events_of(head, 0)), history_of(head, began)
        except Unreachable as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    start, end = datetime.fromtimestamp(began, UTC), datetime.fromtimestamp(int(now) + 1, UTC)
    made = lived(env, events, history.runs, head_since=found.since, start=start, end=end, problem=history.problem)
    show((heading(made.cluster, heading_of(made)), Text(), TimelineText(made)))
    if made.problem:
        show((Text(f"  {made.problem}"),))
    if html is not None:
        from corral.report.timeline_page import page

        with at(html):
            html.write_text(page(made), encoding="utf-8")
        show((Text(f"  Written: {html}"),))


def _require_writable(file: Path) -> None:
    """Raises OSError where the page could not be written in the end. No empty file stays."""
    with at(file):
        was_there = os.path.lexists(file)
        file.open("a").close()
        if not was_there:
            file.unlink()
