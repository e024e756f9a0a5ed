"""The diagnosis of a job, for `corral diagnose` and `corral dashboard`: its evidence, its machines and its forecast."""

from __future__ import annotations

from pathlib import Path

from corral.cli.support.env_summary import EnvironmentSummary
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.remote import HeadConnection, fetch_job_evidence
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.render.gpu_devices import efa_devices
from corral.report.diagnosis.evidence import ExpectedRun, JobEvidence, Machine, expected_run, joined


def read_job(head: HeadConnection, summary: EnvironmentSummary, job: str, expected: ExpectedRun | None) -> JobEvidence:
    """The evidence about a job. Raises HeadUnreachable."""
    pages = fetch_job_evidence(head, job)
    return joined(pages, _machine(summary, pages[0].job.queue), expected)


def read_expected(summary: EnvironmentSummary, file: Path | None) -> ExpectedRun | None:
    """The forecast of a run file; None without one. Raises SpecErrors for a wrong one, Failure without a plan."""
    from corral.forecast.training.run_forecast import forecast_run
    from corral.spec.yaml.run_files import read_run

    if file is None:
        return None
    if summary.spec is None:
        raise Failure(f"--run: {summary.problem}", ExitCode.WRONG_INPUT)
    return expected_run(forecast_run(read_run(file, summary.spec)))


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
