"""The records of what an account holds, and the tags by which corral knows its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

BASE_TAG, CLUSTER_TAG, KEEP_TAG = "corral:base", "corral:cluster", "corral:keep"
QUEUE_TAG, OFFER_TAG, NODES_TAG = "corral:queue", "corral:offer", "corral:nodes"


class Kind(StrEnum):
    """What a thing is. Declared in the order in which things can be deleted: users before what they use."""

    INSTANCE = "instance"
    LUSTRE = "lustre file system"
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
    FILES = "files of a cluster"
    HOME = "home file system"
    BUCKET = "bucket"
    KEY = "key"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """Something tagged as corral's. `type` is the service's own word for what it is: `p5.48xlarge`, `Interface`, ..."""

    kind: Kind
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
        """The cluster that it belongs to; None for what is the base's own."""
        return self.tags.get(CLUSTER_TAG)

    @property
    def keep(self) -> str | None:
        """`artefacts`, `home` or `key` for what outlives its stack; None for everything else."""
        return self.tags.get(KEEP_TAG)

    @property
    def name(self) -> str:
        """What people call it."""
        return self.tags.get("Name", self.id)
