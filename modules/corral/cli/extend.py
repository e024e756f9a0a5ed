"""`corral extend`: moves the end of a cluster through the engine room; here it gets its options and words."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.engine_room import Bench, set_up
from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app
from corral.cli.up import Wait, state_told

if TYPE_CHECKING:
    from corral.engine.stack import Stack

_WITHIN_S = 120.0  # as long as an up waits for a head that applies
app = new_app()
Time = Annotated[
    str, typer.Argument(metavar="TIME", help="4h or 1h30m from now, or a UTC time: 2026-11-22, 2026-11-22T18:00.")
]


@app.command(
    epilog=examples("corral extend dev 4h", "corral extend dev 2026-11-22T18:00", "corral extend dev 2d --box")
)
def extend(
    environment: Environment,
    time: Time,
    project: Project = None,
    in_box: InBox = False,
    box_directory: BoxDirectory = None,
    yes: Yes = False,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Move the end of a cluster. Nothing else of it changes, and nothing that runs is disturbed.

    An end that is earlier than before is asked for, unless --yes is given.
    """
    bench = Bench(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    _run(bench, environment, time, yes=yes)


def _run(bench: Bench, environment: str, time: str, *, yes: bool) -> None:
    from corral.engine import extend as engine
    from corral.engine.complaint import damage_named
    from corral.engine.errors import WRONG_INPUT, EngineError
    from corral.engine.projects import base_of

    now = datetime.now(UTC).replace(microsecond=0)
    end = _moment(time, now)
    with state_told(bench, environment):
        base_of(bench.source / "stacks", environment)  # the spec's mistakes do not matter for this
    if box := bench.empty_box:
        hint = f"nothing was ever made in the box in {box}"
        raise EngineError(f"cluster {environment}: is not up", (hint,), WRONG_INPUT)
    place = set_up(bench)
    ask = None if yes else lambda question: bench.asker()(question)
    with damage_named(place.engine.environment["PULUMI_BACKEND_URL"]):
        done = engine.extend(place, environment, end, now=now, ask=ask, tell=_told)
    bench.show(done.to_document())


def _moment(text: str, now: datetime) -> datetime:
    from corral.spec.moments import parse_moment

    try:
        return parse_moment(text, now)
    except (ValueError, OverflowError):
        good = "4h, 1h30m, 2026-11-22 or 2026-11-22T18:00 (UTC) is"
        raise Failure(f"{text}: that is no time - {good}", ExitCode.WRONG_INPUT) from None


def _told(cluster: Stack) -> str | None:
    """What the cluster's head says of its new end; None where there is no head."""
    from corral.cli.applying import told_of
    from corral.cli.on_head import AGENT, Unreachable, head_at
    from corral.engine.workplace import account_of
    from corral.inventory.heads import head_of

    account, environment = account_of(cluster), cluster.engine.environment
    if (found := head_of(account, cluster.name)) is None:
        return None
    box = environment.get("CORRAL_BOX_DIR")
    head = head_at(found.id, account, environment.get("AWS_ENDPOINT_URL"), Path(box) if box else None)
    try:
        answer = head.run((AGENT, "apply", "--json"), _WITHIN_S)
    except Unreachable as error:
        return f"its head was not told: {error}; it asks before it ends"
    known = "its head knows it, its nodes ask for it before they would end"
    return known if answer.code == 0 else f"{told_of(answer)}; it asks for its end before it ends"
