"""Describe the active faults: a document for programs, a line of text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from corral.box.fault_api.instance_actions import NOTICES
from corral.box.faults.records import Fault, fault_kind

Document = Mapping[str, Any]
_OWN = ("remaining", "reason", "call", "code", "message", "name", "policy", "region")
_NOT_IN_LINE = "policy"  # a document


def fault_documents(faults: Iterable[Fault], instances: Iterable[Any], now: datetime) -> list[Document]:
    """Every active fault, then the notices that instances have received."""
    return [*(fault_document(fault, now) for fault in faults), *_notices(instances, now)]


def fault_document(fault: Fault, now: datetime) -> Document:
    """A fault and what remains of it. Times are in seconds."""
    own = {name: getattr(fault, name) for name in _OWN if hasattr(fault, name)}
    after = getattr(fault, "after", None)
    scope = fault.scope
    return {
        "kind": fault_kind(fault),
        "type": scope.type,
        "zone": scope.zone,
        "market": scope.market,
        "target": scope.target,
        "hits_left": fault.hits_left,
        "ends_in_s": _seconds(fault.until, now),
        "settings": own if after is None else {**own, "after_s": after / timedelta(seconds=1)},
    }


def fault_line(shown: Document) -> str:
    """The fault in one line: kind, scope, settings, and what remains of it."""
    scope = [str(shown[name]) for name in ("target", "type", "zone", "market") if shown[name]]
    own = [f"{name.removesuffix('_s')} {value:g} s" if name.endswith("_s") else f"{name} {value}"
           for name, value in shown["settings"].items() if value is not None and name != _NOT_IN_LINE]  # fmt: skip
    hits = [] if shown["hits_left"] is None else [f"{shown['hits_left']} more times"]
    ends = [] if shown["ends_in_s"] is None else [f"for another {shown['ends_in_s']} s"]
    return ", ".join([" ".join([shown["kind"], *scope]), *own, *hits, *ends])


def _notices(instances: Iterable[Any], now: datetime) -> Iterator[Document]:
    for instance in instances:
        for kind, attribute in NOTICES.items():
            if at := getattr(instance, attribute):
                ends = _seconds(at, now) if at > now else None
                scope = {"type": None, "zone": None, "market": None, "target": instance.id}
                yield {"kind": kind, **scope, "hits_left": None, "ends_in_s": ends, "settings": {}}


def _seconds(until: datetime | None, now: datetime) -> int | None:
    return None if until is None else max(0, round((until - now).total_seconds()))
