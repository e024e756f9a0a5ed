"""NVLinks as `nvidia-smi nvlink --status` prints them: each link with its rate, or inactive."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corral.agent.health.findings import FindingKind, HealthFinding, sick

_GPU = re.compile(r"GPU (\d+):")
_LINK = re.compile(r"\s+Link (\d+): (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLinks:
    """The links of one GPU by number. `down`: those without a rate."""

    index: int
    up: tuple[int, ...]
    down: tuple[int, ...]


def read_links(text: str) -> tuple[GpuLinks, ...]:
    """The links of every GPU that has any."""
    found: list[tuple[int, list[int], list[int]]] = []
    for line in text.splitlines():
        if gpu := _GPU.match(line):
            found.append((int(gpu[1]), [], []))
        elif (link := _LINK.match(line)) and found:
            _, up, down = found[-1]
            (up if link[2].strip().endswith("GB/s") else down).append(int(link[1]))
    return tuple(GpuLinks(index=index, up=tuple(ups), down=tuple(downs)) for index, ups, downs in found if ups or downs)


def evaluate_links(links: Iterable[GpuLinks]) -> Iterator[HealthFinding]:
    """The findings for links that are down while others of the machine are up.

    If all links of all GPUs are down, the machine uses none, as with PCIe GPUs: no finding.
    """
    listed = tuple(links)
    if not any(one.up for one in listed):
        return
    for one in listed:
        if one.down:
            which = ", ".join(str(number) for number in one.down)
            yield sick(FindingKind.NVLINK, f"GPU {one.index}: NVLink {which} is down")
