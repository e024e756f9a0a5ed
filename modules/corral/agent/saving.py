"""What slurmctld does not save by itself, and the keeper therefore lets it save.

slurmctld saves neither that a node has registered nor that a job has begun on nodes which were launched for it: both
are in its state only with the next change of any node, or of any job (tried with 22.05). One that dies before, and
starts again, takes the node for one that still boots, asks nothing of it, and takes its jobs away when ResumeTimeout is
over; and it starts the job a second time where it runs, finds a duplicate, and requeues it. Being told what it knows
already makes it save all nodes, or all jobs, at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from corral.agent import slurm
from corral.agent.slurm import SlurmError
from corral.agent.world import SlurmNode


class Scheduler(Protocol):
    """Slurm, as corral.agent.slurm asks it."""

    def place(self, addresses: Mapping[str, str]) -> object:
        """Tells slurmctld where nodes are. Raises SlurmError."""
        ...

    def squeue(self, *arguments: str) -> str:
        """The lines of jobs. Raises SlurmError."""
        ...

    def scontrol(self, *arguments: str) -> str:
        """What scontrol printed. Raises SlurmError."""
        ...


@dataclass(kw_only=True)
class Saving:
    """What of slurmctld's is known to be saved."""

    scheduler: Scheduler = slurm
    _nodes: Mapping[str, str] | None = None
    _jobs: frozenset[str] | None = None

    def look(self, nodes: Sequence[SlurmNode]) -> None:
        """Lets slurmctld save what is new since the last look. Raises SlurmError; then it is done again."""
        now = {node.name: node.started for node in nodes if node.registered and node.started}
        before = self._nodes or {}
        if new := {
            node.name: node.address for node in nodes if now.get(node.name) not in (None, before.get(node.name))
        }:
            self.scheduler.place(new)
        self._nodes = now
        waiting = self._listed("configuring")
        begun = self._listed("running") if self._jobs is None else self._jobs - waiting
        _first(sorted(begun, key=int), self._touch)
        self._jobs = waiting

    def _listed(self, state: str) -> frozenset[str]:
        return frozenset(self.scheduler.squeue("--all", f"--states={state}", "--Format=JobID:24").split())

    def _touch(self, job: str) -> None:
        """Tells slurmctld of a job what it says of it."""
        comment = self.scheduler.squeue("--all", f"--jobs={job}", "--Format=admin_comment:1024").strip()
        self.scheduler.scontrol("update", f"jobid={job}", f"AdminComment={'' if comment == '(null)' else comment}")


def _first(jobs: Iterable[str], act: Callable[[str], object]) -> None:
    """Does it with the first of them with which it can be done: the others may have ended."""
    for job in jobs:
        try:
            act(job)
        except SlurmError:
            continue
        return
