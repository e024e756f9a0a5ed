"""Jobs whose machine has booted again under them, as after a power cut or a crash of its kernel: they are over.

slurmctld finds at the next registration that the node does not have the job, and yet waits BatchStartTimeout and, with
power saving, ResumeTimeout for it: 23 minutes. With ReturnToService=2 a reboot alone is nothing to it. Source:
job_mgr.c of 22.05, _purge_missing_jobs; and trials. The StartTime of a job that waited for its machines is set when
they are up, so that none begins before its machine's boot.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from corral.agent.events import Event, Journal
from corral.agent.slurm import SlurmError, scancel, scontrol, squeue
from corral.agent.world import SlurmNode
from corral.model.node_names import expand, fold

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A job that runs, since when by this machine's clock, and where."""

    job_id: str
    started: datetime
    nodes: tuple[str, ...]


@dataclass(kw_only=True)
class Reboots:
    """Looks at jobs where machines have booted since its last look. `journal`: where it says what it ended."""

    journal: Journal
    _booted: Mapping[str, str] = field(default_factory=dict)

    def look(self, nodes: Sequence[SlurmNode]) -> None:
        """Lets the jobs whose machines have booted under them begin anew. Raises SlurmError; then it looks again."""
        there = {node.name: node.booted for node in nodes if node.registered and node.booted}
        new = {name: at for name, at in there.items() if self._booted.get(name) != at}
        for node, jobs in lost(_runs(sorted(new)) if new else (), new).items():
            if ended := [job for job in jobs if _is_ended(job)]:
                text = f"{node} has booted again under {', '.join(ended)}: requeued, or ended where that is not wanted"
                self.journal.tell(Event.REBOOTED, text, nodes=node, jobs=ended)
        self._booted = there


def lost(runs: Iterable[Run], booted: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """The jobs that began before one of their nodes booted, each with the first of those nodes."""
    found: dict[str, list[str]] = {}
    for run in runs:
        if late := [node for node in run.nodes if node in booted and _is_before(run.started, booted[node])]:
            found.setdefault(late[0], []).append(run.job_id)
    return found


def _is_before(started: datetime, booted: str) -> bool:
    try:
        return started < datetime.fromisoformat(booted)
    except ValueError:  # Slurm does not know
        return False


def _runs(nodes: Sequence[str]) -> Iterator[Run]:
    """The jobs that run on these nodes; not those that wait for them to boot. Raises SlurmError."""
    for line in squeue(f"--nodelist={fold(nodes)}", "--states=running", "--format=%A %T %S %N").splitlines():
        job, state, started, held = line.split()
        if state == "RUNNING":
            yield Run(job_id=job, started=datetime.fromisoformat(started), nodes=expand(held))


def _is_ended(job: str) -> bool:
    """Lets a job begin anew; one that Slurm does not requeue, as of srun and `--no-requeue`, ends. False: it had."""
    try:
        scontrol("requeue", job)
    except SlurmError as error:
        log.info("requeue job %s: %s", job, error)
        try:
            scancel(job)
        except SlurmError as also:
            log.error("end job %s: %s", job, also)
            return False
    return True
