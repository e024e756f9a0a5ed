"""Slurm's own commands, as far as the agent gives them: for many nodes at once, never one by one."""

import contextlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from corral.agent.errors import AgentError
from corral.agent.world import SlurmNode
from corral.model.node_names import fold

AT_ONCE = 500  # nodes of one `scontrol update`: it holds slurmctld's locks meanwhile, for some milliseconds
# squeue's words for all jobs that have nodes. It compares the whole state: a job that runs and is stopped is no
# `running` one to it, and one that was requeued is a `completing` one while its processes live (seen on 22.05).
HAVE_NODES = "--states=running,suspended,configuring,stopped,signaling,resizing,stage_out,completing"
# Not the command: `sbatch --wrap` has none, and srun has one. An array's element has a number of its own here.
JOB_FORMAT = "--Format=JobID:24,BatchFlag:8,State:16"
_TIMEOUT_S = 60.0
_NAME = "NodeName="
_NEXT_FIELD = re.compile(r" (?=[A-Z]\w+=)")


class SlurmError(AgentError):
    """slurmctld did not do what it was asked."""


def power_down(names: Sequence[str], reason: str) -> None:
    """Lets Slurm forget these nodes' machines; jobs on them are requeued. Without a reason, theirs stays.

    They are set DOWN first, which ends their jobs there at once. Without that slurmctld waits for word of their end,
    finds after SlurmdTimeout that the node is silent, and leaves a requeued job with Priority=0 and BadConstraints for
    ever (tried with 22.05). Raises SlurmError.
    """
    for why, held in _reasons(names, reason).items():
        for batch in _batches(held):
            scontrol("update", f"nodename={fold(batch)}", "state=down", f"reason={why}")
    words = (f"reason={reason}",) if reason else ()
    for batch in _batches(names):
        scontrol("update", f"nodename={fold(batch)}", "state=power_down_force", *words)


def _reasons(names: Sequence[str], reason: str) -> Mapping[str, Sequence[str]]:
    """The nodes by the reason that they are to be DOWN for, which scontrol insists on: this one, or their own."""
    if reason:
        return {reason: names}
    wanted, found = set(names), dict[str, list[str]]()
    for node in nodes():
        if node.name in wanted and node.reason:
            # Slurm shows the reason with who gave it and when: `text [root@2026-11-21T22:50:15]`.
            found.setdefault(re.sub(r" \[\S+@\S+\]$", "", node.reason), []).append(node.name)
    return found


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
    """Signals the scripts of the jobs that run on these nodes, which pass it on to the programs. Raises SlurmError.

    Not those that end or have not begun: one is refused after ten seconds, the other loses the signal (seen on 22.05).
    """
    ask_scripts([job for job, is_batch, state in _jobs_on(nodes) if is_batch and state != "CONFIGURING"])


def requeue_jobs(nodes: Sequence[str]) -> None:
    """Lets the batch jobs on these nodes start again elsewhere; others end. Their processes have KillWait to save.

    One that Slurm refuses, as one with `--no-requeue`, keeps no other waiting. Raises SlurmError, after all were tried.
    """
    refused: list[str] = []
    for job, is_batch, _ in _jobs_on(nodes):
        try:
            requeue_job(job, is_batch=is_batch)
        except SlurmError as error:
            refused.append(str(error))
    if refused:
        raise SlurmError("; ".join(refused))


def requeue_job(job: str, *, is_batch: bool) -> None:
    """Lets a batch job start again elsewhere; another one ends here. Raises SlurmError."""
    if is_batch:
        scontrol("requeue", job)
    else:
        scancel(job)


def _jobs_on(nodes: Sequence[str]) -> list[tuple[str, bool, str]]:
    """The jobs that have these nodes and do not end already, by number: whether each has a script, and its state."""
    found: dict[str, tuple[str, bool, str]] = {}
    for batch in _batches(nodes):
        listed = squeue(f"--nodelist={fold(batch)}", HAVE_NODES, JOB_FORMAT)
        for job, is_batch, state in (line.split() for line in listed.splitlines()):
            if state != "COMPLETING":
                found[job] = (job, is_batch == "1", state)
    return sorted(found.values(), key=lambda one: int(one[0]))


def ask_scripts(jobs: Sequence[str]) -> tuple[str, ...]:
    """Those of these batch jobs whose scripts were signalled. Raises SlurmError.

    A script that says nothing of the signal would die of it, and its job would have failed: it is left alone.
    """
    know = tuple(job for job in jobs if "USR1" in scontrol("write", "batch_script", job, "-"))
    if know:
        scancel("--batch", "--signal=USR1", *know)
    return know


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


def node(name: str) -> SlurmNode:
    """A node as slurmctld has it. Raises SlurmError."""
    return read_node(scontrol("--oneliner", "show", "node", name).strip())


def nodes() -> tuple[SlurmNode, ...]:
    """All nodes as slurmctld has them. Raises SlurmError."""
    lines = scontrol("--oneliner", "show", "nodes").splitlines()
    return tuple(read_node(line) for line in lines if line.startswith(_NAME))


def read_node(line: str) -> SlurmNode:
    """A node by scontrol's line about it: fields `Key=Value`, of which Reason and others hold blanks.

    There is one for each of tens of thousands of nodes. Raises ValueError for a line about none.
    """
    if not line.startswith(_NAME):
        raise ValueError(f"{line!r} is about no node")
    return SlurmNode(
        name=_word(line, _NAME),
        states=_states(_word(line, " State=")),
        address=_word(line, " NodeAddr="),
        reason=_words(line, " Reason="),
        comment=_words(line, " Comment="),
        started=_word(line, " SlurmdStartTime="),
        booted=_word(line, " BootTime="),
    )


def _word(line: str, key: str) -> str:
    """The value of a field that has no blanks."""
    start = line.find(key)
    if start < 0:
        return ""
    start += len(key)
    end = line.find(" ", start)
    return line[start:] if end < 0 else line[start:end]


def _words(line: str, key: str) -> str:
    start = line.find(key)
    if start < 0:
        return ""
    start += len(key)
    following = _NEXT_FIELD.search(line, start)
    return line[start : following.start() if following else None].rstrip()


@lru_cache
def _states(text: str) -> frozenset[str]:
    return frozenset(text.split("+"))


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


def hears(timeout_s: float) -> bool:
    """True if slurmctld answers within this time. It logs nothing of it."""
    try:
        _run("scontrol", "ping", timeout_s=timeout_s)
    except SlurmError:
        return False
    return True


def ask(*command: str, more: Mapping[str, str]) -> str:
    """What one of Slurm's programs printed, with these variables beside its own. Raises SlurmError."""
    return _run(*command, more=more)


def scancel(*arguments: str) -> None:
    """Signals or ends jobs. Raises SlurmError."""
    _run("scancel", *arguments)


def _run(*command: str, more: Mapping[str, str] = MappingProxyType({}), timeout_s: float = _TIMEOUT_S) -> str:
    environment = {**os.environ, **more}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        said = "; ".join((done.stderr or done.stdout).strip().splitlines())
        raise SlurmError(f"{' '.join(command)} failed: {said}")
    return done.stdout


def _batches(nodes: Sequence[str]) -> list[Sequence[str]]:
    return [nodes[start : start + AT_ONCE] for start in range(0, len(nodes), AT_ONCE)]
