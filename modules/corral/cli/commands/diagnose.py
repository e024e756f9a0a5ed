"""`corral diagnose`: why a job is slow, or has failed, and what to do first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.support.env_summary import EnvironmentSummary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import HEAD, connection_to, find_gates
from corral.cli.support.options import AsJson, BoxDirectory, Environment, InBox, Project, examples, new_app
from corral.cli.support.output import show, show_json, waiting
from corral.cli.support.remote import HeadConnection, HeadUnreachable, fetch_job_evidence
from corral.inventory.scan import open_session
from corral.model.job_evidence import JOB_ID, JobEvidencePage
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.gpu_devices import efa_devices
from corral.report.diagnosis.diagnose import diagnose as diagnosis_of
from corral.report.diagnosis.diagnosis_view import diagnosis_document, diagnosis_view
from corral.report.diagnosis.evidence import ExpectedRun, Machine, expected_run, joined

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
    expected = _expected(summary, run) if run is not None else None
    head = connection_to(machines[HEAD], open_session(summary.region, quick=True), box_dir)
    pages = _fetch(head, job)
    seen = joined(pages, _machine(summary, pages[0].job.queue), expected)
    found = diagnosis_of(seen)
    if json:
        show_json(diagnosis_document(seen, found))
    else:
        show(diagnosis_view(seen, found, time.time()))


def _fetch(head: HeadConnection, job: str) -> tuple[JobEvidencePage, ...]:
    try:
        with waiting(f"reading job {job}"):
            return fetch_job_evidence(head, job)
    except HeadUnreachable as error:
        raise Failure(str(error), ExitCode.FAILED) from None


def _machine(summary: EnvironmentSummary, queue: str) -> Machine | None:
    """The machines of the queue, as the environment declares them now."""
    if summary.spec is None:
        return None
    plan = plan_cluster(summary.spec.cluster, plan_base(summary.spec.base), catalog=summary.catalog)
    found = next((one for one in plan.queues if one.name == queue), None)
    if found is None:
        return None
    return Machine(
        instance_type=summary.catalog.instance_type(found.instance_type),
        efa_devices=efa_devices(found) if found.efa else 0,
    )


def _expected(summary: EnvironmentSummary, file: Path) -> ExpectedRun:
    """The forecast of a run file. Raises SpecErrors for a wrong one."""
    from corral.forecast.training.run_forecast import forecast_run
    from corral.spec.yaml.run_files import read_run

    if summary.spec is None:
        raise Failure(f"--run: {summary.problem}", ExitCode.WRONG_INPUT)
    return expected_run(forecast_run(read_run(file, summary.spec)))
