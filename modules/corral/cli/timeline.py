"""`corral timeline`: what a cluster's head, nodes and jobs did over time, what it took; also of one that is gone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure, at
from corral.cli.lived import Lived, lived
from corral.cli.options import (
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
from corral.cli.outlines import Outline, read_outline
from corral.cli.screen import show, show_json, waiting
from corral.cli.spending import Spending, measures, spending
from corral.inventory.account import open_session
from corral.report.lives import lives_view
from corral.report.spent.document import timeline_document
from corral.report.spent.text import spent_view
from corral.report.tables import heading, lines
from corral.report.timeline_text import TimelineText, heading_of

app = new_app()
Life = Annotated[
    str | None,
    typer.Option(
        "--life", metavar="WHEN", help="Show the kept life that began then: 2026-11-22, or as --lives has it."
    ),
]
Run = Annotated[
    Path | None, typer.Option("--run", metavar="FILE", help="Beside it the forecast of this run (docs/spec.md).")
]
Lives = Annotated[bool, typer.Option("--lives", help="List the lives that are kept instead.")]


@app.command(
    epilog=examples(
        "corral timeline dev",
        "corral timeline dev --box --html life.html",
        "corral timeline dev --since 2h",
        "corral timeline dev --json | jq .spent.usd",
        "corral timeline train --run examples/runs/llama3-8b.yaml",
        "corral timeline dev --lives",
    )
)
def timeline(
    env: Environment,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    since: Since = None,
    html: Html = None,
    life: Life = None,
    lives: Lives = False,
    run: Run = None,
    json: AsJson = False,
) -> None:
    """Show what the head, the nodes and the jobs of a cluster did over time, and what it took. Times are UTC.

    Machines' time, interruptions, jobs and money, by the catalogue's prices. Where no head runs, the newest life that
    is kept is shown. With --run: the forecast of that run beside the largest job of its queue.
    """
    if lives and (life is not None or since or html or run or json):
        raise Failure("--lives lists lives and draws none: leave the other options out", ExitCode.WRONG_INPUT)
    long_s = None if since is None else seconds_of("--since", since)
    if html is not None:
        _require_writable(html)
    seen = read_outline(project, env, in_box=box, box_directory=box_dir)
    by = None if lives else measures(seen, run)
    mean_account(in_box=box, box_directory=box_dir)
    session = open_session(seen.region, quick=True)
    if lives:
        return _show_lives(seen, session)
    drawn = lived(seen, session, box_dir, life, long_s)
    spent = spending(by, drawn)
    if html is not None:
        _write(html, drawn, spent)
    if json:
        return show_json(
            timeline_document(drawn.picture, spent.took, spent.against, note=drawn.note, problem=spent.problem)
        )
    _show(drawn, spent, seen.account_option)
    if html is not None:
        show((Text(f"  Written: {html}"),))


def _show_lives(seen: Outline, session: Any) -> None:
    from corral.inventory.lives import lives_of

    with waiting(f"looking for what is kept of {seen.name}"):
        found = lives_of(session, seen.base, seen.name)
    show(lives_view(seen.name, found, seen.account_option))


def _show(drawn: Lived, spent: Spending, account_option: str) -> None:
    """A kept life has no head that could be asked for its events: its page has them."""
    made, note = drawn.picture, drawn.note
    command, option = ("timeline", "--html FILE") if note else ("status", "--events")
    text = TimelineText(made, f"corral {command} {made.cluster}{account_option} {option}")
    show((heading(made.cluster, heading_of(made)), *([lines([note])] if note else []), Text(), text))
    if made.problem:
        show((Text(f"  {made.problem}"),))
    if spent.took is not None:
        show(spent_view(spent.took, spent.against))
    if spent.problem:
        show((Text(f"  {spent.problem}"),))


def _write(html: Path, drawn: Lived, spent: Spending) -> None:
    from corral.report.timeline_page import page

    notes = [note for note in (drawn.note, spent.problem) if note]
    with at(html):
        html.write_text(page(drawn.picture, spent.took, spent.against, notes=notes), encoding="utf-8")


def _require_writable(file: Path) -> None:
    """Raises OSError where the page could not be written in the end. No empty file stays."""
    with at(file):
        was_there = os.path.lexists(file)
        file.open("a").close()
        if not was_there:
            file.unlink()
