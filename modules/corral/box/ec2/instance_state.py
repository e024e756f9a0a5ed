"""Which instances are machines, and the state transitions that depend on their processes. Hold the cloud's lock.

An instance with a machine is pending until the machine has started, and shutting-down or stopping until its last
process has ended; `machine_supervisor` reports both. In a box without machines transitions are immediate.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from moto.ec2.models import ec2_backends

from corral.box.account import ACCOUNT

# The profiles of the images that machines boot; empty in a box without machines. `machine_supervisor` sets it.
bootable_images: frozenset[str] = frozenset()


def is_backed_by_machine(instance: Any) -> bool:
    """True if the instance is a machine, whose processes decide when it runs and ends."""
    images = ec2_backends[ACCOUNT][instance.region_name]
    return bool(instance.user_data) and images.image_profile(instance.image_id) in bootable_images


def ending_instances() -> frozenset[str]:
    """The ids of the instances that stop or terminate once their processes have ended, without those being cleaned."""
    return frozenset(instance.id for instance in _instances() if instance.is_ending and not instance.cleaned_at)


def shutting_down_instances() -> frozenset[str]:
    """The ids of the instances whose systems AWS shuts down, not of those that a failure ends."""
    return frozenset(instance.id for instance in _instances() if instance.is_ending)


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
