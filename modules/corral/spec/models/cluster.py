"""The fields of a cluster: head, image, queues with their capacity, Lustre, lifetime."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from pydantic import Field

from corral.model.containers import ContainerRuntime
from corral.model.enums import BalancerScheme
from corral.spec.models.access import AccessSpec
from corral.spec.models.accounts import AccountSpec, QosSpec
from corral.spec.models.addresses import Address, Network
from corral.spec.models.base import Tags
from corral.spec.models.base_model import SpecRecord
from corral.spec.models.durations import Duration
from corral.spec.models.image import ImageSpec
from corral.spec.models.lustre import LustreSpec
from corral.spec.models.queues import EBS_LARGEST_GIB, QueueSpec
from corral.spec.models.slurm import SlurmSpec


class HeadSpec(SpecRecord):
    """The head node, which runs Slurm's controller."""

    instance_type: str = Field(default="m7i.2xlarge", description="EC2 type of the head node. Default: m7i.2xlarge.")
    zone: str | None = Field(default=None, description="Zone of the head node. Default: the base's first zone.")
    address: Address | None = Field(
        default=None,
        description="The head's private address, kept across replacements: one of the first 64 of its subnet, or any"
        " free address of an adopted subnet. Default: derived from the cluster's name; required in adopted subnets.",
    )
    root_gib: int = Field(
        default=150, ge=20, le=EBS_LARGEST_GIB, description="Size of the head's root volume in GiB. Default: 150."
    )
    state_gib: int = Field(
        default=50,
        ge=10,
        le=EBS_LARGEST_GIB,
        description="Size in GiB of the volume for Slurm's state, which is kept when the head is replaced."
        " Default: 50.",
    )


class LoadBalancerSpec(SpecRecord):
    """A network load balancer: people reach login nodes by ssh alone, without credentials of AWS."""

    allow: tuple[Network, ...] = Field(
        min_length=1,
        max_length=50,
        description="The networks that people come from, such as [203.0.113.0/24]: 1 to 50, none wider than /8.",
    )
    scheme: BalancerScheme = Field(
        default=BalancerScheme.INTERNET_FACING,
        description="internet-facing, or internal for people in the VPC and what is connected to it, such as a VPN."
        " Default: internet-facing.",
    )


class LoginSpec(SpecRecord):
    """Login nodes: people log in there, and the head is left to administrators."""

    instance_type: str = Field(default="c7i.xlarge", description="EC2 type of the login nodes. Default: c7i.xlarge.")
    count: int = Field(default=1, ge=1, le=16, description="Number of login nodes, 1 to 16. Default: 1.")
    zones: tuple[str, ...] = Field(
        default=(), description="Zones of the login nodes, taken in turn. Default: the head's zone."
    )
    root_gib: int = Field(
        default=100, ge=20, le=EBS_LARGEST_GIB, description="Size of a login node's root volume in GiB. Default: 100."
    )
    load_balancer: LoadBalancerSpec | None = Field(
        default=None,
        description="Lets people in by ssh without credentials of AWS. Default: none, they use Session Manager.",
    )


class ClusterStorageSpec(SpecRecord):
    """File systems that are created and deleted with the cluster."""

    lustre: tuple[LustreSpec, ...] = Field(default=(), description="FSx for Lustre file systems. Default: none.")


class LifetimeSpec(SpecRecord):
    """When the cluster shuts itself down."""

    ttl: Duration | None = Field(
        default=None, description="Time from the first deployment to shutdown, 30m to 183d. Default: never."
    )
    idle: Duration | None = Field(default=None, description="Time without a job before shutdown. Default: never.")


class BucketSpec(SpecRecord):
    """A bucket that jobs may access."""

    s3: str = Field(description="s3://bucket or s3://bucket/prefix.")
    write: bool = Field(default=False, description="Also allow jobs to write and delete objects. Default: false.")


class JobsSpec(SpecRecord):
    """What every job may access, in addition to checkpoints in the base's bucket."""

    buckets: tuple[BucketSpec, ...] = Field(
        default=(),
        description="Buckets that jobs may access with their role, in the cluster's region or in us-east-1; the role"
        " has no access to other regions. Buckets, secrets and registries share the role's policy, which holds about"
        " 90 of them. Default: none.",
    )
    registries: tuple[str, ...] = Field(
        default=(),
        description="ECR repositories that jobs may pull images from: team/train, or"
        " ACCOUNT.dkr.ecr.REGION.DOMAIN/team/train in another account, whose repository policy must allow it;"
        " in the cluster's region. Default: none.",
    )
    images: tuple[str, ...] = Field(
        default=(),
        description="Container images in these repositories that jobs use, with a tag or digest, such as"
        " team/train:1. `corral check` looks whether each exists and is for the queues' machines. Default: none.",
    )
    secrets: Mapping[str, str] = Field(
        default={},
        description="Environment variables of jobs, each with the name of the Secrets Manager secret that holds its"
        " value, such as HF_TOKEN: team/hugging-face. Default: none.",
    )
    runs: Mapping[str, str] = Field(
        default={},
        description="Run files by the name of the run, each a path from the project's directory, such as llama3-8b:"
        " runs/llama3-8b.yaml. A job with CORRAL_RUN=llama3-8b is compared with this run's forecast. Default: none.",
    )


