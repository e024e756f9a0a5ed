"""The record of an AWS resource of corral's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from corral.model.tags import BASE_TAG, CLUSTER_TAG, KEEP_TAG


class ResourceKind(StrEnum):
    """The kind of a resource, in order of deletion: users before what they use."""

    INSTANCE = "instance"
    LUSTRE = "lustre file system"
    LOAD_BALANCER = "load balancer"
    TARGET_GROUP = "target group"
    NAT_GATEWAY = "NAT gateway"
    ENDPOINT = "VPC endpoint"
    INTERFACE = "network interface"
    VOLUME = "volume"
    ADDRESS = "public address"
    LAUNCH_TEMPLATE = "launch template"
    PLACEMENT_GROUP = "placement group"
    SECURITY_GROUP = "security group"
    SUBNET = "subnet"
    ROUTE_TABLE = "route table"
    INTERNET_GATEWAY = "internet gateway"
    VPC = "VPC"
    DNS_ZONE = "DNS zone"
    ALARM = "alarm"
    TOPIC = "topic"
    LOG_GROUP = "log group"
    PARAMETER = "parameter"
    SECRET = "secret"
    INSTANCE_PROFILE = "instance profile"
    ROLE = "role"
    POLICY = "policy"
    BUDGET = "budget"
    ALIAS = "key alias"
    SIGNING_KEY = "signing key"
    FILES = "files of a cluster"
    HOME = "home file system"
    BUCKET = "bucket"
    KEY = "key"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsResource:
    """A resource with corral's tags. `type`: the service's own type, such as `p5.48xlarge`, `Interface`, ..."""

    kind: ResourceKind
    id: str
    tags: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    size_gib: float | None = None
    type: str | None = None
    market: str | None = None
    zone: str | None = None
    address: str | None = None
    since: datetime | None = None
    launch_index: int | None = None

    @property
    def base(self) -> str | None:
        """The base that it belongs to."""
        return self.tags.get(BASE_TAG)

    @property
    def cluster(self) -> str | None:
        """The cluster that it belongs to; None for a resource of the base."""
        return self.tags.get(CLUSTER_TAG)

    @property
    def keep(self) -> str | None:
        """The value of its keep tag; None if it does not outlive its stack."""
        return self.tags.get(KEEP_TAG)

    @property
    def name(self) -> str:
        """Its Name tag, or its id."""
        return self.tags.get("Name", self.id)
