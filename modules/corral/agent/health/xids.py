"""Xid errors of NVIDIA's driver in the kernel's log, and what each of them means for the machine (`xids.csv`)."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from corral.agent.health.findings import Finding, Kind, note, sick
from corral.agent.health.gpus import short_bus_id

# NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\): (\d+), (.*)")
_RECOVERY = 154  # follows another Xid, and names what the GPU needs: "... to 0x2 (Node Reboot Required)"
_NO_RECOVERY = "(None)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """One error: on which GPU, which number, and what the driver added."""

    bus_id: str
    number: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """A row of the table. `bucket`: NVIDIA's immediate action. `replaces`: the machine is not for jobs any more."""

    number: int
    name: str
    bucket: str
    replaces: bool


def read_xids(text: str) -> tuple[Xid, ...]:
    """The errors in a kernel log since boot, each pair of GPU and number once, in the order they came."""
    found = (_XID.search(line) for line in text.splitlines())
    listed = [Xid(bus_id=short_bus_id(one[1]), number=int(one[2]), said=one[3].strip()) for one in found if one]
    return tuple({(one.bus_id, one.number): one for one in listed}.values())


def judge_xids(xids: Iterable[Xid], names: Mapping[str, str]) -> Iterator[Finding]:
    """What the errors mean. `names`: GPUs by their place on the bus; one that is lost has no other name."""
    table = meanings()
    for xid in xids:
        name = names.get(xid.bus_id, f"GPU at {xid.bus_id}")
        if xid.number == _RECOVERY and not xid.said.endswith(_NO_RECOVERY):
            yield sick(Kind.XID, f"{name}: {xid.said} (Xid {_RECOVERY}): replace the machine")
        elif meaning := table.get(xid.number):
            told = f"{name}: {meaning.name} (Xid {xid.number})"
            yield sick(Kind.XID, f"{told}: replace the machine") if meaning.replaces else note(Kind.XID, told)


@cache
def meanings() -> Mapping[int, Meaning]:
    """The table, by number."""
    text = files(__package__).joinpath("xids.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        int(row["xid"]): Meaning(
            number=int(row["xid"]), name=row["name"], bucket=row["bucket"], replaces=row["action"] == "replace"
        )
        for row in rows
    }
