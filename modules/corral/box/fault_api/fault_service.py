"""The faults of a running box: add, list and clear them, and terminate instances when they are due."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from typing import Any

from moto.core.utils import utcnow

from corral.box.access.policy_evaluator import unsupported_part
from corral.box.api_calls import Call
from corral.box.ec2 import instance_state
from corral.box.fault_api import describe, instance_actions, new_images
from corral.box.faults import api_faults, store
from corral.box.faults.matching import FaultContext
from corral.box.faults.parse import parse_delay, read_fault
from corral.box.faults.records import KINDS, FaultError, MirrorError, ServiceControlPolicy, fault_kind
from corral.box.state.backend import CloudState
from corral.catalog.aws.images import VM_PROFILE

_STEP_S = 0.5
_ALL = "all"
_CLEARED = frozenset({*KINDS, *instance_actions.NOTICES})

log = logging.getLogger(__name__)


class Faults:
    """The faults of a box. They are part of its cloud: a restart keeps them, a reset removes them."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def open(self) -> None:
        """Start the thread that terminates instances when they are due."""
        threading.Thread(target=self._follow, name="faults", daemon=True).start()

    def raise_api_faults(self, call: Call) -> None:
        """Raises ApiError if a fault refuses this call. Hold the cloud's lock."""
        api_faults.raise_api_faults(FaultContext(call=f"{call.service}:{call.action}"), utcnow())

    def end_blocks(self) -> None:
        """Terminate the instances of expired capacity blocks. Hold the cloud's lock."""
        if instance_actions.end_blocks(utcnow()):
            self._cloud.changed()

    def create(self, kind: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """Add a fault or apply an instance action. Returns its document. Raises FaultError."""
        if kind not in (*instance_actions.ACTIONS, *KINDS, new_images.KIND):
            raise FaultError(f"unknown fault {kind!r}")
        with self._cloud.lock:
            made = _create(kind, parameters)
            self._cloud.changed()
        return made

    def clear(self, kind: str) -> int:
        """Clear the faults of this kind and return their number. Raises FaultError if none can be cleared."""
        if kind not in {*_CLEARED, _ALL}:
            raise FaultError(f"{kind!r} cannot be cleared - expected all, {', '.join(sorted(_CLEARED))}")
        kinds = _CLEARED if kind == _ALL else {kind}
        with self._cloud.lock:
            before = len(self.active())
            store.save(fault for fault in store.faults() if fault_kind(fault) not in kinds)
            instance_actions.clear_notices(instance_actions.running(), kinds)
            cleared = before - len(self.active())
            self._cloud.changed()
        if not cleared and kind != _ALL:
            raise FaultError(f"no {kind} is active - `corral box fault list` shows the active faults")
        return cleared

    def active(self) -> list[Mapping[str, Any]]:
        """The active faults: the document of each, and a line of text."""
        with self._cloud.lock:
            shown = describe.fault_documents(store.faults(), instance_actions.running(), utcnow())
        return [{**one, "line": describe.fault_line(one)} for one in shown]

    def _follow(self) -> None:
        pause = threading.Event()
        while not pause.wait(_STEP_S):
            try:
                with self._cloud.lock:
                    if instance_actions.terminate_due(utcnow()):
                        self._cloud.changed()
            except Exception:  # the next step tries again
                log.exception("failed to terminate due instances")


def _create(kind: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
    if kind == new_images.KIND:
        return new_images.publish_images(parameters)
    return _do(kind, parameters) if kind in instance_actions.ACTIONS else _add(kind, parameters)


def _do(kind: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
    find, do, usual = instance_actions.ACTIONS[kind]
    after = parse_delay(parameters["after"]) if "after" in parameters else usual
    chosen = find(parameters.get("target", ""))
    do(chosen, after)
    return {"kind": kind, "instances": [one.id for one in chosen]}


def _add(kind: str, parameters: Mapping[str, str]) -> Mapping[str, Any]:
    now = utcnow()
    fault = read_fault(kind, parameters, now)
    if isinstance(fault, ServiceControlPolicy) and (part := unsupported_part(json.loads(fault.policy))):
        raise FaultError(f"the box does not know {part} in a policy")
    if isinstance(fault, MirrorError) and VM_PROFILE not in instance_state.bootable_images:
        raise FaultError("only virtual machines read a package mirror - stop the box, and start it with --machines vm")
    store.save((*store.faults(), fault))
    shown = describe.fault_document(fault, now)
    return {**shown, "instances": [], "line": describe.fault_line(shown)}
