"""What goes wrong on AWS, on request: here, a spot machine that is taken back.

A notice is a document in the machine's metadata; when its time has come, the instance ends, whatever its machine does.
Source: EC2 User Guide, "Spot Instance interruption notices": two minutes before, as `spot/instance-action`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import StateReason

from corral.agent.identity import NODES_TAG, IdentityError, identity_in
from corral.box.cloud import Cloud
from corral.box.control import ACCOUNT
from corral.box.machine_wishes import running_instances

NOTICE = timedelta(minutes=2)
_STEP_S = 0.5


class FaultError(Exception):
    """A fault that cannot be made; its text is a sentence."""


class Faults:
    """The faults of a box. They belong to instances, so they outlive a restart of the box."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def open(self) -> None:
        """From now on lets notices fall due."""
        threading.Thread(target=self._follow, name="faults", daemon=True).start()

    def give_notice(self, which: str, after: timedelta = NOTICE) -> list[str]:
        """The ids of the spot machines that are taken back after this time: a node's, a queue's, or one by its id.

        Raises FaultError where nothing on the spot market is meant.
        """
        with self._cloud.lock:
            chosen = [one for one in _all_running() if one.lifecycle == "spot" and which in _names(one)]
            if not chosen:
                raise FaultError(f"no spot machine that runs is {which!r} - `corral status` lists nodes and instances")
            for instance in chosen:
                instance.interruption = utcnow() + after
            self._cloud.changed()
            return sorted(instance.id for instance in chosen)

    def _follow(self) -> None:
        pause = threading.Event()
        while not pause.wait(_STEP_S):
            with self._cloud.lock:
                due = [one for one in _all_running() if one.interruption and one.interruption <= utcnow()]
                for instance in due:
                    _take_back(instance)
                if due:
                    self._cloud.changed()


def _all_running() -> Iterator[Any]:
    return (one for _, backend in list(ec2_backends[ACCOUNT].items()) for one in running_instances(backend))


def _names(instance: Any) -> set[str]:
    """What the instance can be called: its id, its queue, its node."""
    tags = instance.ec2_backend.tags.get(instance.id, {})
    names = {instance.id, tags.get("corral:queue", "")}
    with contextlib.suppress(IdentityError):  # not launched as a node
        names.add(identity_in(tags.get(NODES_TAG, ""), int(instance.ami_launch_index)).node)
    return names - {""}


def _take_back(instance: Any) -> None:
    instance.ec2_backend.terminate_instances([instance.id])
    code = "Server.SpotInstanceTermination"
    instance.state_reason = StateReason(f"{code}: Instance terminated by the Spot service", code)


def parse_delay(text: str) -> timedelta:
    """`120` or `120s` seconds, `2m` minutes. Raises FaultError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("s", "m") else (text, "s")
    if not number.isdecimal():
        raise FaultError(f"{text!r} is not a time - write 30s or 2m")
    return timedelta(seconds=int(number) * (60 if unit == "m" else 1))
