"""`corral extend`: changes when a cluster ends. `corral.engine.lifecycle.extend` does the work."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.commands.up import Wait, hint_at_existing_state
from corral.cli.support.deployment import CommonOptions, start_session
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import AsJson, BoxDirectory, Environment, InBox, Project, Yes, examples, new_app

if TYPE_CHECKING:
    from corral.engine.pulumi.stack import Stack

_TIMEOUT_S = 120.0  # as `corral up` waits for a head to apply its configuration
app = new_app()
Time = Annotated[
    str,
    typer.Argument(metavar="TIME", help="New end: 4h or 1h30m from now, or a UTC time: 2026-11-22, 2026-11-22T18:00."),
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
    """Change when a cluster ends.

    Changes nothing else and disturbs no running job. Prompts for confirmation if the new end is earlier.
    """
    options = CommonOptions(project=project, in_box=in_box, box_directory=box_directory, json=json, wait=wait)
    _run(options, environment, time, yes=yes)


def _run(options: CommonOptions, environment: str, time: str, *, yes: bool) -> None:
    from corral.engine.engine_errors import WRONG_INPUT, EngineError
    from corral.engine.lifecycle import extend as engine
    from corral.engine.pulumi.error_report import report_damaged_state
    from corral.engine.pulumi.projects import base_of

    now = datetime.now(UTC).replace(microsecond=0)
    end = _parse_time(time, now)
    with hint_at_existing_state(options, environment):
        base_of(options.source / "stacks", environment)  # errors of the spec do not matter here
    if box := options.unused_box:
        hint = f"the box in {box} has never been used"
        raise EngineError(f"cluster {environment} is not up", (hint,), WRONG_INPUT)
    session = start_session(options)
    confirm = None if yes else lambda question: options.confirmation()(question)
    with report_damaged_state(session.engine.environment["PULUMI_BACKEND_URL"]):
        done = engine.extend(session, environment, end, now=now, confirm=confirm, notify_head=_notify_head)
    options.show_result(done.to_document())


def _parse_time(text: str, now: datetime) -> datetime:
    from corral.spec.models.datetimes import parse_datetime

    try:
        return parse_datetime(text, now)
    except (ValueError, OverflowError):
        forms = "4h, 1h30m, 2026-11-22 or 2026-11-22T18:00 (UTC)"
        raise Failure(f"{text}: not a time - write {forms}", ExitCode.WRONG_INPUT) from None


def _notify_head(cluster: Stack) -> str | None:
    """Has the head apply the new end. Returns a sentence about the outcome; None without a head."""
    from corral.cli.support.apply_on_head import apply_summary
    from corral.cli.support.remote import HeadUnreachable, head_at
    from corral.engine.lifecycle.session import stack_account
    from corral.inventory.head_instance import head_of

    account, environment = stack_account(cluster), cluster.engine.environment
    if (found := head_of(account, cluster.name)) is None:
        return None
    box = environment.get("CORRAL_BOX_DIR")
    head = head_at(found.id, account, environment.get("AWS_ENDPOINT_URL"), Path(box) if box else None)
    try:
        answer = head.run(("apply", "--json"), _TIMEOUT_S)
    except HeadUnreachable as error:
        return f"the head was not notified: {error}; it reads the new end before it terminates"
    known = "the head has the new end; nodes read it before they would terminate"
    return known if answer.code == 0 else f"{apply_summary(answer)}; it reads the new end before it terminates"
