"""The instances that a cluster's head launched. They are not in Pulumi's state, so `down` terminates them first."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from corral.inventory.ec2_resources import instance_of
from corral.inventory.ending_instances import await_termination
from corral.inventory.resources import AwsResource
from corral.model.tags import CLUSTER_TAG, QUEUE_TAG, has_tag_filter, tag_filter

_BATCH = 1000  # instances a TerminateInstances call, EC2's advice for large clusters
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


def list_compute_instances(
    session: Any, cluster: str, groups: Collection[str] | None = None
) -> tuple[AwsResource, ...]:
    """The instances of this cluster's queues that have not terminated, sorted by id.

    With `groups`, only those in these placement groups.
    """
    filters = [
        tag_filter(CLUSTER_TAG, cluster),
        has_tag_filter(QUEUE_TAG),
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    reservations = [reservation for page in pages for reservation in page["Reservations"]]
    described = (one for reservation in reservations for one in reservation["Instances"])
    found = [instance_of(one) for one in described if groups is None or one["Placement"].get("GroupName") in groups]
    return tuple(sorted(found, key=lambda machine: machine.id))


def terminate_compute_instances(
    session: Any, cluster: str, only: Iterable[AwsResource] | None = None
) -> tuple[AwsResource, ...]:
    """Terminate the cluster's instances, or `only` these; return them once they have terminated.

    Raises TimeoutError, with the ids of those that still exist after 15 minutes.
    """
    ended = list_compute_instances(session, cluster) if only is None else tuple(only)
    ids = [machine.id for machine in ended]
    for first in range(0, len(ids), _BATCH):
        session.client("ec2").terminate_instances(InstanceIds=ids[first : first + _BATCH])
    await_termination(lambda: {machine.id for machine in list_compute_instances(session, cluster)} & {*ids})
    return ended
