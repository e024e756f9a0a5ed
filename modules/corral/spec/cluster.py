"""What a user declares for a cluster: head, image, queues with their capacity, Lustre, lifetime."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from corral.model.markets import Market
from corral.spec.addresses import Address
from corral.spec.base import Tags
from corral.spec.durations import Duration
from corral.spec.record import SpecRecord

DataEvent = Literal["NEW", "CHANGED", "DELETED"]
DEFAULT_IMAGE_PROFILE = "ubuntu-24.04-dlami"
_EBS_LARGEST_GIB = 16384  # the largest gp3 volume


class HeadSpec(SpecRecord):
    """The head node, which runs Slurm's controller."""

    instance_type: str = Field(default="m7i.2xlarge", description="EC2 type of the head node. Default: m7i.2xlarge.")
    zone: str | None = Field(default=None, description="Zone id of the head node. Default: the base's first zone.")
    address: Address | None = Field(
        default=None,
        description="The head's private address, which it keeps for life; among the first 64 of its subnet."
        " Default: one that follows from the cluster's name.",
    )
    root_gib: int = Field(
        default=150, ge=20, le=_EBS_LARGEST_GIB, description="Size of the head's root volume in GiB. Default: 150."
    )
    state_gib: int = Field(
        default=50,
        ge=10,
        le=_EBS_LARGEST_GIB,
        description="Size in GiB of the volume with Slurm's state, which outlives the head. Default: 50.",
    )


class ImageSpec(SpecRecord):
    """What the machines boot: a profile of the catalogue, or an image of your own."""

    profile: str = Field(
        default=DEFAULT_IMAGE_PROFILE,
        description=f"Name of an image profile; its newest image is taken once and then kept."
        f" Default: {DEFAULT_IMAGE_PROFILE}.",
    )
    id: str | None = Field(
        default=None,
        description=f"Id of an image of your own, built on the one of {DEFAULT_IMAGE_PROFILE}. Default: none.",
    )


class DataLinkSpec(SpecRecord):
    """A directory of a Lustre file system whose files are objects in S3."""

    path: str = Field(description="Directory inside the file system, such as /data.")
    s3: str = Field(description="What it shows: s3://bucket or s3://bucket/prefix.")
    imports: tuple[DataEvent, ...] = Field(
        default=("NEW", "CHANGED", "DELETED"),
        alias="import",
        description="Changes in S3 that appear in the file system by themselves. Default: all three.",
    )
    exports: tuple[DataEvent, ...] = Field(
        default=(),
        alias="export",
        description="Changes in the file system that go to S3 by themselves. Default: none.",
    )


class LustreSpec(SpecRecord):
    """An FSx for Lustre file system that lives and dies with the cluster."""

    name: str = Field(description="Name of the file system: small letters, digits, hyphens.")
    size_gib: int = Field(ge=1, description="Size in GiB. SCRATCH_2: 1200, 2400, then steps of 2400.")
    deployment: str = Field(default="SCRATCH_2", description="FSx deployment type. Default: SCRATCH_2.")
    mount: str | None = Field(default=None, description="Where machines mount it. Default: /<name>.")
    zone: str | None = Field(
        default=None, description="Zone id; reading it from another zone costs. Default: the head's zone."
    )
    data: tuple[DataLinkSpec, ...] = Field(
        default=(), description="Directories linked to S3, at most 8. Default: none."
    )

    @property
    def mount_point(self) -> str:
        """Where machines mount it."""
        return self.mount or f"/{self.name}"


class ClusterStorageSpec(SpecRecord):
    """File systems that live and die with the cluster."""

    lustre: tuple[LustreSpec, ...] = Field(default=(), description="FSx for Lustre file systems. Default: none.")


class NodesSpec(SpecRecord):
    """How many nodes a queue has."""

    min: int = Field(default=0, ge=0, description="Nodes that are always there. Default: 0.")
    max: int = Field(ge=1, description="Nodes that the queue grows to at most.")


class PoolSpec(SpecRecord):
    """A source of capacity: a market, in some zones."""

    market: Market = Field(description="How EC2 sells it: spot or on-demand.")
    zones: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Zone ids, tried in this order. Default: all of the base, in its order."
    )
    max_price: float | None = Field(
        default=None, gt=0, description="Most to pay for spot, in USD per instance hour. Default: the on-demand price."
    )


class QueueSpec(SpecRecord):
    """What users submit to: a Slurm partition of equal machines. The first queue is the default one."""

    name: str = Field(description="Name of the queue: small letters, digits, hyphens.")
    instance_type: str = Field(description="EC2 type of the nodes, such as p4d.24xlarge.")
    nodes: NodesSpec = Field(description="How many nodes there are: {min: 0, max: 4}.")
    suspend_after: Duration = Field(
        default=timedelta(minutes=10), description="How long a node may idle before it is ended. Default: 10m."
    )
    capacity: tuple[PoolSpec, ...] = Field(
        min_length=1, description="Where nodes come from; the pools are tried in this order."
    )
    efa: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="EFA interfaces: auto where the type has them, on to insist, off for none. Default: auto.",
    )
    time_limit: Duration | None = Field(default=None, description="The longest that a job may run. Default: no limit.")


class LifetimeSpec(SpecRecord):
    """When the cluster ends by itself."""

    ttl: Duration | None = Field(
        default=None, description="How long after its first up the cluster ends. Default: never."
    )
    idle: Duration | None = Field(
        default=None, description="How long without a job until the cluster ends. Default: never."
    )


class ClusterWishes(SpecRecord):
    """The `corral-cluster:spec` of stacks/cluster/Pulumi.<name>.yaml."""

    base: str | None = Field(
        default=None, description="Name of the base that it stands on. Default: the cluster's own name."
    )
    head: HeadSpec = Field(default_factory=HeadSpec, description="The head node.")
    image: ImageSpec = Field(default_factory=ImageSpec, description="What the machines boot.")
    storage: ClusterStorageSpec = Field(
        default_factory=ClusterStorageSpec, description="File systems of the cluster. Default: none."
    )
    queues: tuple[QueueSpec, ...] = Field(min_length=1, description="What users submit to; the first is the default.")
    lifetime: LifetimeSpec = Field(
        default_factory=LifetimeSpec, description="When the cluster ends by itself. Default: never."
    )
    tags: Tags = Field(default={})


class ClusterSpec(ClusterWishes):
    """A cluster as declared, with its name and region, and the file that errors point to."""

    name: str
    region: str
    file: str
    base: str
