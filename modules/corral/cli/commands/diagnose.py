"""`corral diagnose`: why a job is slow, or has failed, and what to do first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.support.env_summary import EnvironmentSummary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import HEAD, connection_to, find_gates
from corral.cli.support.job_diagnosis import read_expected, read_job
from corral.cli.support.options import AsJson, BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.support.output import show, show_json, waiting
from corral.cli.support.remote import HeadConnection, HeadUnreachable
from corral.inventory.scan import open_session
from corral.model.job_evidence import JOB_ID
from corral.report.diagnosis.diagnose import diagnose as diagnosis_of
from corral.report.diagnosis.diagnosis_view import diagnosis_document, diagnosis_view
from corral.report.diagnosis.evidence import ExpectedRun, JobEvidence

app = new_app()
Job = Annotated[str, typer.Argument(metavar="JOB", help="Job id, such as 17, or 17_3 for a task of an array.")]
Run = Annotated[Path | None, typer.Option("--run", metavar="FILE", help="Compare with the forecast of this run.")]


@app.command(
    epilog=examples(
        "corral diagnose train 17",
        "corral diagnose train 17 --run examples/runs/llama3-8b.yaml",
        "corral diagnose dev 17 --box --json | jq '.findings[0]'",
    )
)
def diagnose(
    env: Environment,
    job: Job,
    run: Run = None,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
    json: AsJson = False,
) -> None:
    """Show why a job is slow or has failed, with evidence and what to do first.

    Reads Slurm's record, the steps that the program has recorded (docs/diagnose.md) and its output; changes nothing.
    The exit code is 0 whatever it finds.
    """
    if not JOB_ID.fullmatch(job):
        raise Failure(f"{job}: not a job id - expected one such as 17, or 17_3", ExitCode.WRONG_INPUT)
    summary, machines = find_gates(env, project, HEAD, in_box=box, box_directory=box_dir)
    expected = read_expected(summary, run)
    head = connection_to(machines[HEAD], open_session(summary.region, quick=True), box_dir)
    seen = _read(head, summary, job, expected)
    found = diagnosis_of(seen)
    if json:
        show_json(diagnosis_document(seen, found))
    else:
        show(diagnosis_view(seen, found, time.time()))


def _read(head: HeadConnection, summary: EnvironmentSummary, job: str, expected: ExpectedRun | None) -> JobEvidence:
    try:
        with waiting(f"reading job {job}"):
            return read_job(head, summary, job, expected)
    except HeadUnreachable as error:
        raise Failure(str(error), ExitCode.FAILED) from None
