"""`corral timeline`: what a cluster's head, nodes and jobs did over time, as a picture; also of one that is gone."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from corral.cli.account import mean_account
from corral.cli.failure import ExitCode, Failure, at
from corral.cli.heads import reach
from corral.cli.on_head import Head, Unreachable, events_of, history_of
from corral.cli.options import BoxDirectory, Environment, InBox, Project, Since, examples, new_app, seconds_of
from corral.cli.outlines import Outline, read_outline
from corral.cli.screen import show, waiting
from corral.inventory.account import open_session
from corral.report.events import read_events
from corral.report.lives import kept_line, lives_view, meant
from corral.report.tables import heading, lines
from corral.report.timeline import Timeline
from corral.report.timeline import timeline as lived
from corral.report.timeline_text import TimelineText, heading_of

app = new_app()
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write it as one HTML page to this file as well.")
]
Life = Annotated[
    str | None,
    typer.Option(
        "--life", metavar="WHEN", help="Show the kept life that began then: 2026-11-22, or as --lives has it."
    ),
]
Lives = Annotated[bool, typer.Option("--lives", help="List the lives that are kept instead.")]


@app.command(
    epilog=examples(
        "corral timeline dev",
        "corral timeline dev --box --html life.html",
        "corral timeline dev --since 2h",
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
) -> None:
    """Show what the head, the nodes and the jobs of a cluster did over time. Times are UTC.

    Where no head runs, the newest life that is kept is shown.
    """
    if lives and (life is not None or since or html):
        raise Failure("--lives lists lives and draws none: leave the other options out", ExitCode.WRONG_INPUT)
    long_s = None if since is None else seconds_of("--since", since)
    if html is not None:
        _require_writable(html)
    seen = read_outline(project, env, in_box=box, box_directory=box_dir)
    mean_account(in_box=box, box_directory=box_dir)
    session = open_session(seen.region)
    if lives:
        return _show_lives(seen, session)
    drawn = _found(seen, session, box_dir, life, long_s)
    _show(drawn, seen.account_option)
    if html is not None:
        _write(html, drawn.picture)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """A timeline; `note`: of what, where that is not the cluster as it is."""

    picture: Timeline
    note: str = ""


def _found(seen: Outline, session: Any, box_dir: Path | None, life: str | None, long_s: float | None) -> _Drawn:
    from corral.inventory.heads import head_of

    name = seen.name
    there = head_of(session, name) if life is None else None
    head = reach(there, session, box_dir)
    if there is None or head is None:
        return _of_kept(seen, session, life, long_s)
    return _Drawn(picture=_of_head(name, head, there.since, long_s))


def _of_head(name: str, head: Head, since: datetime | None, long_s: float | None) -> Timeline:
    """What the head says. Raises Failure."""
    now = time.time()
    began = 0.0 if long_s is None else now - long_s
    with waiting(f"asking the head of {name}"):
        try:
            events, history = read_events(events_of(head, 0)), history_of(head, began)
        except Unreachable as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    start, end = datetime.fromtimestamp(began, UTC), datetime.fromtimestamp(int(now) + 1, UTC)
    return lived(name, events, history.runs, head_since=since, start=start, end=end, problem=history.problem)


def _of_kept(seen: Outline, session: Any, word: str | None, long_s: float | None) -> _Drawn:
    """What the bucket keeps: the newest life, or the one that is meant. `long_s`: the last of it. Raises Failure."""
    from corral.inventory.lives import UnreadableLife, lives_of, read_life

    name = seen.name
    with waiting(f"looking for what is kept of {name}"):
        there = lives_of(session, seen.base, name)
        if not there:
            raise Failure(_nothing_kept(seen, word), ExitCode.FAILED)
        found = there[:1] if word is None else meant(there, word)
        if len(found) != 1:
            raise Failure(_not_one(seen, str(word), [one.word for one in found]), ExitCode.WRONG_INPUT)
        try:
            kept = read_life(session, found[0])
        except UnreadableLife as error:
            raise Failure(str(error), ExitCode.FAILED) from None
    end = kept.kept + 1
    picture = lived(
        name,
        read_events(kept.events),
        kept.runs,
        head_since=None if kept.head_since is None else datetime.fromtimestamp(kept.head_since, UTC),
        start=datetime.fromtimestamp(0.0 if long_s is None else max(0.0, end - long_s), UTC),
        end=datetime.fromtimestamp(end, UTC),
        problem=kept.problem,
    )
    return _Drawn(picture=picture, note=kept_line(name, found[0], is_asked_for=word is not None))


def _nothing_kept(seen: Outline, word: str | None) -> str:
    if word is not None:
        return f"--life {word}: no life of {seen.name} is kept"
    command = f"corral up {seen.name}{seen.account_option}"
    return f"{seen.name} has no head now, and no life of it is kept - bring it up: {command}"


def _not_one(seen: Outline, word: str, found: list[str]) -> str:
    if found:
        return f"--life {word}: {len(found)} lives of {seen.name} begin so: {', '.join(found)}"
    command = f"corral timeline {seen.name}{seen.account_option} --lives"
    return f"--life {word}: no life of {seen.name} that is kept began then - {command} lists them"


def _show_lives(seen: Outline, session: Any) -> None:
    from corral.inventory.lives import lives_of

    with waiting(f"looking for what is kept of {seen.name}"):
        found = lives_of(session, seen.base, seen.name)
    show(lives_view(seen.name, found, seen.account_option))


def _show(drawn: _Drawn, account_option: str) -> None:
    """A kept life has no head that could be asked for its events: its page has them."""
    made, note = drawn.picture, drawn.note
    command, option = ("timeline", "--html FILE") if note else ("status", "--events")
    text = TimelineText(made, f"corral {command} {made.cluster}{account_option} {option}")
    show((heading(made.cluster, heading_of(made)), *([lines([note])] if note else []), Text(), text))
    if made.problem:
        show((Text(f"  {made.problem}"),))


def _write(html: Path, made: Timeline) -> None:
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
