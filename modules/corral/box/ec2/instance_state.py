"""Which instances are machines, and the state transitions that depend on their processes. Hold the cloud's lock.

An instance with a machine is pending until the machine has started, and shutting-down or stopping until its last
process has ended; `machine_supervisor` reports both. In a box without machines transitions are immediate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from moto.ec2.models import ec2_backends

from corral.box.account import ACCOUNT

machines_enabled = False  # whether the box has machines; set by `machine_supervisor`


def can_be_machine(instance: Any) -> bool:
    """True if the instance is a machine in a box with machines: it has user data and the box's image."""
    images = ec2_backends[ACCOUNT][instance.region_name]
    return bool(instance.user_data) and images.is_box_image(instance.image_id)


def is_backed_by_machine(instance: Any) -> bool:
    """True if the instance's processes decide when it runs and ends."""
    return machines_enabled and can_be_machine(instance)


def ending_instances() -> frozenset[str]:
    """The ids of the instances that stop or terminate once their processes have ended, without those being cleaned."""
    return frozenset(instance.id for instance in _instances() if instance.is_ending and not instance.cleaned_at)


def mark_ended(gone: Collection[str]) -> None:
    """Stop or terminate the ending ones among these."""
    for instance in _instances():
        if instance.id in gone:
            instance.mark_ended()


def finish_transitions() -> None:
    """Finish all transitions at once, for a box without machines that had some."""
    for instance in _instances():
        instance.mark_running()
        instance.mark_ended()


def _instances() -> Iterator[Any]:
    return (one for _, backend in list(ec2_backends[ACCOUNT].items()) for one in backend.all_instances())
