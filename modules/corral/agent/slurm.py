"""Slurm's commands, as the agent calls them: always for many nodes at once."""

import contextlib
import logging
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from types import MappingProxyType

from corral.agent.cluster.models import SlurmNode
from corral.agent.errors import AgentError
from corral.model.node_names import fold

AT_ONCE = 500  # nodes per `scontrol update`, which holds slurmctld's locks for some milliseconds
# squeue's states of all jobs that have nodes. It compares the whole state: a stopped running job is not `running`, and
# a requeued job is `completing` until its processes have ended (seen on 22.05).
HAVE_NODES = "--states=running,suspended,configuring,stopped,signaling,resizing,stage_out,completing"
# BatchFlag, not the command: `sbatch --wrap` has none, and srun has one. Each element of an array has its own JobID.
JOB_FORMAT = "--Format=JobID:24,BatchFlag:8,State:16"
_TIMEOUT_S = 60.0
_NAME = "NodeName="
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d+)")
_NEXT_FIELD = re.compile(r" (?=[A-Z]\w+=)")

log = logging.getLogger(__name__)


class SlurmError(AgentError):
    """A Slurm command failed."""


def power_down(names: Sequence[str], reason: str) -> None:
    """Power these nodes down at once; their jobs are requeued. An empty reason keeps theirs. Raises SlurmError.

    They are set DOWN first, which ends their jobs at once. Otherwise slurmctld waits for the jobs' end, finds the node
    silent after SlurmdTimeout, and leaves a requeued job with Priority=0 and BadConstraints for ever (seen on 22.05).
    """
    for why, held in _reasons(names, reason).items():
        for batch in _batches(held):
            scontrol("update", f"nodename={fold(batch)}", "state=down", f"reason={why}")
    settings = (f"reason={reason}",) if reason else ()
    for batch in _batches(names):
        scontrol("update", f"nodename={fold(batch)}", "state=power_down_force", *settings)


def _reasons(names: Sequence[str], reason: str) -> Mapping[str, Sequence[str]]:
    """The nodes by the reason for DOWN, which scontrol requires: this one, or their own."""
    if reason:
        return {reason: names}
    wanted, found = set(names), dict[str, list[str]]()
    for node in nodes():
        if node.name in wanted and node.reason:
            # Slurm shows the reason with who gave it and when: `text [root@2026-11-21T22:50:15]`.
            found.setdefault(re.sub(r" \[\S+@\S+\]$", "", node.reason), []).append(node.name)
    return found


def release(name: str, reason: str) -> None:
    """Power this node down at once; a drain by hand keeps its reason. Raises SlurmError."""
    power_down([name], "" if node(name).drained_by_hand else reason)


def replace(nodes: Sequence[str], reason: str) -> None:
    """Power these nodes down as soon as no job uses them. An empty reason keeps theirs. Raises SlurmError."""
    settings = (f"reason={reason}",) if reason else ()
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=power_down_asap", *settings)


def drain(nodes: Sequence[str], reason: str) -> None:
    """Drain these nodes. Raises SlurmError."""
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=drain", f"reason={reason}")


def request_checkpoints(nodes: Sequence[str]) -> None:
    """Signal the scripts of the jobs running on these nodes, which pass it on to their programs.

    A job whose script cannot be read or signalled is logged, and does not stop the others. Raises SlurmError if the
    jobs cannot be listed.

    Ending and starting jobs are left out: slurmctld refuses the former after ten seconds, the latter lose the signal
    (seen on 22.05).
    """
    for job, is_batch, state in _jobs_on(nodes):
        if is_batch and state != "CONFIGURING":
            try:
                signal_script(job)
            except SlurmError as error:
                log.error("job %s: no checkpoint requested: %s", job, error)


