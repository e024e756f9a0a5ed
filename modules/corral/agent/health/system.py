"""Parse and evaluate everything but GPUs: Neuron devices, EFA interfaces, disks, mounts, LNet and the clock.

Sources: AWS Neuron documentation, "Neuron LS User Guide"; proc(5), mounts; chronyc(1), tracking; sysfs's class
infiniband (where the EFA driver puts its devices); Lustre manual, `lnetctl net show`.
"""

import json
import re
from collections.abc import Iterable, Iterator

from corral.agent.health.findings import REPLACE, FindingKind, HealthFinding, sick, warning

CLOCK_OFF_S = (
    5.0  # signed requests and munge tolerate minutes; a clock synchronised with EC2's time source is far more exact
)
_DOWN = "1: DOWN"
_OFFSET = re.compile(r"System time\s*: ([0-9.]+) seconds (slow|fast) of NTP time")
_UNSYNCHRONISED = re.compile(r"Leap status\s*: Not synchronised")
_EFA_UP = re.compile(r"nid: \S+@efa\n\s+status: up")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def read_neuron(text: str) -> int:
    """How many devices `neuron-ls --json-output` lists. Raises ValueError for any other text."""
    document = json.loads(text)
    lists = (
        document.values() if isinstance(document, dict) else (document,)
    )  # a list, in some releases within a mapping
    for devices in lists:
        if isinstance(devices, list) and all("neuron_device" in one for one in devices):
            return len(devices)
    raise ValueError(f"no list of devices in {text.strip()[:80]!r}")


def read_efa(text: str) -> tuple[str, ...]:
    """The devices that are up, from lines `NAME STATE` of sysfs's class infiniband."""
    lines = (line.partition(" ") for line in text.splitlines() if line.strip())
    return tuple(name for name, _, state in lines if state.strip() != _DOWN)


def read_disks(text: str) -> tuple[str, ...]:
    """The instance store disks, a device path a line."""
    return tuple(text.split())


def read_mounts(text: str) -> frozenset[str]:
    """The mount points in /proc/mounts."""
    words = (line.split() for line in text.splitlines())
    return frozenset(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), found[1]) for found in words if len(found) > 1)


def read_lnet(text: str) -> int:
    """How many EFA interfaces of LNet are up, by `lnetctl net show`. Raises ValueError for any other text."""
    if not text.startswith("net:"):
        raise ValueError(f"no networks in {text.strip()[:80]!r}")
    return len(_EFA_UP.findall(text))


def read_clock(text: str) -> float | None:
    """How many seconds the clock is fast, by `chronyc tracking`; None if it is not synchronised yet."""
    found = _OFFSET.search(text)
    if found is None or _UNSYNCHRONISED.search(text):
        return None
    return float(found[1]) * (1 if found[2] == "fast" else -1)


def evaluate_neuron(wanted: int, found: int) -> Iterator[HealthFinding]:
    """The finding for missing Neuron devices."""
    if found < wanted:
        yield sick(FindingKind.NEURON_MISSING, f"{found} of {wanted} Neuron devices answer")


def evaluate_efa(wanted: int, found: Iterable[str]) -> Iterator[HealthFinding]:
    """The finding for missing EFA interfaces."""
    up = tuple(found)
    if len(up) < wanted:
        yield sick(FindingKind.EFA_MISSING, f"{len(up)} of {wanted} EFA interfaces are up")


def evaluate_disks(wanted: int, found: Iterable[str]) -> Iterator[HealthFinding]:
    """The finding for missing instance store disks."""
    disks = tuple(found)
    if len(disks) < wanted:
        yield sick(FindingKind.DISK_MISSING, f"{len(disks)} of {wanted} NVMe disks exist")


def evaluate_mounts(wanted: Iterable[str], found: frozenset[str]) -> Iterator[HealthFinding]:
    """The findings for file systems that are not mounted."""
    for path in wanted:
        if path not in found:
            yield sick(FindingKind.MOUNT_MISSING, f"{path} is not mounted", f"{REPLACE}, or check the file system")


def evaluate_lnet(wanted: int, up: int) -> Iterator[HealthFinding]:
    """The warning for Lustre on fewer EFA interfaces: it is slower, but another machine would have the same image."""
    if up < wanted:
        instead = "" if up else "; it uses TCP"
        yield warning(FindingKind.LUSTRE_EFA, f"Lustre uses {up} of {wanted} EFA interfaces{instead}")


def evaluate_scope(text: str) -> Iterator[HealthFinding]:
    """The finding for a slurmd without the cgroup of its jobs: every job fails, and Slurm keeps the node."""
    if not text.strip():
        yield sick(FindingKind.SCOPE_MISSING, "slurmd has lost the cgroup of its jobs", f"{REPLACE}, or restart slurmd")


def evaluate_clock(fast_s: float | None) -> Iterator[HealthFinding]:
    """The finding for a clock that is this many seconds fast; None if not synchronised yet."""
    if fast_s is None:
        yield warning(FindingKind.CLOCK, "the clock is not synchronised yet")
    elif abs(fast_s) > CLOCK_OFF_S:
        way = "fast" if fast_s > 0 else "slow"
        yield sick(FindingKind.CLOCK, f"the clock is {abs(fast_s):.0f} s {way}")