class AlertsSpec(SpecRecord):
    """Who gets alerts. Values of secrets are read by the head alone, and are in no file of the deployment."""

    topic: bool = Field(
        default=True,
        description="Send all alerts to the cluster's SNS topic, to which the addresses of the base's `budget.notify`"
        " are subscribed. Default: true.",
    )
    slack: str | None = Field(
        default=None,
        description="Name of the Secrets Manager secret with the URL of an incoming webhook, of Slack or of a chat that"
        " accepts the same, such as Mattermost; it gets all alerts. Default: none.",
    )
    pagerduty: str | None = Field(
        default=None,
        description="Name of the Secrets Manager secret with the integration key of a PagerDuty service (Events API"
        " v2), which gets critical alerts alone. Default: none.",
    )


class RemoteWriteSpec(SpecRecord):
    """Where Prometheus also writes its series: a workspace of Amazon Managed Service for Prometheus."""

    workspace: str | None = Field(
        default=None,
        description="Id of the workspace, ws-..., in the cluster's account and region. Default: that of `url`.",
    )
    url: str | None = Field(
        default=None,
        description="Its remote-write URL, in place of the id; for example that of a VPC endpoint. Default: the public"
        " one.",
    )


class MonitoringSpec(SpecRecord):
    """What watches the cluster."""

    prometheus: bool = Field(
        default=False,
        description="Run Prometheus on the head, with corral's metrics and alerts, from the image's distribution."
        " Default: false.",
    )
    retention: Duration = Field(
        default=timedelta(days=15),
        description="How long Prometheus keeps its data, 1d to 730d, in at most a fifth of `head.state_gib`."
        " Default: 15d.",
    )
    alerts: AlertsSpec | None = Field(
        default=None,
        description="Who gets alerts, by Alertmanager on the head; `alerts: {}` for the topic alone. Default: nobody,"
        " Prometheus shows them.",
    )
    remote_write: RemoteWriteSpec | None = Field(
        default=None,
        description="Where Prometheus also writes its series. Default: nowhere.",
    )


class ClusterSpecInput(SpecRecord):
    """The `corral-cluster:spec` of stacks/cluster/Pulumi.<name>.yaml."""

    base: str | None = Field(default=None, description="Name of the base to run on. Default: the cluster's own name.")
    head: HeadSpec = Field(default_factory=HeadSpec, description="The head node.")
    login: LoginSpec | None = Field(
        default=None,
        description="Machines that people log in to; `login: {}` for one with defaults. Default: none, they use the"
        " head.",
    )
    image: ImageSpec = Field(default_factory=ImageSpec, description="The image that the machines boot.")
    storage: ClusterStorageSpec = Field(
        default_factory=ClusterStorageSpec, description="File systems of the cluster. Default: none."
    )
    queues: tuple[QueueSpec, ...] = Field(min_length=1, description="The Slurm partitions; the first is the default.")
    jobs: JobsSpec = Field(default_factory=JobsSpec, description="What every job may access. Default: nothing more.")
    slurm: SlurmSpec = Field(
        default_factory=SlurmSpec,
        description="Your own lines in slurm.conf, and your own programs that Slurm runs. Default: none.",
    )
    containers: ContainerRuntime = Field(
        default=ContainerRuntime.NONE,
        description="What runs containers of jobs: pyxis, which adds srun --container-image, or none. Default: none.",
    )
    access: AccessSpec = Field(default_factory=AccessSpec, description="People, and keys for SSH.")
    accounts: Mapping[str, AccountSpec] = Field(
        default={}, description="Slurm's accounts by name: teams and projects. Default: none."
    )
    qos: Mapping[str, QosSpec] = Field(
        default={}, description="Qualities of service by name: priority and limits of jobs. Default: none."
    )
    monitoring: MonitoringSpec = Field(
        default_factory=MonitoringSpec, description="What watches the cluster. Default: nothing on the head."
    )
    lifetime: LifetimeSpec = Field(
        default_factory=LifetimeSpec, description="When the cluster shuts itself down. Default: never."
    )
    usd_per_hour_max: float | None = Field(
        default=None,
        gt=0,
        description="Maximum cost of base, cluster and all nodes together, in US dollars per hour; `corral plan` and"
        " `corral up` refuse more. Default: no limit.",
    )
    tags: Tags = Field(default={})


class ClusterSpec(ClusterSpecInput):
    """A declared cluster, with its name, its region and the file that errors refer to."""

    name: str
    region: str
    file: str
    base: str
