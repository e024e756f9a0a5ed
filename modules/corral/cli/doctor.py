"""`corral doctor`: what this machine has and lacks, and so what is possible on it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from corral.cli.account import box_state
from corral.cli.failure import ExitCode
from corral.cli.options import AsJson, BoxDirectory, examples, new_app
from corral.cli.probes import look, platform_facts
from corral.cli.screen import show, show_json
from corral.report.doctor import Purpose, doctor_document, doctor_view, platform_notes, possible

app = new_app()
Online = Annotated[bool, typer.Option("--online", help="Also ask AWS whether the credentials are valid.")]


@app.command(epilog=examples("corral doctor", "corral doctor --json | jq .possible"))
def doctor(online: Online = False, box_dir: BoxDirectory = None, json: AsJson = False) -> int:
    """Show what is installed and what is missing, each with a line that gets it. Nothing leaves this machine.

    The exit code is 0 if planning and rendering work; the rest is optional.
    """
    findings = look(os.environ, box_state(box_dir), _ask_aws if online else None)
    notes = platform_notes(platform_facts())
    if json:
        show_json(doctor_document(findings, notes))
    else:
        show(doctor_view(findings, notes))
    return ExitCode.DONE if possible(findings, Purpose.PLAN) else ExitCode.FAILED


def _ask_aws() -> str:
    from corral.inventory.account import open_session, read_identity  # half a second of imports, only for --online

    session = open_session(os.environ.get("AWS_REGION", "us-east-1"), quick=True)
    return f"{read_identity(session)}, accepted by AWS"
