"""The curves of a job's newest run, from this head's Prometheus, which computes one for the whole job, not one a node.

What a user can choose is in no expression: a job is its number, a node its name in Slurm's configuration.
"""

import asyncio
import base64
import json
import math
import pwd
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from corral.agent.errors import AgentError
from corral.agent.job_evidence.slurm_record import SlurmJob, gpu_indices
from corral.agent.job_evidence.step_summary import LARGEST
from corral.agent.local_http import HOST
from corral.agent.metrics.node_reader import fetch
from corral.agent.prometheus import PASSWORD
from corral.agent.slurm import SlurmError
from corral.agent.socket_owner import tcp_tables
from corral.model.job_evidence import JobCurves
from corral.model.monitoring import PROMETHEUS_PORT, PROMETHEUS_USER, SCRAPE_S, WEB_USER
from corral.model.node_names import expand

_TIMEOUT_S = 4  # of all queries together
_MOST_NODES = 64  # p5.48xlarge have 2,048 EFA interfaces: 2 million samples for all points
_POINTS = 100
_SHORTEST_S, _LONGEST_S = 120, 300  # of a mean: 4 scrapes, as one may fail, and 10


def read_curves(
    job: SlurmJob, gpus: Collection[int], now: int, password: Path = Path(PASSWORD), port: int = PROMETHEUS_PORT
) -> JobCurves:
    """The curves; `gpus`: which ones of its nodes the job has, empty if that is not known. Raises nothing."""
    try:
        planned, queries = planned_queries(job, gpus, now)
        if not queries:
            return planned
        _check_listener(port)
        key = base64.b64encode(f"{WEB_USER}:{password.read_text().strip()}".encode()).decode()
        return asyncio.run(_read(planned, queries, port, f"Basic {key}"))
    except (AgentError, OSError, ValueError) as error:
        return JobCurves(is_kept=True, problem=f"Prometheus: {error}")


def own_gpus(job: SlurmJob) -> set[int]:
    """The GPUs that a running job has on its nodes, by number; empty if Slurm does not know them."""
    found: set[int] = set()
    with suppress(SlurmError, ValueError):
        found.update(*gpu_indices(job.record.job_id, {*expand(job.record.nodes)}).values())
    return found


def planned_queries(job: SlurmJob, gpus: Collection[int], now: int) -> tuple[JobCurves, Mapping[str, str]]:
    """The times of the curves until the end of the run, and the expression of each by its field; none if it is young.

    Raises ValueError for nodes that are none of Slurm's.
    """
    record = job.record
    last = record.ended or now
    ran = last - (record.started or last)
    every = SCRAPE_S * max(1, math.ceil(ran / _POINTS / SCRAPE_S))
    over = min(_LONGEST_S, max(_SHORTEST_S, every))
    names = expand(record.nodes) if record.nodes else ()
    names = names[:: math.ceil(len(names) / _MOST_NODES) or 1]
    if ran < over or not names:
        return JobCurves(is_kept=True), {}
    first = last - (ran - over) // every * every
    planned = JobCurves(is_kept=True, first=first, last=last, every_s=every, over_s=over, nodes=len(names))
    nodes = f'node=~"{"|".join(names)}"'
    own = f'{nodes},job_id="{job.number:d}"'
    queries = {
        "tokens_per_s": f"avg(avg_over_time(corral_job_tokens_per_second{{{own}}}[{over}s])>0)",
        "communication_share": f"min(avg_over_time(corral_job_communication_ratio{{{own}}}[{over}s]))",
        "efa_sent_bytes_per_s": f"avg(sum by(node)(rate(corral_efa_sent_bytes_total{{{nodes}}}[{over}s])))",
    }
    if record.gpus:
        which = f',gpu=~"{"|".join(map(str, sorted(gpus)))}"' if gpus else ""
        each = f"avg_over_time(corral_gpu_utilization_ratio{{{nodes}{which}}}[{over}s])"
        # More than the job has: some are of other jobs, and their mean would be of both.
        most = math.ceil(record.gpus * len(names) / (record.node_count or 1))
        queries["gpu_utilization"] = f"avg({each}) and count({each})<={most}"
    return planned, queries


async def _read(planned: JobCurves, queries: Mapping[str, str], port: int, authorization: str) -> JobCurves:
    limits = {"start": planned.first, "end": planned.last, "step": planned.every_s, "timeout": f"{_TIMEOUT_S}s"}

    async def read(expression: str) -> tuple[float | None, ...]:
        path = f"/api/v1/query_range?{urlencode({'query': expression, **limits})}"
        return points(await fetch(HOST, port, path, authorization), planned)

    tasks = {name: asyncio.create_task(read(expression)) for name, expression in queries.items()}
    await asyncio.wait(tasks.values(), timeout=_TIMEOUT_S)
    found: dict[str, Any] = {}
    problem = ""
    for name, task in tasks.items():
        if not task.done():
            problem = f"Prometheus: no answer within {_TIMEOUT_S} s"
        elif error := task.exception():
            problem = f"Prometheus: {error}"
        else:
            found[name] = task.result()
    return replace(planned, **found, problem=problem)


def points(text: str, planned: JobCurves) -> tuple[float | None, ...]:
    """The values of Prometheus's answer at the times of the curves; empty without any.

    Raises ValueError if it is not one series of numbers that can be measured.
    """
    try:
        series = json.loads(text)["data"]["result"]
        if not series:
            return ()
        (values,) = (one["values"] for one in series)
        found = {int(at): float(f"{float(value):.4g}") for at, value in values}
    except (KeyError, TypeError, RecursionError, OverflowError) as error:
        raise ValueError("it answered no series") from error
    times = range(planned.first, planned.last + 1, planned.every_s)
    if not all(at in times and 0 <= value < LARGEST for at, value in found.items()):
        raise ValueError("it answered what nothing measures")
    return tuple(map(found.get, times))


def _check_listener(port: int) -> None:
    """Raises AgentError unless Prometheus listens: while it does not, any user may, and would get its password."""
    trusted = {0}
    with suppress(KeyError):
        trusted.add(pwd.getpwnam(PROMETHEUS_USER).pw_uid)
    found = listeners(tcp_tables(), port)
    if not found:
        raise AgentError("it does not run")
    if not found <= trusted:
        raise AgentError(f"somebody else listens on its port {port}")


def listeners(tables: str, port: int) -> set[int]:
    """The users who listen on this port of 127.0.0.1, by the kernel's tables. Source: proc_net_tcp."""
    rows = [line.split() for line in tables.splitlines()]
    return {int(row[7]) for row in rows if (row[1], row[3]) == (f"0100007F:{port:04X}", "0A")}
