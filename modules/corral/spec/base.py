"""What a user declares for a base: the network, the home, the budget."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field

from corral.spec.addresses import Network
from corral.spec.lustre import LustreSpec
from corral.spec.record import SpecRecord

InterfaceEndpoint = Literal[
    "ec2",
    "ec2messages",
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
    Field(description="Tags on everything that this stack makes, beside corral's own. Default: none."),
]


class SubnetSpec(SpecRecord):
    """A private subnet that is there already."""

    zone: str = Field(description="The zone that it is in, as `zones` would name it.")
    id: str = Field(description="Its id: subnet-....")
    cidr: Network = Field(description="Its address range, such as 10.0.32.0/19.")


class AdoptSpec(SpecRecord):
    """A VPC of somebody else's, in which only machines and file systems are made."""

    vpc: str = Field(description="Its id: vpc-....")
    subnets: tuple[SubnetSpec, ...] = Field(
        min_length=1, max_length=6, description="Private subnets with a way out, one a zone; the first is the main one."
    )


class NetworkSpec(SpecRecord):
    """The VPC of a base: a private subnet in each zone, a way out through NAT, S3 without NAT; or an adopted one."""

    cidr: Network = Field(
        default=IPv4Network("10.64.0.0/16"),
        description="The VPC's private address range, /16 to /20; it cannot be changed later. Default: 10.64.0.0/16.",
    )
    zones: tuple[str, ...] = Field(
        default=(),
        max_length=6,
        description="The zones that get a subnet, all by id (use1-az4) or all by name, (us-east-1a), which"
        " is another zone in another account; the first also holds the NAT gateway. Needed unless a VPC is adopted.",
    )
    adopt: AdoptSpec | None = Field(
        default=None, description="A VPC with private subnets that is there already. Default: none, a new one is made."
    )
    interface_endpoints: tuple[InterfaceEndpoint, ...] = Field(
        default=(),
        description="AWS services to reach inside the VPC instead of through NAT; each costs by zone and hour."
        " S3 is always reached directly, at no cost. Default: none.",
    )

    @property
    def zone_names(self) -> tuple[str, ...]:
        """The zones in their order, of new subnets or of adopted ones."""
        return tuple(subnet.zone for subnet in self.adopt.subnets) if self.adopt else self.zones


class HomeSpec(SpecRecord):
    """/home on EFS, shared by all clusters of the base. It is kept when the base goes."""

    throughput: Literal["elastic", "bursting"] = Field(
        default="elastic",
        description="How EFS is throttled and billed: elastic by bytes moved, bursting by bytes stored."
        " Default: elastic.",
    )


class BaseStorageSpec(SpecRecord):
    """File systems that are kept."""

    home: HomeSpec | None = Field(
        default=None, description="/home on EFS; `home: {}` for one as it comes. Default: none."
    )
    lustre: tuple[LustreSpec, ...] = Field(
        default=(), description="FSx for Lustre file systems that are kept; persistent ones. Default: none."
    )


class BudgetSpec(SpecRecord):
    """A monthly budget that mails people. It stops nothing."""

    usd_per_month: int = Field(ge=1, description="The budget in whole US dollars a month.")
    notify: tuple[str, ...] = Field(
        min_length=1,
        max_length=10,  # AWS Budgets: at most 10 mail addresses a notification
        description="Mail addresses that hear of 80 % forecast and 100 % spent, and of trouble in clusters.",
    )


class BaseWishes(SpecRecord):
    """The `corral-base:spec` of stacks/base/Pulumi.<name>.yaml."""

    network: NetworkSpec = Field(description="The VPC and the zones that it spans.")
    storage: BaseStorageSpec = Field(
        default_factory=BaseStorageSpec, description="File systems that are kept. Default: none."
    )
    budget: BudgetSpec | None = Field(
        default=None, description="A monthly budget for all that carries this base's tag."
    )
    tags: Tags = Field(default={})


class BaseSpec(BaseWishes):
    """A base as declared, with its name and region, and the file that errors point to."""

    name: str
    region: str
    file: str
