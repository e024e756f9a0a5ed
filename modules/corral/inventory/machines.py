"""The machines that a cluster's head launched: Pulumi does not know them, so they end before their cluster does."""

from __future__ import annotations

import time
from typing import Any

_BATCH = 1000  # instances a TerminateInstances call, EC2's advice for large clusters
_PATIENCE_S = 900  # a p5 takes minutes to shut down; its interfaces hold the security group until then
_PAUSE_S = 5.0
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


def launched_machines(session: Any, cluster: str) -> tuple[str, ...]:
    """The ids of the instances that were launched for this cluster's queues and are not gone yet, sorted."""
    filters = [
        {"Name": "tag:corral:cluster", "Values": [cluster]},
        {"Name": "tag-key", "Values": ["corral:queue"]},
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    reservations = [reservation for page in pages for reservation in page["Reservations"]]
    return tuple(sorted(one["InstanceId"] for reservation in reservations for one in reservation["Instances"]))


def end_machines(session: Any, cluster: str) -> tuple[str, ...]:
    """The ids of the machines that were ended; when it returns they are gone.

    Raises TimeoutError, with their ids, where some are still there after 15 minutes.
    """
    ended = launched_machines(session, cluster)
    for first in range(0, len(ended), _BATCH):
        session.client("ec2").terminate_instances(InstanceIds=list(ended[first : first + _BATCH]))
    deadline = time.monotonic() + _PATIENCE_S
    while left := launched_machines(session, cluster):
        if time.monotonic() > deadline:
            raise TimeoutError(f"instances that do not end: {', '.join(left)}")
        time.sleep(_PAUSE_S)
    return ended
