"""Make slurmctld save state that it would not save by itself.

slurmctld does not save that a node has registered, or that a job has started on nodes launched for it: both reach its
state file only with the next change of any node or job (seen on 22.05). If slurmctld dies before that, the next one
treats the node as booting, does not contact it, and ends its jobs after ResumeTimeout; it also starts the job a second
time, finds a duplicate, and requeues it. An update with unchanged values makes slurmctld save all nodes, or all jobs,
at once. It saves that a job has left its nodes, because every job has an epilog (slurm.conf).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from corral.agent import slurm
from corral.agent.cluster.models import SlurmNode
from corral.agent.slurm import SlurmError


class SlurmCommands(Protocol):
    """The commands that this module runs, as `corral.agent.slurm` implements them."""

    def set_addresses(self, addresses: Mapping[str, str]) -> object:
        """Set the addresses of nodes. Raises SlurmError."""
        ...

    def squeue(self, *arguments: str) -> str:
        """Return squeue's lines. Raises SlurmError."""
        ...

    def scontrol(self, *arguments: str) -> str:
        """Return scontrol's output. Raises SlurmError."""
        ...


@dataclass(kw_only=True)
class ForcedSave:
    """The nodes and jobs that slurmctld is known to have saved."""

    commands: SlurmCommands = slurm
    _nodes: Mapping[str, str] | None = None
    _jobs: frozenset[str] | None = None

    def save_new(self, nodes: Sequence[SlurmNode]) -> None:
        """Make slurmctld save what is new since the last call. Raises SlurmError; the next call tries again."""
        now = {node.name: node.started for node in nodes if node.registered and node.started}
        before = self._nodes or {}
        if new := {
            node.name: node.address for node in nodes if now.get(node.name) not in (None, before.get(node.name))
        }:
            self.commands.set_addresses(new)
        self._nodes = now
        waiting = self._listed("configuring")
        begun = self._listed("running") if self._jobs is None else self._jobs - waiting
        _first(sorted(begun, key=int), self._touch)
        self._jobs = waiting

    def _listed(self, state: str) -> frozenset[str]:
        return frozenset(self.commands.squeue("--all", f"--states={state}", "--Format=JobID:24").split())

    def _touch(self, job: str) -> None:
        """Set the comment of a job to its present value."""
        comment = self.commands.squeue("--all", f"--jobs={job}", "--Format=admin_comment:1024").strip()
        self.commands.scontrol("update", f"jobid={job}", f"AdminComment={'' if comment == '(null)' else comment}")


def _first(jobs: Iterable[str], act: Callable[[str], object]) -> None:
    """Call `act` with the first job for which it succeeds: jobs may have ended."""
    for job in jobs:
        try:
            act(job)
        except SlurmError:
            continue
        return
