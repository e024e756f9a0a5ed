"""What a user declares for a cluster: head, image, queues with their capacity, Lustre, lifetime."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from corral.spec.addresses import Address
from corral.spec.base import Tags
from corral.spec.durations import Duration
from corral.spec.image import ImageSpec
from corral.spec.lustre import LustreSpec
from corral.spec.queues import EBS_LARGEST_GIB, QueueSpec, SlurmValue
from corral.spec.record import SpecRecord


class HeadSpec(SpecRecord):
    """The head node, which runs Slurm's controller."""

    instance_type: str = Field(default="m7i.2xlarge", description="EC2 type of the head node. Default: m7i.2xlarge.")
    zone: str | None = Field(default=None, description="Zone of the head node. Default: the base's first zone.")
    address: Address | None = Field(
        default=None,
        description="The head's private address, which it keeps for life; among the first 64 of its subnet, or any"
        " free one of an adopted subnet. Default: one that follows from the cluster's name; needed on adopted subnets.",
    )
    root_gib: int = Field(
        default=150, ge=20, le=EBS_LARGEST_GIB, description="Size of the head's root volume in GiB. Default: 150."
    )
    state_gib: int = Field(
        default=50,
        ge=10,
        le=EBS_LARGEST_GIB,
        description="Size in GiB of the volume with Slurm's state, which outlives the head. Default: 50.",
    )


class ClusterStorageSpec(SpecRecord):
    """File systems that live and die with the cluster."""

    lustre: tuple[LustreSpec, ...] = Field(default=(), description="FSx for Lustre file systems. Default: none.")


class LifetimeSpec(SpecRecord):
    """When the cluster ends by itself."""

    ttl: Duration | None = Field(
        default=None, description="How long after its first up the cluster ends, 30m to 183d. Default: never."
    )
    idle: Duration | None = Field(
        default=None, description="How long without a job until the cluster ends. Default: never."
    )


class BucketSpec(SpecRecord):
    """A bucket that jobs may use."""

    s3: str = Field(description="s3://bucket or s3://bucket/prefix.")
    write: bool = Field(default=False, description="Whether jobs may also write and delete there. Default: false.")


class JobsSpec(SpecRecord):
    """What every job may use, beside checkpoints in the base's bucket."""

    buckets: tuple[BucketSpec, ...] = Field(
        default=(),
        description="Buckets that jobs may read or write with their role, in the cluster's region or in us-east-1:"
        " roles are kept from all others. With the secrets they must fit into a role's policy, which holds about 130."
        " Default: none.",
    )
    secrets: Mapping[str, str] = Field(
        default={},
        description="Environment variables of jobs and the names of the secrets in Secrets Manager that hold their"
        " values, such as HF_TOKEN: team/hugging-face. Default: none.",
    )


class SlurmSpec(SpecRecord):
    """What you would add to slurm.conf."""

    extra: Mapping[str, SlurmValue] = Field(
        default={},
        description="Further keys of slurm.conf that the image's Slurm knows, such as MaxJobCount; not those that"
        " corral sets itself.",
    )


class AccessSpec(SpecRecord):
    """Who gets in. Machines have no public address: shells and SSH go through Session Manager."""

    ssh_keys: tuple[str, ...] = Field(
        default=(), description="Public keys for SSH to it as the image's user: ssh-ed25519 AAAA.... Default: none."
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
    jobs: JobsSpec = Field(default_factory=JobsSpec, description="What every job may use. Default: nothing more.")
    slurm: SlurmSpec = Field(default_factory=SlurmSpec, description="Your own lines in slurm.conf. Default: none.")
    access: AccessSpec = Field(default_factory=AccessSpec, description="Who gets in, beside Session Manager.")
    lifetime: LifetimeSpec = Field(
        default_factory=LifetimeSpec, description="When the cluster ends by itself. Default: never."
    )
    usd_per_hour_max: float | None = Field(
        default=None,
        gt=0,
        description="Most US dollars an hour that base, cluster and every node may cost together; `corral plan` and"
        " `corral up` refuse more. Default: no limit.",
    )
    tags: Tags = Field(default={})


class ClusterSpec(ClusterWishes):
    """A cluster as declared, with its name and region, and the file that errors point to."""

    name: str
    region: str
    file: str
    base: str
