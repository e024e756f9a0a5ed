"""Xid errors of NVIDIA's driver in the kernel log, and what each means for the machine (`xids.csv`)."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from corral.agent.health.findings import FindingKind, HealthFinding, sick, warning
from corral.agent.health.gpus import short_bus_id

# NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+), (.*)")
_RECOVERY = 154  # follows another Xid, and names what the GPU needs: "... to 0x2 (Node Reboot Required)"
_NO_RECOVERY = "(None)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One error: the GPU, the Xid number and the driver's message."""

    bus_id: str
    number: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class XidMeaning:
    """A row of the table. `bucket`: NVIDIA's immediate action. `replaces`: the machine must be replaced."""

    number: int
    name: str
    bucket: str
    replaces: bool


def read_xids(text: str) -> tuple[Xid, ...]:
    """The errors in a kernel log since boot, each pair of GPU and number once, in their order."""
    found = (_XID.search(line) for line in text.splitlines())
    listed = [Xid(bus_id=short_bus_id(one[1]), number=int(one[2]), message=one[3].strip()) for one in found if one]
    return tuple({(one.bus_id, one.number): one for one in listed}.values())


def evaluate_xids(xids: Iterable[Xid], names: Mapping[str, str]) -> Iterator[HealthFinding]:
    """The findings for the errors. `names`: the GPUs' names by bus id; a lost GPU has none."""
    table = xid_meanings()
    for xid in xids:
        name = names.get(xid.bus_id, f"GPU at {xid.bus_id}")
        if xid.number == _RECOVERY and not xid.message.endswith(_NO_RECOVERY):
            yield sick(FindingKind.XID, f"{name}: {xid.message} (Xid {_RECOVERY})")
        elif meaning := table.get(xid.number):
            message = f"{name}: {meaning.name} (Xid {xid.number})"
            yield sick(FindingKind.XID, message) if meaning.replaces else warning(FindingKind.XID, message)


@cache
def xid_meanings() -> Mapping[int, XidMeaning]:
    """The table, by number."""
    text = files(__package__).joinpath("xids.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        int(row["xid"]): XidMeaning(
            number=int(row["xid"]), name=row["name"], bucket=row["bucket"], replaces=row["action"] == "replace"
        )
        for row in rows
    }
