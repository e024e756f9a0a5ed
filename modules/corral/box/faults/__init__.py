"""What goes wrong on AWS, on request. Here is what the daemon holds; the parts of the room follow one way:

`records` (what a fault is) - `matching` (which one hits, pure) - `book` (where they are kept) - `refusing`,
`launching` (what they make of calls and launches) - `deeds` (what is done to machines) - `names` (what there is to be
named) - `asked`, `listing` (words).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from moto.core.utils import utcnow

from corral.box.calls import Call
from corral.box.cloud import Cloud
from corral.box.faults import book, deeds, listing, refusing
from corral.box.faults.asked import parse_delay, read_fault
from corral.box.faults.matching import Occasion
from corral.box.faults.records import KINDS, FaultError, kind_of

__all__ = ["FaultError", "Faults"]

_STEP_S = 0.5
_ALL = "all"
_CLEARED = frozenset({*KINDS, *deeds.NOTICES})

log = logging.getLogger(__name__)


class Faults:
    """The faults of a box. They belong to its cloud: they outlive a restart, and end with a reset."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def open(self) -> None:
        """From now on what is due happens."""
        threading.Thread(target=self._follow, name="faults", daemon=True).start()

    def judge(self, call: Call) -> None:
        """Raises Refused where a fault refuses this call. Hold the cloud's lock."""
        refusing.judge(Occasion(call=f"{call.service}:{call.action}"), utcnow())

    def end_blocks(self) -> None:
        """Ends what runs in blocks that are over, and lets everybody know. Hold the cloud's lock."""
        if deeds.end_blocks(utcnow()):
            self._cloud.changed()

    def make(self, kind: str, words: Mapping[str, str]) -> Mapping[str, Any]:
        """What came of it: from now on this goes wrong. Raises FaultError."""
        if kind not in deeds.DEEDS and kind not in KINDS:
            raise FaultError(f"there is no fault {kind!r}")
        with self._cloud.lock:
            made = _do(kind, words) if kind in deeds.DEEDS else _add(kind, words)
            self._cloud.changed()
        return made

    def clear(self, kind: str) -> int:
        """How many faults are in force no more. Raises FaultError where none of this kind can be, or was."""
        if kind not in {*_CLEARED, _ALL}:
            raise FaultError(f"{kind!r} cannot be cleared - all can, or {', '.join(sorted(_CLEARED))}")
        kinds = _CLEARED if kind == _ALL else {kind}
        with self._cloud.lock:
            before = len(self.listed())
            book.keep(fault for fault in book.faults() if kind_of(fault) not in kinds)
            deeds.forgive(deeds.running(), kinds)
            cleared = before - len(self.listed())
            self._cloud.changed()
        if not cleared and kind != _ALL:
            raise FaultError(f"no {kind} is in force - `corral box fault list` shows what is")
        return cleared

    def listed(self) -> list[Mapping[str, Any]]:
        """The faults in force, each with what is left of it and a line for people."""
        with self._cloud.lock:
            shown = listing.documents(book.faults(), deeds.running(), utcnow())
        return [{**one, "line": listing.line(one)} for one in shown]

    def _follow(self) -> None:
        pause = threading.Event()
        while not pause.wait(_STEP_S):
            try:
                with self._cloud.lock:
                    if deeds.take_what_is_due(utcnow()):
                        self._cloud.changed()
            except Exception:  # the next step is another chance
                log.exception("what was due did not happen")


def _do(kind: str, words: Mapping[str, str]) -> Mapping[str, Any]:
    find, do, usual = deeds.DEEDS[kind]
    after = parse_delay(words["after"]) if "after" in words else usual
    chosen = find(words.get("of", ""))
    do(chosen, after)
    return {"kind": kind, "instances": [one.id for one in chosen]}


def _add(kind: str, words: Mapping[str, str]) -> Mapping[str, Any]:
    now = utcnow()
    fault = read_fault(kind, words, now)
    book.keep((*book.faults(), fault))
    shown = listing.document(fault, now)
    return {**shown, "instances": [], "line": listing.line(shown)}
