"""Slurm's record of a job, from slurmdbd, which knows ended jobs, too.

Its name and its directory are its user's text: they are read from columns of fixed width (decision 162).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from corral.agent import slurm
from corral.agent.cluster.models import SlurmNode
from corral.agent.health.gpus import MOST_GPUS
from corral.agent.slurm import SlurmError, fixed_rows, gpus_in, lines, query
from corral.model.job_evidence import JOB_ID, JobRecord
from corral.model.node_names import expand
from corral.model.printable import printable

STEP_DIRECTORY = ".corral/steps"  # in the job's directory; templates/jobs/steps.j2 creates it
_FIELDS = "JobIDRaw,JobID,UID,User,Partition,State,ExitCode,Start,End,NodeList,NNodes,AllocTRES"
_TEXTS = {"JobIDRaw": 24, "JobName": 321, "WorkDir": 1025}  # bytes
# `     Nodes=train-[1-2] CPU_IDs=0-95 Mem=0 GRES=gpu:h100:8(IDX:0-7)`
_DETAILS = re.compile(r" +Nodes=(?P<nodes>\S+) CPU_IDs=\S* Mem=\S* GRES=(?P<gres>\S*)$")
_INDICES = re.compile(r"\bgpu[^(]*\(IDX:([0-9]{1,3}(?:[-,][0-9]{1,3})*)\)")
_SECONDS = {"SLURM_TIME_FORMAT": "%s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """Slurm's record, the user's id, the directory of the job's steps, and Slurm's own number of the job."""

    record: JobRecord
    uid: int
    number: int
    directory: Path


def slurm_job(job: str) -> SlurmJob:
    """The job of this number, `17` or `17_3`. Raises SlurmError if slurmdbd has none (yet)."""
    if not JOB_ID.fullmatch(job):
        raise SlurmError(f"{job[:40]!r} is not a job id - expected one such as 17, or 17_3 for a task of an array")
    sacct = ("sacct", f"--jobs={job}", "--duplicates", "--noheader", "--allusers")
    rows = lines(query(*sacct, "--parsable2", f"--format={_FIELDS}", environment=_SECONDS).decode(errors="replace"))
    widths = ",".join(f"{name}%-{width}" for name, width in _TEXTS.items())
    texts = fixed_rows(
        query(*sacct, "--allocations", f"--format={widths}", environment=_SECONDS),
        [width + 1 for width in _TEXTS.values()],
    )
    if not rows and _is_queued(job):
        # slurmctld sends new jobs to slurmdbd from time to time, not as it accepts them.
        raise SlurmError(f"slurmdbd has no record of job {job} yet - try again in a few seconds")
    return parse_job(job, rows, [*texts])


def parse_job(job: str, rows: Sequence[str], texts: Sequence[Sequence[str]]) -> SlurmJob:
    """The newest run of the job in sacct's rows; `texts`: the raw id, name and directory of each run.

    Raises SlurmError.
    """
    cells = [dict(zip(_FIELDS.split(","), row.split("|"), strict=False)) for row in rows]
    runs = [one for one in cells if one.get("JobID") == job and one.get("UID", "").isdigit()]
    if not runs:
        raise SlurmError(f"Slurm knows no job {job} - `sacct --allusers` lists those of this cluster")
    newest = runs[-1]
    named = [text for text in texts if text[0] == newest["JobIDRaw"]]
    _, name, directory = named[-1] if named else ("", "", "")
    steps = [one for one in cells if one.get("JobIDRaw", "").startswith(f"{newest['JobIDRaw']}.")]
    record = JobRecord(
        job_id=job,
        user=newest["User"],
        name=printable(name),
        queue=newest["Partition"],
        state=_state(newest),
        exit_code=newest["ExitCode"],
        nodes="" if newest["NodeList"] in ("", "None assigned") else newest["NodeList"],
        node_count=_number(newest["NNodes"]) or 0,
        gpus=gpus_in(newest["AllocTRES"]),
        runs=len(runs),
        started=_number(newest["Start"]),
        ended=_number(newest["End"]),
        step_states=tuple(sorted({_state(one) for one in steps})),
    )
    steps_of = Path(directory or "/") / STEP_DIRECTORY / job
    return SlurmJob(record=record, uid=int(newest["UID"]), number=_number(newest["JobIDRaw"]) or 0, directory=steps_of)


def job_nodes(folded: str) -> tuple[SlurmNode, ...]:
    """The nodes of a job, as Slurm has them now. Raises SlurmError."""
    names = {*expand(folded)} if folded else set()
    return tuple(node for node in slurm.nodes() if node.name in names) if names else ()


def node_reasons(nodes: Iterable[SlurmNode]) -> dict[str, str]:
    """Why Slurm has drained nodes, or set them down, by node."""
    return {node.name: printable(node.reason, 200) for node in nodes if node.reason}


def gpu_indices(job: str, nodes: Collection[str]) -> Mapping[str, frozenset[int]]:
    """The GPUs that a running job has on each of its nodes. Raises SlurmError."""
    return parse_gpu_indices(slurm.scontrol("show", "job", job, "--details"), nodes)


def parse_gpu_indices(text: str, nodes: Collection[str]) -> Mapping[str, frozenset[int]]:
    """The GPUs by node, from `scontrol show job --details`.

    The text also has words of the job's user: they can name no GPUs but those of the job's own `nodes`.
    """
    found: dict[str, frozenset[int]] = {}
    for line in slurm.lines(text):
        if named := _DETAILS.match(line):
            gpus = frozenset(index for part in _INDICES.findall(named["gres"]) for index in _numbers(part))
            with suppress(ValueError):
                found.update({node: gpus for node in expand(named["nodes"]) if gpus and node in nodes})
    return found


def _is_queued(job: str) -> bool:
    """True if slurmctld has this job."""
    try:
        return bool(slurm.squeue(f"--jobs={job}", "--format=%i").strip())
    except SlurmError:  # it knows no such job
        return False


def _numbers(text: str) -> Iterator[int]:
    """`0-3,7` as numbers."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first), MOST_GPUS) + 1)


def _state(cells: dict[str, str]) -> str:
    return cells["State"].partition(" ")[0].lower()  # `CANCELLED by 1000`


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
