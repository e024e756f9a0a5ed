"""Read the files that a job has left in its directory, as the job's user. Nothing there is trusted.

A file may be a link, a pipe, endless, or somebody else's: links and all but regular files are refused, sizes are
bounded, and a file counts only if it belongs to the user who reads.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from corral.agent.errors import AgentError
from corral.agent.job_evidence.output_lines import kept_lines
from corral.agent.job_evidence.step_summary import ReadRank, read_rank
from corral.model.job_evidence import RankSteps, StepPage

PAGE_SIZE = 96  # processes: zipped, they fit into the 24,000 characters that Systems Manager returns
MOST_RANKS = 16_384
_RECENT = 60  # lines for metrics: a minute or more
_FILE_BYTES = 512 * 1024  # twice what corral_step writes into one
_OUTPUT_BYTES = 512 * 1024  # of the output's beginning, where NCCL starts, and of its end
_PATH_BYTES = 4096
_SHORT = 64 * 1024  # a younger file is read together with the one before it
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class UnreadableError(AgentError):
    """A file or directory that is missing, or not one to read."""


def read_page(directory: Path, start: int = 0, limit: int = PAGE_SIZE) -> StepPage:
    """The processes of a job from the `start`-th on, and with the first page lines of its output."""
    try:
        ranks = sorted(_ranks(directory))
    except (OSError, UnreadableError) as error:
        return StepPage(ranks=(), next=None, variables={}, problem=f"no steps: {_sentence(error)}")
    problems: list[str] = []
    found: list[ReadRank] = []
    for rank in ranks[start : start + limit]:
        try:
            found.append(read_rank(rank, _rank_text(directory, rank)))
        except (OSError, UnreadableError) as error:
            problems.append(_sentence(error))
    output: tuple[str, ...] = ()
    if not start:
        try:
            output = kept_lines(_output(directory))
        except (OSError, UnreadableError) as error:
            problems.append(f"no output: {_sentence(error)}")
    more = start + limit
    return StepPage(
        ranks=tuple(one.steps for one in found),
        next=more if len(ranks) > more else None,
        variables=found[0].variables if found else {},
        output=output,
        problem="; ".join(problems[:3]),
        curve=found[0].curve if found and not start else (),
    )


def read_recent(directory: Path, ranks: Sequence[int]) -> StepPage:
    """What these processes did in the last minute or in their last 60 steps, whichever is longer.

    A process without a file is left out: the program records no steps, or has not begun.
    """
    found: list[RankSteps] = []
    try:
        _check_own(directory)
    except (OSError, UnreadableError) as error:
        return StepPage(ranks=(), next=None, variables={}, problem=f"no steps: {_sentence(error)}")
    for rank in ranks[:PAGE_SIZE]:
        with contextlib.suppress(OSError, UnreadableError):
            found.append(read_rank(rank, _rank_text(directory, rank), _RECENT).steps)
    return StepPage(ranks=tuple(found), next=None, variables={})


def _read_own(path: Path, most: int) -> bytes:
    with _opened(path, os.O_NOFOLLOW) as (descriptor, _):
        return _read(descriptor, most)


@contextlib.contextmanager
def _opened(path: Path, more_flags: int = 0) -> Iterator[tuple[int, int]]:
    """A block in which this regular file of the process's user is open: its descriptor and its size."""
    descriptor = os.open(path, _FLAGS | more_flags)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise UnreadableError(f"{path} is not a file of the job's user")
        yield descriptor, about.st_size
    finally:
        os.close(descriptor)


def _read(descriptor: int, most: int) -> bytes:
    parts, left = [], most
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _check_own(directory: Path) -> None:
    if os.lstat(directory).st_uid != os.geteuid():
        raise UnreadableError(f"{directory} is not a directory of the job's user")


def _ranks(directory: Path) -> Iterator[int]:
    _check_own(directory)
    with os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number >= MOST_RANKS:
                return
            rank = entry.name.removeprefix("rank-").removesuffix(".jsonl")
            if entry.name == f"rank-{rank}.jsonl" and rank.isdigit() and len(rank) <= 7:
                yield int(rank)


def _rank_text(directory: Path, rank: int) -> str:
    """The lines of a process; if its file is young, with those of the file before it."""
    file = directory / f"rank-{rank:05}.jsonl"
    content = _read_own(file, _FILE_BYTES)
    if len(content) < _SHORT:
        with contextlib.suppress(FileNotFoundError):
            content = _read_own(file.with_name(f"{file.name}.1"), _FILE_BYTES) + b"\n" + content
    return content.decode(errors="replace")


def _output(directory: Path) -> Iterator[str]:
    """The lines at both ends of the job's output, whose path its script has left in `output`."""
    path = _read_own(directory / "output", _PATH_BYTES).decode(errors="replace").strip()
    if not path.startswith("/"):
        raise UnreadableError(f"{directory / 'output'} has no path")
    with _opened(Path(path)) as (descriptor, size):
        yield from _read(descriptor, _OUTPUT_BYTES).decode(errors="replace").split("\n")
        if size > _OUTPUT_BYTES:
            os.lseek(descriptor, max(_OUTPUT_BYTES, size - _OUTPUT_BYTES), os.SEEK_SET)
            yield from _read(descriptor, _OUTPUT_BYTES).decode(errors="replace").split("\n")


def _sentence(error: OSError | UnreadableError) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}"
    return str(error)
