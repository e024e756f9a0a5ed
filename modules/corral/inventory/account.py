"""Everything of corral's in one region of an account, read through boto3 and never changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import boto3

from corral.inventory.ec2 import read_ec2, read_instances
from corral.inventory.tagged import read_file_systems, read_iam, read_tagged
from corral.inventory.things import CLUSTER_TAG, Kind, Thing


def open_session(region: str | None) -> Any:
    """A boto3 session in this region, or in the one that the user's settings name."""
    return boto3.Session(region_name=region)


def read_things(session: Any) -> tuple[Thing, ...]:
    """Every thing that carries a base's tag, each once, in the order of kinds, then by id."""
    found = [*read_ec2(session.client("ec2")), *read_file_systems(session), *read_tagged(session), *read_iam(session)]
    order = {kind: number for number, kind in enumerate(Kind)}
    once = {(thing.kind, thing.id): thing for thing in found}
    return tuple(sorted(once.values(), key=lambda thing: (order[thing.kind], thing.id)))


def read_cluster_instances(session: Any, cluster: str) -> tuple[Thing, ...]:
    """The instances of this cluster, its head among them."""
    return read_instances(session.client("ec2"), CLUSTER_TAG, cluster)


def read_end(session: Any, cluster: str) -> datetime | None:
    """When this cluster ends by itself; None where it has no end, or is not up."""
    ssm = session.client("ssm")
    try:
        value = ssm.get_parameter(Name=f"/corral/{cluster}/ends-at")["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        return None
    return datetime.fromisoformat(value)
