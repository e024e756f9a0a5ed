"""Xid errors of NVIDIA's driver in the kernel log, and what each means for the machine (`xids.csv`).

Users choose parts of other kernel lines, such as options of a mount and names of programs: an Xid counts only where the
kernel's message begins, and nothing of its text goes into a finding but the form that is known.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from corral.agent.health.findings import FindingKind, HealthFinding, sick, warning
from corral.agent.health.gpus import short_bus_id

# NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
_BUS_ID = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?"
_XID = re.compile(rf"NVRM: Xid \((?:PCI:)?({_BUS_ID})\): ([0-9]{{1,4}}), (.*)")
_MOST = 256  # pairs of GPU and number: each is a series in Prometheus, which takes 20,000 of a node
_KERNEL = "kernel"  # journald sets _TRANSPORT itself: what programs send to it has another one
_RECOVERY = 154  # follows another Xid, and names what the GPU needs: "... to 0x2 (Node Reboot Required)"
_NO_RECOVERY = "(None)"
# Drivers name the same action differently: 0x2 is also "OS Reboot".
_ACTION = r"0x[0-9a-f]{1,2} \([A-Za-z0-9 ]{1,30}\)"
_CHANGED = "GPU recovery action changed"
_CHANGE = re.compile(rf"{_CHANGED} from {_ACTION} to {_ACTION}")


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
    """The errors in the kernel's lines of `journalctl --output=json`, each pair of GPU and number once, in their order.

    Of more than 256 pairs the first are read.
    """
    found: dict[tuple[str, int], Xid] = {}
    for message in _kernel_messages(text):
        if one := _XID.match(message):  # `match`: never further on, where the text may be a user's
            xid = Xid(bus_id=short_bus_id(one[1]), number=int(one[2]), message=one[3].strip())
            if len(found) < _MOST or (xid.bus_id, xid.number) in found:
                found[xid.bus_id, xid.number] = xid
    return tuple(found.values())


def evaluate_xids(xids: Iterable[Xid], names: Mapping[str, str]) -> Iterator[HealthFinding]:
    """The findings for the errors. `names`: the GPUs' names by bus id; a lost GPU has none."""
    table = xid_meanings()
    for xid in xids:
        name = names.get(xid.bus_id, f"GPU at {xid.bus_id}")
        if xid.number == _RECOVERY and not xid.message.endswith(_NO_RECOVERY):
            change = xid.message if _CHANGE.fullmatch(xid.message) else _CHANGED
            yield sick(FindingKind.XID, f"{name}: {change} (Xid {_RECOVERY})")
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


def _kernel_messages(text: str) -> Iterator[str]:
    """The messages of the kernel itself; lines that are no entries of the journal are skipped."""
    for line in text.split("\n"):  # JSON escapes a newline in a message, but no other separator of lines
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("_TRANSPORT") == _KERNEL:
            yield _message(entry.get("MESSAGE"))


def _message(value: object) -> str:
    """A message as text. It is a list of bytes if a part is unprintable, as the name of a program may be."""
    if isinstance(value, list) and all(isinstance(one, int) and 0 <= one < 256 for one in value):
        return bytes(value).decode(errors="replace")
    return value if isinstance(value, str) else ""
