"""The lines of a job's output that say how NCCL communicates, or that memory ran out. Pure.

Each process prints its own: of those that differ in their process alone, one of each node is kept. All runs of a job
append to one output: what is before the newest run's first line is of machines that the job may have left.
"""

import re
from collections.abc import Iterable

from corral.model.printable import printable

MOST_LINES = 96
_LONGEST = 300
_KEPT = re.compile(
    r"NET/OFI Selected [Pp]rovider is|NCCL INFO Using network |NCCL WARN |NET/Plugin ?: ?(?:No plugin|Could not find)"
    r"|via NET/Socket|NET/Socket ?: ?Using |CUDA (?:error: )?out of memory|MemoryError|RESOURCE_EXHAUSTED"
    r"|Cuda failure (?:\d+ )?'out of memory'|DataLoader worker .* is killed by signal|oom[-_ ]kill"
    r"|[Ee]xceeded (?:job |step )?memory limit|DefaultCPUAllocator: (?:can't|not enough)"
)
_NEW_RUN = re.compile(r"corral: job [0-9_]+, run \d+, first node ")  # templates/jobs/checkpoints.j2
# ip-10-0-0-1:1929:1937 [0] NCCL INFO ...
_OF_A_PROCESS = re.compile(r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] ")
_VARIES = (re.compile(r"GPU \d+"), "GPU"), (re.compile(r"Channel .* via "), "")


def kept_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The first 96 such lines of the newest run, printable and of at most 300 characters."""
    found: dict[tuple[str, str], str] = {}
    for line in lines:
        if _NEW_RUN.match(line):
            found.clear()
        if len(found) < MOST_LINES and _KEPT.search(line[: 4 * _LONGEST]):
            process = _OF_A_PROCESS.search(line[: 4 * _LONGEST])
            host, text = (process["host"], line[process.end() :]) if process else ("", line)
            for pattern, same in _VARIES:
                text = pattern.sub(same, text[:_LONGEST])
            found.setdefault((host, text[:120]), printable(line.strip(), _LONGEST))
    return tuple(found.values())