def requeue_jobs(nodes: Sequence[str]) -> None:
    """Requeue the batch jobs on these nodes, cancel the others. Their processes have KillWait to save.

    Raises SlurmError after trying all jobs.
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
    """Requeue a batch job; cancel any other. Raises SlurmError."""
    if is_batch:
        scontrol("requeue", job)
    else:
        scancel(job)


def _jobs_on(nodes: Sequence[str]) -> list[tuple[str, bool, str]]:
    """The jobs on these nodes that are not ending, by number: id, whether it has a script, state."""
    found: dict[str, tuple[str, bool, str]] = {}
    for batch in _batches(nodes):
        listed = squeue(f"--nodelist={fold(batch)}", HAVE_NODES, JOB_FORMAT)
        for job, is_batch, state in (line.split() for line in lines(listed)):
            if state != "COMPLETING":
                found[job] = (job, is_batch == "1", state)
    return sorted(found.values(), key=lambda one: int(one[0]))


def signal_script(job: str) -> bool:
    """Signal the script of this batch job. False if it does not mention the signal. Raises SlurmError.

    Such a script is left alone: the signal would kill it, and its job would fail.
    """
    handles = "USR1" in scontrol("write", "batch_script", job, "-")
    if handles:
        scancel("--batch", "--signal=USR1", job)
    return handles


def undrain(nodes: Sequence[str]) -> None:
    """Return these nodes to service. Raises SlurmError."""
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=resume")


def stop_queue(queue: str) -> None:
    """Stop a queue: it accepts jobs, but starts none. Raises SlurmError."""
    scontrol("update", f"partitionname={queue}", "state=down")


def open_queue(queue: str) -> None:
    """Open a queue: it starts jobs again. Raises SlurmError."""
    scontrol("update", f"partitionname={queue}", "state=up")


def notify_waiting(jobs: Sequence[int], text: str) -> None:
    """Print a message on the terminals of interactive jobs (srun, salloc). Raises SlurmError."""
    if not jobs:
        return
    listed = ",".join(str(job) for job in jobs)
    for line in lines(squeue(f"--jobs={listed}", "--Format=JobID:24,BatchFlag:8")):
        job, is_batch = line.split()
        if is_batch == "0":
            with contextlib.suppress(SlurmError):  # its user has left
                scontrol("notify", job, text)


def power_up(nodes: Sequence[str]) -> None:
    """Power these nodes up. Raises SlurmError."""
    for batch in _batches(nodes):
        scontrol("update", f"nodename={fold(batch)}", "state=power_up")


def node(name: str) -> SlurmNode:
    """A node as slurmctld reports it. Raises SlurmError."""
    return read_node(scontrol("--oneliner", "show", "node", name).strip())


def nodes() -> tuple[SlurmNode, ...]:
    """All nodes as slurmctld reports them. Raises SlurmError."""
    found = lines(scontrol("--oneliner", "show", "nodes"))
    return tuple(read_node(line) for line in found if line.startswith(_NAME))


def read_node(line: str) -> SlurmNode:
    """A node from a line of scontrol: fields `Key=Value`; Reason and others may contain blanks.

    It must be fast: a cluster may have tens of thousands of nodes. Raises ValueError for any other line.
    """
    if not line.startswith(_NAME):
        raise ValueError(f"{line!r} does not describe a node")
    return SlurmNode(
        name=_word(line, _NAME),
        states=_states(_word(line, " State=")),
        address=_word(line, " NodeAddr="),
        reason=_rest_of(line, " Reason="),
        comment=_rest_of(line, " Comment="),
        started=_word(line, " SlurmdStartTime="),
        booted=_word(line, " BootTime="),
        gpus_allocated=gpus_in(_word(line, " AllocTRES=")),
    )


def _word(line: str, key: str) -> str:
    """The value of a field without blanks."""
    start = line.find(key)
    if start < 0:
        return ""
    start += len(key)
    end = line.find(" ", start)
    return line[start:] if end < 0 else line[start:end]


@lru_cache
def gpus_in(tres: str) -> int:
    """The number of GPUs in Slurm's list `cpu=96,gres/gpu=8,gres/gpu:a100=8`, which also counts each type of GPU."""
    found = _GPUS.search(tres)
    return int(found[1]) if found else 0


def _rest_of(line: str, key: str) -> str:
    start = line.find(key)
    if start < 0:
        return ""
    start += len(key)
    following = _NEXT_FIELD.search(line, start)
    return line[start : following.start() if following else None].rstrip()


@lru_cache
def _states(text: str) -> frozenset[str]:
    return frozenset(text.split("+"))


def set_addresses(addresses: Mapping[str, str]) -> None:
    """Set the addresses of nodes before they register. Raises SlurmError."""
    for batch in _batches(sorted(addresses)):
        known = ",".join(addresses[node] for node in batch)
        hosts = ",".join(f"ip-{addresses[node].replace('.', '-')}" for node in batch)
        scontrol("update", f"nodename={','.join(batch)}", f"nodeaddr={known}", f"nodehostname={hosts}")


def scontrol(*arguments: str) -> str:
    """Run scontrol, and return its output. Raises SlurmError."""
    return _text(_run("scontrol", *arguments))


def squeue(*arguments: str) -> str:
    """Run squeue, and return its lines without the heading. Raises SlurmError.

    Only for fields that no user writes: a name may contain a newline. `fixed_rows` reads the others.
    """
    return _text(_run("squeue", "--noheader", *arguments))


def lines(output: str) -> list[str]:
    """The lines of a command's output. Only a newline ends one: Slurm's texts may contain other line separators."""
    return [line for line in output.split("\n") if line]


def fixed_rows(output: bytes, widths: Sequence[int]) -> Iterator[list[str]]:
    """The cells of each row, of columns with these widths in bytes. Raises SlurmError if the output has no such rows.

    Slurm cuts and pads each column, so no text ends a column or a row, whatever a user wrote: lines and separators can
    be forged. Source: squeue's _print_str, print_fields_str of Slurm; seen with 22.05.
    """
    size = sum(widths) + 1
    for start in range(0, len(output), size):
        row = output[start : start + size]
        if len(row) < size or not row.endswith(b"\n"):
            raise SlurmError(f"Slurm's output has no rows of {size} bytes")
        ends = list(accumulate(widths, initial=0))
        yield [_text(row[begin:end].strip(b" ")) for begin, end in pairwise(ends)]


def responds(timeout_s: float) -> bool:
    """True if slurmctld answers within this time."""
    try:
        _run("scontrol", "ping", timeout_s=timeout_s)
    except SlurmError:
        return False
    return True


def query(*command: str, environment: Mapping[str, str]) -> bytes:
    """Run one of Slurm's programs with additional environment variables, and return its output. Raises SlurmError."""
    return _run(*command, more=environment)


def scancel(*arguments: str) -> None:
    """Run scancel. Raises SlurmError."""
    _run("scancel", *arguments)


def _run(*command: str, more: Mapping[str, str] = MappingProxyType({}), timeout_s: float = _TIMEOUT_S) -> bytes:
    environment = {**os.environ, **more}
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=timeout_s, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        output = "; ".join(lines(_text(done.stderr or done.stdout).strip()))
        raise SlurmError(f"{' '.join(command)} failed: {output}")
    return done.stdout


def _text(output: bytes) -> str:
    return output.decode(errors="replace")  # scripts, names and comments are users' bytes


def _batches(nodes: Sequence[str]) -> list[Sequence[str]]:
    return [nodes[start : start + AT_ONCE] for start in range(0, len(nodes), AT_ONCE)]
