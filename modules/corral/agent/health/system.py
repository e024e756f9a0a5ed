"""What is no GPU: Neuron devices, EFA interfaces, disks, mounts and the clock, as the system and its tools say.

Sources: AWS Neuron documentation, "Neuron LS User Guide"; proc(5), mounts; chronyc(1), tracking; sysfs's classes
infiniband (where the EFA driver puts its devices) and block.
"""

import json
import re
from collections.abc import Iterable, Iterator

from corral.agent.health.findings import Finding, Kind, note, sick

CLOCK_OFF_S = 5.0  # signed requests and munge bear minutes; a clock that EC2's own time source keeps is off by far less
_DOWN = "1: DOWN"
_EPHEMERAL = "Amazon EC2 NVMe Instance Storage"
_OFFSET = re.compile(r"System time\s*: ([0-9.]+) seconds (slow|fast) of NTP time")
_UNSYNCHRONISED = re.compile(r"Leap status\s*: Not synchronised")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def read_neuron(text: str) -> int:
    """How many devices `neuron-ls --json-output` lists. Raises ValueError for another text."""
    document = json.loads(text)
    lists = (
        document.values() if isinstance(document, dict) else (document,)
    )  # a list, in some releases within a mapping
    for devices in lists:
        if isinstance(devices, list) and all("neuron_device" in one for one in devices):
            return len(devices)
    raise ValueError(f"no list of devices in {text.strip()[:80]!r}")


def read_efa(text: str) -> tuple[str, ...]:
    """The devices that are up, of lines `NAME STATE` of sysfs's class infiniband."""
    lines = (line.partition(" ") for line in text.splitlines() if line.strip())
    return tuple(name for name, _, state in lines if state.strip() != _DOWN)


def read_disks(text: str) -> tuple[str, ...]:
    """The instance's own NVMe disks, of lines `NAME MODEL` of sysfs's class block."""
    lines = (line.partition(" ") for line in text.splitlines())
    return tuple(name for name, _, model in lines if model.strip() == _EPHEMERAL)


def read_mounts(text: str) -> frozenset[str]:
    """Where something is mounted, by /proc/mounts."""
    words = (line.split() for line in text.splitlines())
    return frozenset(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), found[1]) for found in words if len(found) > 1)


def read_clock(text: str) -> float | None:
    """How many seconds the clock is fast, by `chronyc tracking`; None where it is not synchronised yet."""
    found = _OFFSET.search(text)
    if found is None or _UNSYNCHRONISED.search(text):
        return None
    return float(found[1]) * (1 if found[2] == "fast" else -1)


def judge_neuron(wanted: int, found: int) -> Iterator[Finding]:
    """What is wrong with a number of Neuron devices."""
    if found < wanted:
        yield sick(Kind.NEURON_MISSING, f"{found} of {wanted} Neuron devices answer: replace the machine")


def judge_efa(wanted: int, found: Iterable[str]) -> Iterator[Finding]:
    """What is wrong with the EFA interfaces of a node that must have so many."""
    up = tuple(found)
    if len(up) < wanted:
        yield sick(Kind.EFA_MISSING, f"{len(up)} of {wanted} EFA interfaces are there: replace the machine")


def judge_disks(wanted: int, found: Iterable[str]) -> Iterator[Finding]:
    """What is wrong with the own disks of a node that must have so many."""
    there = tuple(found)
    if len(there) < wanted:
        yield sick(Kind.DISK_MISSING, f"{len(there)} of {wanted} NVMe disks are there: replace the machine")


def judge_mounts(wanted: Iterable[str], found: frozenset[str]) -> Iterator[Finding]:
    """Which of the file systems are not mounted."""
    for place in wanted:
        if place not in found:
            yield sick(Kind.MOUNT_MISSING, f"{place} is not mounted: replace the machine, or look at its file system")


def judge_clock(fast_s: float | None) -> Iterator[Finding]:
    """What is wrong with a clock that is so many seconds fast; None: nobody knows yet."""
    if fast_s is None:
        yield note(Kind.CLOCK, "the clock is not synchronised yet")
    elif abs(fast_s) > CLOCK_OFF_S:
        way = "fast" if fast_s > 0 else "slow"
        yield sick(Kind.CLOCK, f"the clock is {abs(fast_s):.0f} s {way}: replace the machine")
