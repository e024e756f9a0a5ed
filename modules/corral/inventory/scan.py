"""All resources of corral in one region of an account, read through boto3 without changes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Any

import boto3

from corral.inventory.buckets import files_of_clusters
from corral.inventory.ec2_resources import read_ec2
from corral.inventory.endpoint_check import QUICK, watched
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.tagged import read_file_systems, read_iam, read_tagged, read_zones
from corral.inventory.untagged import account_of, read_aliases, read_budgets
from corral.model.bucket_owner import expect_owner
from corral.model.tags import BASE_TAG

_ORDER = {kind: number for number, kind in enumerate(ResourceKind)}


class Session:
    """A boto3 session that creates each client once: creating one takes longer than most calls.

    Its S3 client reaches buckets of the session's account alone.
    """

    def __init__(self, region: str | None, *, quick: bool) -> None:
        self._quick = quick
        self._boto3 = boto3.Session(region_name=region)
        self._clients: dict[tuple[str, str | None], Any] = {}

    @property
    def region_name(self) -> str:
        """The session's region."""
        return self._boto3.region_name

    @cached_property
    def _account(self) -> str:
        return account_of(self)

    def client(self, service: str, region_name: str | None = None) -> Any:
        """The client of this service; region defaults to the session's."""
        key = (service, region_name)
        if key not in self._clients:
            make: Any = self._boto3.client
            client = watched(
                make(service, region_name=region_name, config=QUICK if self._quick else None), quick=self._quick
            )
            if service == "s3":
                expect_owner(client, lambda: self._account)
            self._clients[key] = client
        return self._clients[key]


def open_session(region: str | None, *, quick: bool = False) -> Session:
    """A session in this region, or in that of the user's settings.

    `quick`: for reads only; gives up within a minute if the endpoint does not answer.
    """
    return Session(region, quick=quick)


def read_resources(session: Any) -> tuple[AwsResource, ...]:
    """Every resource with a base's tag, once, sorted by kind and id."""
    readers = (read_file_systems, read_tagged, read_zones, read_iam, read_budgets, read_aliases)
    found = [*read_ec2(session.client("ec2")), *(resource for read in readers for resource in read(session))]
    bases = [resource for resource in found if resource.kind is ResourceKind.BUCKET and resource.keep is not None]
    return _sorted([*found, *(files for bucket in bases for files in files_of_clusters(session, bucket))])


def read_tagged_with(session: Any, tag: str, value: str) -> tuple[AwsResource, ...]:
    """The resources with this value of the tag, except EC2's and free ones."""
    found = [*read_file_systems(session), *read_tagged(session)]
    return _sorted(resource for resource in found if resource.tags.get(tag) == value)


def read_environment_resources(session: Any, base: str) -> tuple[AwsResource, ...]:
    """The resources of this base and its clusters that cost money, and all of EC2's."""
    found = [*read_ec2(session.client("ec2")), *read_file_systems(session), *read_tagged(session), *read_zones(session)]
    return _sorted(resource for resource in found if resource.tags.get(BASE_TAG) == base)


def read_expiry(session: Any, cluster: str) -> datetime | None:
    """When this cluster's lifetime ends; None if it has no limit or is not up."""
    ssm = session.client("ssm")
    try:
        value = ssm.get_parameter(Name=f"/corral/{cluster}/ends-at")["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        return None
    return datetime.fromisoformat(value)


def caller_arn(session: Any) -> str:
    """The ARN of the caller."""
    return str(session.client("sts").get_caller_identity()["Arn"])


def _sorted(resources: Iterable[AwsResource]) -> tuple[AwsResource, ...]:
    once = {(resource.kind, resource.id): resource for resource in resources}
    return tuple(sorted(once.values(), key=lambda resource: (_ORDER[resource.kind], resource.id)))
