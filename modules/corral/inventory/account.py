"""Everything of corral's in one region of an account, read through boto3 and never changed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import boto3

from corral.inventory.answering import QUICK, watched
from corral.inventory.buckets import files_of_clusters
from corral.inventory.ec2 import read_ec2
from corral.inventory.named import read_aliases, read_budgets
from corral.inventory.tagged import read_file_systems, read_iam, read_tagged, read_zones
from corral.inventory.things import BASE_TAG, Kind, Thing

_ORDER = {kind: number for number, kind in enumerate(Kind)}


class Session:
    """A boto3 session that makes each client once: making one takes longer than most calls."""

    def __init__(self, region: str | None, *, quick: bool) -> None:
        self._quick = quick
        self._boto3 = boto3.Session(region_name=region)
        self._clients: dict[tuple[str, str | None], Any] = {}

    @property
    def region_name(self) -> str:
        """The region that is asked."""
        return self._boto3.region_name

    def client(self, service: str, region_name: str | None = None) -> Any:
        """The client of this service, in the session's region unless another is named."""
        key = (service, region_name)
        if key not in self._clients:
            make: Any = self._boto3.client
            client = make(service, region_name=region_name, config=QUICK if self._quick else None)
            self._clients[key] = watched(client, quick=self._quick)
        return self._clients[key]


def open_session(region: str | None, *, quick: bool = False) -> Session:
    """A session in this region, or in the one that the user's settings name.

    `quick`: for questions alone, which an endpoint that does not answer ends within a minute.
    """
    return Session(region, quick=quick)


def read_things(session: Any) -> tuple[Thing, ...]:
    """Every thing that carries a base's tag, each once, in the order of kinds, then by id."""
    readers = (read_file_systems, read_tagged, read_zones, read_iam, read_budgets, read_aliases)
    found = [*read_ec2(session.client("ec2")), *(thing for read in readers for thing in read(session))]
    bases = [thing for thing in found if thing.kind is Kind.BUCKET and thing.keep is not None]
    return _sorted([*found, *(files for bucket in bases for files in files_of_clusters(session, bucket))])


def read_tagged_with(session: Any, tag: str, value: str) -> tuple[Thing, ...]:
    """What carries this tag with this value, without EC2's things and without what is free."""
    found = [*read_file_systems(session), *read_tagged(session)]
    return _sorted(thing for thing in found if thing.tags.get(tag) == value)


def read_environment_things(session: Any, base: str) -> tuple[Thing, ...]:
    """What makes up this base and its clusters: EC2's things, and everything that costs money by itself."""
    found = [*read_ec2(session.client("ec2")), *read_file_systems(session), *read_tagged(session), *read_zones(session)]
    return _sorted(thing for thing in found if thing.tags.get(BASE_TAG) == base)


def read_end(session: Any, cluster: str) -> datetime | None:
    """When this cluster ends by itself; None where it has no end, or is not up."""
    ssm = session.client("ssm")
    try:
        value = ssm.get_parameter(Name=f"/corral/{cluster}/ends-at")["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        return None
    return datetime.fromisoformat(value)


def read_identity(session: Any) -> str:
    """The ARN of whoever the credentials belong to."""
    return str(session.client("sts").get_caller_identity()["Arn"])


def _sorted(things: Iterable[Thing]) -> tuple[Thing, ...]:
    once = {(thing.kind, thing.id): thing for thing in things}
    return tuple(sorted(once.values(), key=lambda thing: (_ORDER[thing.kind], thing.id)))
