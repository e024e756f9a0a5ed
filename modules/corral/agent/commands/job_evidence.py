"""The commands of `corral-agent` that answer `corral diagnose`: on the head, and in a process of the job's user.

Each prints one JSON document, a record of `model.job_evidence`.
"""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from corral.agent.errors import AgentError
from corral.agent.job_evidence.step_files import read_page, read_recent
from corral.model.serialization import to_line

if TYPE_CHECKING:  # loaded where they are needed: a node runs `read-job` every half a minute
    from corral.agent.job_evidence.slurm_record import SlurmJob
    from corral.model.job_evidence import JobCurves, JobRecord
    from corral.model.run_forecast import FoundForecast


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command."""
    parser.set_defaults(act=_read_job if command == "read-job" else _job_evidence)
    parser.add_argument("--start", type=int, default=0, help="number of processes to skip (default: 0)")
    if command == "read-job":
        parser.add_argument("--ranks", help="only what these processes did last, e.g. 0,1 (default: all of a page)")
        parser.add_argument("directory", type=Path, help="directory of the job's steps")
    else:
        parser.add_argument("job", help="job id, such as 17, or 17_3 for a task of an array")


def _read_job(chosen: argparse.Namespace) -> None:
    if chosen.ranks is None:
        page = read_page(chosen.directory, chosen.start)
    else:
        page = read_recent(chosen.directory, [int(rank) for rank in chosen.ranks.split(",")])
    print(to_line(page), end="")  # noqa: T201


def _job_evidence(chosen: argparse.Namespace) -> None:
    from corral.agent.job_evidence.slurm_record import job_nodes, node_reasons, slurm_job
    from corral.agent.job_evidence.user_reader import read_as_user
    from corral.agent.metrics.node_reader import read_job_nodes
    from corral.model.job_evidence import NO_CURVES, JobEvidencePage, JobNodes
    from corral.model.run_forecast import NO_FORECAST, RUN_VARIABLE

    job = slurm_job(chosen.job)
    nodes = job_nodes(job.record.nodes)
    steps = read_as_user(job.uid, job.directory, chosen.start)
    page = JobEvidencePage(
        job=job.record,
        steps=steps,
        node_reasons=node_reasons(nodes),
        nodes=JobNodes() if chosen.start else read_job_nodes(job.record, nodes),
        forecast=NO_FORECAST if chosen.start else _forecast(steps.variables.get(RUN_VARIABLE, ""), job.record),
        curves=NO_CURVES if chosen.start else _curves(job),
    )
    print(to_line(page), end="")  # noqa: T201


def _curves(job: "SlurmJob") -> "JobCurves":
    from corral.agent.metrics.job_curves import own_gpus, read_curves
    from corral.agent.runtime_context import plan_in
    from corral.model.job_evidence import NO_CURVES, JobCurves

    try:
        is_kept = plan_in().monitoring.prometheus
    except (AgentError, OSError) as error:
        return JobCurves(is_kept=True, problem=str(error))
    return read_curves(job, own_gpus(job), int(time.time())) if is_kept else NO_CURVES


def _forecast(run: str, job: "JobRecord") -> "FoundForecast":
    from corral.agent.runtime_context import plan_in
    from corral.model.run_forecast import FoundForecast, forecast_of_job

    try:
        return forecast_of_job(plan_in().runs if run else (), run, job.queue, job.node_count)
    except (AgentError, OSError) as error:
        return FoundForecast(problem=str(error))
