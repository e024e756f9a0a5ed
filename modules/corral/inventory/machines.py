"""The machines that a cluster's head launched: Pulumi does not know them, so they end before their cluster does."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any

from corral.inventory.ec2 import instance_of
from corral.inventory.things import QUEUE_TAG, Thing

_BATCH = 1000  # instances a TerminateInstances call, EC2's advice for large clusters
_PATIENCE_S = 900  # a p5 takes minutes to shut down; its interfaces hold the security group until then
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0  # a machine of the box is gone at once
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


def launched_machines(session: Any, cluster: str, groups: Collection[str] | None = None) -> tuple[Thing, ...]:
    """The instances that were launched for this cluster's queues and are not gone yet, by their ids.

    With `groups`, only those in these placement groups.
    """
    filters = [
        {"Name": "tag:corral:cluster", "Values": [cluster]},
        {"Name": "tag-key", "Values": [QUEUE_TAG]},
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    reservations = [reservation for page in pages for reservation in page["Reservations"]]
    described = (one for reservation in reservations for one in reservation["Instances"])
    found = [instance_of(one) for one in described if groups is None or one["Placement"].get("GroupName") in groups]
    return tuple(sorted(found, key=lambda machine: machine.id))


def end_machines(session: Any, cluster: str, only: Iterable[Thing] | None = None) -> tuple[Thing, ...]:
    """The machines that were ended, all of the cluster's or `only` these; when it returns they are gone.

    Raises TimeoutError, with their ids, where some are still there after 15 minutes.
    """
    ended = launched_machines(session, cluster) if only is None else tuple(only)
    ids = [machine.id for machine in ended]
    for first in range(0, len(ids), _BATCH):
        session.client("ec2").terminate_instances(InstanceIds=ids[first : first + _BATCH])
    deadline, pause_s = time.monotonic() + _PATIENCE_S, _FIRST_PAUSE_S
    while left := {machine.id for machine in launched_machines(session, cluster)} & {*ids}:
        if time.monotonic() > deadline:
            raise TimeoutError(f"instances that do not end: {', '.join(sorted(left))}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
    return ended
