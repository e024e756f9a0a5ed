"""How faults in force are shown: a document for programs, a line for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from corral.box.faults.deeds import NOTICES
from corral.box.faults.records import Fault, kind_of

Document = Mapping[str, Any]
_OWN = ("room", "reason", "call", "code", "message")


def documents(faults: Iterable[Fault], instances: Iterable[Any], now: datetime) -> list[Document]:
    """Every fault in force, then the notices that instances have."""
    return [*(document(fault, now) for fault in faults), *_notices(instances, now)]


def document(fault: Fault, now: datetime) -> Document:
    """A fault, with what is left of it. Times are seconds."""
    own = {name: getattr(fault, name) for name in _OWN if hasattr(fault, name)}
    after = getattr(fault, "after", None)
    where = fault.where
    return {
        "kind": kind_of(fault),
        "type": where.type,
        "zone": where.zone,
        "market": where.market,
        "of": where.of,
        "left": fault.left,
        "ends_in_s": _seconds(fault.until, now),
        "settings": own if after is None else {**own, "after_s": after / timedelta(seconds=1)},
    }


def line(shown: Document) -> str:
    """The fault in one line: what, where, and what is left."""
    where = [str(shown[name]) for name in ("of", "type", "zone", "market") if shown[name]]
    own = [f"{name.removesuffix('_s')} {value:g} s" if name.endswith("_s") else f"{name} {value}"
           for name, value in shown["settings"].items() if value is not None]  # fmt: skip
    left = [] if shown["left"] is None else [f"{shown['left']} times yet"]
    ends = [] if shown["ends_in_s"] is None else [f"for another {shown['ends_in_s']} s"]
    return ", ".join([" ".join([shown["kind"], *where]), *own, *left, *ends])


def _notices(instances: Iterable[Any], now: datetime) -> Iterator[Document]:
    for instance in instances:
        for kind, attribute in NOTICES.items():
            if at := getattr(instance, attribute):
                ends = _seconds(at, now) if at > now else None
                places = {"type": None, "zone": None, "market": None, "of": instance.id}
                yield {"kind": kind, **places, "left": None, "ends_in_s": ends, "settings": {}}


def _seconds(until: datetime | None, now: datetime) -> int | None:
    return None if until is None else max(0, round((until - now).total_seconds()))
