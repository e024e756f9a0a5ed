"""`corral doctor`: shows what is installed, what is missing, and what this machine can do."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from corral.cli.support.doctor_checks import read_platform, run_checks
from corral.cli.support.exit_codes import ExitCode
from corral.cli.support.options import AsJson, BoxDirectory, examples, new_app
from corral.cli.support.output import show, show_json
from corral.cli.support.target_account import resolve_box_dir
from corral.report.doctor_view import Purpose, doctor_document, doctor_view, platform_hints, possible

app = new_app()
Online = Annotated[bool, typer.Option("--online", help="Also verify the credentials with AWS.")]


@app.command(epilog=examples("corral doctor", "corral doctor --json | jq .possible"))
def doctor(online: Online = False, box_dir: BoxDirectory = None, json: AsJson = False) -> int:
    """Check what is installed on this machine and how to install what is missing.

    Contacts no server without --online. The exit code is 0 if `plan` and `render` work; the rest is optional.
    """
    findings = run_checks(os.environ, resolve_box_dir(box_dir), _read_identity if online else None)
    hints = platform_hints(read_platform())
    if json:
        show_json(doctor_document(findings, hints))
    else:
        show(doctor_view(findings, hints))
    return ExitCode.DONE if possible(findings, Purpose.PLAN) else ExitCode.FAILED


def _read_identity() -> str:
    from corral.inventory.scan import caller_arn, open_session  # half a second of imports, only for --online

    session = open_session(os.environ.get("AWS_REGION", "us-east-1"), quick=True)
    return f"{caller_arn(session)}, accepted by AWS"
