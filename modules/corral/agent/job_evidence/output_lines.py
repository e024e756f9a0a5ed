"""The lines of a job's output that say how NCCL communicates, or that memory ran out. Pure.

Each process prints its own: of those that differ in their process alone, one of each node is kept.
"""

import re
from collections.abc import Iterable

from corral.model.printable import printable

MOST_LINES = 96
_LONGEST = 300
_KEPT = re.compile(
    r"NET/OFI Selected [Pp]rovider is|NCCL INFO Using network |NCCL WARN |NET/Plugin ?: ?(?:No plugin|Could not find)"
    r"|CUDA out of memory|OutOfMemoryError|RESOURCE_EXHAUSTED|oom[-_ ]kill"
)
# ip-10-0-0-1:1929:1937 [0] NCCL INFO ...
_OF_A_PROCESS = re.compile(r"(?P<host>[\w.-]+):\d+:\d+ \[\d+\] ")
_GPU = re.compile(r"GPU \d+")


def kept_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """The first 96 such lines, printable and of at most 300 characters."""
    found: dict[tuple[str, str], str] = {}
    for line in lines:
        if len(found) >= MOST_LINES:
            break
        if _KEPT.search(line[: 4 * _LONGEST]):
            process = _OF_A_PROCESS.search(line[: 4 * _LONGEST])
            host, text = (process["host"], line[process.end() :]) if process else ("", line)
            found.setdefault((host, _GPU.sub("GPU", text)[:120]), printable(line.strip(), _LONGEST))
    return tuple(found.values())
