"""Which instances are machines, and what EC2 shows of them that only their processes decide. Hold the cloud's lock.

An instance that is a machine is pending until its machine has started, and is shutting-down or stopping until the last
of its processes has gone; `machines` says when. In a box without machines nothing takes any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from moto.ec2.models import ec2_backends

from corral.box.control import ACCOUNT
from corral.box.ec2_images import BOX_IMAGE, image_id

follow = False  # whether machines follow the cloud; `machines` sets it


def is_machine(instance: Any) -> bool:
    """Whether the instance is a machine wherever a box has machines: it has the one image that this system holds."""
    return bool(instance.user_data) and instance.image_id == image_id(BOX_IMAGE, instance.region_name)


def takes_time(instance: Any) -> bool:
    """Whether processes decide when the instance has begun and ended."""
    return follow and is_machine(instance)


def leaving() -> frozenset[str]:
    """The ids of the instances that end or stop once their processes have gone."""
    return frozenset(instance.id for instance in _instances() if instance.leaves)


def let_go(gone: Collection[str]) -> None:
    """Ends or stops the leaving ones among these."""
    for instance in _instances():
        if instance.id in gone:
            instance.has_gone()


def settle() -> None:
    """For a box without machines that had some: what was coming has come, what was leaving has gone."""
    for instance in _instances():
        instance.has_come()
        instance.has_gone()


def _instances() -> Iterator[Any]:
    return (one for _, backend in list(ec2_backends[ACCOUNT].items()) for one in backend.all_instances())
