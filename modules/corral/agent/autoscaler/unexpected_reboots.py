"""Requeue jobs whose machine rebooted under them, e.g. after a power cut or a kernel crash.

slurmctld learns at the next registration that the node does not have the job, but waits BatchStartTimeout and, with
power saving, ResumeTimeout for it: 23 minutes. With ReturnToService=2 it ignores the reboot itself. Source: job_mgr.c
of 22.05, _purge_missing_jobs; and tests. The StartTime of a job that waited for its machines is set when they are up,
so no job starts before its machine's boot.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from corral.agent.cluster.models import SlurmNode
from corral.agent.events import Event, EventLog
from corral.agent.slurm import SlurmError, lines, scancel, scontrol, squeue
from corral.model.node_names import expand, fold

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    """A running job. `started`: local time."""

    job_id: str
    started: datetime
    nodes: tuple[str, ...]


@dataclass(kw_only=True)
class RebootWatcher:
    """Requeues the jobs whose machines have rebooted since the last call."""

    journal: EventLog
    _booted: Mapping[str, str] = field(default_factory=dict)

    def check(self, nodes: Sequence[SlurmNode]) -> None:
        """Requeue jobs whose machines have rebooted. Raises SlurmError; the next call checks again."""
        booted = {node.name: node.booted for node in nodes if node.registered and node.booted}
        new = {name: at for name, at in booted.items() if self._booted.get(name) != at}
        for node, jobs in interrupted_jobs(_runs(sorted(new)) if new else (), new).items():
            if ended := [job for job in jobs if _requeue_or_cancel(job)]:
                text = f"{node} has rebooted under {', '.join(ended)}: requeued, or cancelled with --no-requeue"
                self.journal.log_event(Event.REBOOTED, text, nodes=node, jobs=ended)
        self._booted = booted


def interrupted_jobs(runs: Iterable[RunningJob], booted: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """The jobs that started before one of their nodes booted, by the first of these nodes."""
    found: dict[str, list[str]] = {}
    for run in runs:
        if late := [node for node in run.nodes if node in booted and _is_before(run.started, booted[node])]:
            found.setdefault(late[0], []).append(run.job_id)
    return found


def _is_before(started: datetime, booted: str) -> bool:
    try:
        return started < datetime.fromisoformat(booted)
    except ValueError:  # Slurm does not know the time
        return False


def _runs(nodes: Sequence[str]) -> Iterator[RunningJob]:
    """The jobs running on these nodes, not those waiting for a boot. Raises SlurmError."""
    for line in lines(squeue(f"--nodelist={fold(nodes)}", "--states=running", "--format=%A %T %S %N")):
        job, state, started, held = line.split()
        if state == "RUNNING":
            yield RunningJob(job_id=job, started=datetime.fromisoformat(started), nodes=expand(held))


def _requeue_or_cancel(job: str) -> bool:
    """Requeue a job; cancel one that Slurm does not requeue (srun, `--no-requeue`). False if it has already ended."""
    try:
        scontrol("requeue", job)
    except SlurmError as error:
        log.info("requeue job %s: %s", job, error)
        try:
            scancel(job)
        except SlurmError as also:
            log.error("cancel job %s: %s", job, also)
            return False
    return True
