"""The fields of a base: network, home, budget."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from corral.spec.models.addresses import Network
from corral.spec.models.base_model import SpecRecord
from corral.spec.models.lustre import LustreSpec

InterfaceEndpoint = Literal[
    "ec2",
    "ec2messages",
    "ecr.api",
    "ecr.dkr",
    "elasticfilesystem",
    "fsx",
    "kms",
    "logs",
    "monitoring",
    "secretsmanager",
    "sns",
    "ssm",
    "ssmmessages",
    "sts",
]
Tags = Annotated[
    Mapping[str, str],
    Field(description="Tags on every resource of this stack, in addition to corral's own. Default: none."),
]


class SubnetSpec(SpecRecord):
    """An existing private subnet."""

    zone: str = Field(description="Its zone, named as in `zones`.")
    id: str = Field(description="Its id: subnet-....")
    cidr: Network = Field(description="Its address range, such as 10.0.32.0/19.")


class AdoptSpec(SpecRecord):
    """An existing VPC. corral creates only machines and file systems in it."""

    vpc: str = Field(description="Its id: vpc-....")
    subnets: tuple[SubnetSpec, ...] = Field(
        min_length=1,
        max_length=6,
        description="Private subnets with internet access, one per zone; the first is the main one.",
    )


class NetworkSpec(SpecRecord):
    """The VPC of a base: a private subnet per zone, internet access through NAT, S3 without NAT; or an existing VPC."""

    cidr: Network = Field(
        default=IPv4Network("10.64.0.0/16"),
        description="The VPC's private address range, /16 to /20; it cannot change later. Default: 10.64.0.0/16.",
    )
    zones: tuple[str, ...] = Field(
        default=(),
        max_length=6,
        description="Zones that get a subnet: all by id (use1-az4) or all by name (us-east-1a). A name can mean"
        " different zones in different accounts. The first zone also holds the NAT gateway. Required unless a VPC is"
        " adopted.",
    )
    adopt: AdoptSpec | None = Field(
        default=None, description="An existing VPC with private subnets. Default: create a new VPC."
    )
    interface_endpoints: tuple[InterfaceEndpoint, ...] = Field(
        default=(),
        description="AWS services to reach inside the VPC instead of through NAT; AWS charges each per zone and hour."
        " S3 always has a gateway endpoint, at no cost. Default: none.",
    )

    @property
    def zone_names(self) -> tuple[str, ...]:
        """The zones of the new or adopted subnets, in declared order."""
        return tuple(subnet.zone for subnet in self.adopt.subnets) if self.adopt else self.zones


class HomeSpec(SpecRecord):
    """/home on EFS, shared by all clusters of the base. It is retained when the base is deleted."""

    throughput: Literal["elastic", "bursting"] = Field(
        default="elastic",
        description="EFS throughput mode: elastic is billed by bytes transferred, bursting limits throughput by bytes"
        " stored. Default: elastic.",
    )


class BaseStorageSpec(SpecRecord):
    """File systems that are retained when clusters and the base are deleted."""

    home: HomeSpec | None = Field(
        default=None, description="/home on EFS; `home: {}` for one with defaults. Default: none."
    )
    lustre: tuple[LustreSpec, ...] = Field(
        default=(), description="FSx for Lustre file systems to retain; persistent deployments only. Default: none."
    )


class BudgetSpec(SpecRecord):
    """A monthly budget that sends email. It does not stop anything."""

    usd_per_month: int = Field(ge=1, description="The budget in whole US dollars a month.")
    notify: tuple[str, ...] = Field(
        min_length=1,
        max_length=10,  # AWS Budgets: at most 10 email addresses a notification
        description="Email addresses to notify at 80 % forecast and 100 % spent, and about problems in clusters.",
    )


class BaseSpecInput(SpecRecord):
    """The `corral-base:spec` of stacks/base/Pulumi.<name>.yaml."""

    network: NetworkSpec = Field(description="The VPC and the zones that it spans.")
    storage: BaseStorageSpec = Field(
        default_factory=BaseStorageSpec, description="File systems to retain. Default: none."
    )
    budget: BudgetSpec | None = Field(
        default=None, description="A monthly budget for everything with this base's tag. Default: none."
    )
    tags: Tags = Field(default={})


class BaseSpec(BaseSpecInput):
    """A declared base, with its name, its region and the file that errors refer to."""

    name: str
    region: str
    file: str
