"""Slurm's own commands, as far as the agent gives them: for many nodes at once, never one by one."""

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from corral.agent.errors import AgentError
from corral.agent.world import SlurmNode
from corral.model.node_names import fold

AT_ONCE = 500  # nodes of one `scontrol update`: it holds slurmctld's locks meanwhile, for some milliseconds
_TIMEOUT_S = 60


class SlurmError(AgentError):
    """slurmctld did not do what it was asked."""


def power_down(nodes: Sequence[str], reason: str) -> None:
    """Lets Slurm forget these nodes' machines; jobs on them are requeued. Without a reason, theirs stays.

    Raises SlurmError.
    """
    words = (f"reason={reason}",) if reason else ()
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=power_down_force", *words)


def replace(nodes: Sequence[str], reason: str) -> None:
    """Lets Slurm end these nodes' machines as soon as no job uses them. Without a reason, theirs stays.

    Raises SlurmError.
    """
    words = (f"reason={reason}",) if reason else ()
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=power_down_asap", *words)


def drain(nodes: Sequence[str], reason: str) -> None:
    """Lets no new job come to these nodes. Raises SlurmError."""
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=drain", f"reason={reason}")


def ask_for_checkpoints(nodes: Sequence[str]) -> None:
    """Signals the scripts of the jobs that run on these nodes, which pass it on to the programs. Raises SlurmError."""
    jobs: set[str] = set()
    for batch in _batches(nodes):
        listed = squeue(f"--nodelist={fold(batch)}", "--states=running,suspended", "--Format=JobID:24,BatchFlag:8")
        jobs.update(job for job, is_batch in (line.split() for line in listed.splitlines()) if is_batch == "1")
    if jobs:
        scancel("--batch", "--signal=USR1", *sorted(jobs, key=int))


def undrain(nodes: Sequence[str]) -> None:
    """Lets Slurm use these nodes again. Raises SlurmError."""
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=resume")


def stop_queue(queue: str) -> None:
    """Lets Slurm start no more jobs of a queue; they can still be submitted. Raises SlurmError."""
    scontrol("update", f"partitionname={queue}", "state=down")


def open_queue(queue: str) -> None:
    """Lets Slurm start jobs of a queue again. Raises SlurmError."""
    scontrol("update", f"partitionname={queue}", "state=up")


def tell_waiting(jobs: Sequence[int], text: str) -> None:
    """Says something on the terminals of those of the jobs that have one: srun's and salloc's. Raises SlurmError."""
    if not jobs:
        return
    listed = ",".join(str(job) for job in jobs)
    for line in squeue(f"--jobs={listed}", "--Format=JobID:24,BatchFlag:8").splitlines():
        job, is_batch = line.split()
        if is_batch == "0":
            with contextlib.suppress(SlurmError):  # its user has gone
                scontrol("notify", job, text)


def power_up(nodes: Sequence[str]) -> None:
    """Lets Slurm launch machines for these nodes. Raises SlurmError."""
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=power_up")


def nodes() -> tuple[SlurmNode, ...]:
    """All nodes as slurmctld has them. Raises SlurmError."""
    return tuple(read_node(line) for line in scontrol("--oneliner", "show", "nodes").splitlines() if line.strip())


def read_node(line: str) -> SlurmNode:
    """A node by scontrol's line about it: fields `Key=Value`, of which Reason and others hold blanks."""
    fields = dict(part.split("=", 1) for part in re.split(r" (?=[A-Z]\w+=)", line.strip()) if "=" in part)
    return SlurmNode(
        name=fields["NodeName"],
        states=frozenset(fields["State"].split("+")),
        address=fields.get("NodeAddr", ""),
        reason=fields.get("Reason", ""),
        comment=fields.get("Comment", ""),
        started=fields.get("SlurmdStartTime", ""),
    )


def place(addresses: Mapping[str, str]) -> None:
    """Tells slurmctld where nodes will be, before they register. Raises SlurmError."""
    for batch in _batches(sorted(addresses)):
        known = ",".join(addresses[node] for node in batch)
        hosts = ",".join(f"ip-{addresses[node].replace('.', '-')}" for node in batch)
        scontrol("update", f"nodename={','.join(batch)}", f"nodeaddr={known}", f"nodehostname={hosts}")


def scontrol(*arguments: str) -> str:
    """What scontrol printed. Raises SlurmError."""
    return _run("scontrol", *arguments)


def squeue(*arguments: str) -> str:
    """The lines of jobs that squeue printed, without its heading. Raises SlurmError."""
    return _run("squeue", "--noheader", *arguments)


def ask(*command: str, more: Mapping[str, str]) -> str:
    """What one of Slurm's programs printed, with these variables beside its own. Raises SlurmError."""
    return _run(*command, more=more)


def scancel(*arguments: str) -> None:
    """Signals or ends jobs. Raises SlurmError."""
    _run("scancel", *arguments)


def _run(*command: str, more: Mapping[str, str] = MappingProxyType({})) -> str:
    environment = {**os.environ, **more}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        said = "; ".join((done.stderr or done.stdout).strip().splitlines())
        raise SlurmError(f"{' '.join(command)} failed: {said}")
    return done.stdout


def _batches(nodes: Sequence[str]) -> list[Sequence[str]]:
    return [nodes[start : start + AT_ONCE] for start in range(0, len(nodes), AT_ONCE)]
