"""What a user declares for a queue: its machines, how many, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from corral.model.markets import Market
from corral.spec.durations import Duration
from corral.spec.image import ImageSpec
from corral.spec.record import SpecRecord

EBS_LARGEST_GIB = 16384  # the largest gp3 volume
_LARGEST_WEIGHT = 4294967280  # slurm.conf(5), Weight


def _as_text(value: Any) -> Any:
    """Whole numbers as people write them in slurm.conf; everything else as it is."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


SlurmValue = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "integer"]})]


class NodesSpec(SpecRecord):
    """How many nodes a queue has."""

    min: int = Field(default=0, ge=0, description="Nodes that are always there. Default: 0.")
    max: int = Field(ge=1, description="Nodes that the queue grows to at most.")


class PoolSpec(SpecRecord):
    """A source of capacity: a market, in some zones."""

    market: Market = Field(description="How EC2 sells it: spot, on-demand, reservation or capacity-block.")
    zones: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Zones, tried in this order; of a reservation or a capacity block, the one that it is in."
        " Default: all of the base, in its order.",
    )
    ids: tuple[str, ...] = Field(
        default=(),
        description="The ids of the capacity reservations or capacity blocks, tried in this order: cr-...."
        " Needed for these two markets.",
    )
    count: int | None = Field(
        default=None,
        ge=1,
        description="How many instances the reservations or blocks hold together. Default: not known, not checked.",
    )
    placement_group: str | None = Field(
        default=None,
        description="Name of the placement group that the reservations were made in. Default: none.",
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
    efa: Literal["auto", "on", "with-ena", "off"] = Field(
        default="auto",
        description="EFA interfaces: auto where the type has them, on to insist, off for none. They are for EFA alone"
        " and take no address; with-ena insists on such as are ENA, too, with an address each. Default: auto.",
    )
    placement: Literal["auto", "off"] = Field(
        default="auto",
        description="Machines close to each other: auto for a cluster placement group in each zone where the nodes have"
        " EFA, off for none. Default: auto.",
    )
    image: ImageSpec | None = Field(default=None, description="What the nodes boot. Default: the cluster's image.")
    root_gib: int = Field(
        default=200,
        ge=20,
        le=EBS_LARGEST_GIB,
        description="Size of a node's root volume in GiB; a deep learning image takes about 100. Default: 200.",
    )
    nvme: str = Field(
        default="/nvme",
        description="Where the nodes' own NVMe disks are mounted as one, lost with the node; off for nowhere."
        " Default: /nvme.",
    )
    exclusive: bool = Field(
        default=False, description="Whether a job takes whole nodes, whatever it asks for. Default: false."
    )
    time_limit: Duration | None = Field(default=None, description="The longest that a job may run. Default: no limit.")
    weight: int | None = Field(
        default=None,
        ge=1,
        le=_LARGEST_WEIGHT,
        description="Slurm takes nodes of little weight first. Default: Slurm's own, 1.",
    )
    accounts: tuple[str, ...] = Field(
        default=(),
        description="The Slurm accounts that may submit here; they are made, and `sacctmgr add user` puts people into"
        " them. extra: {AllowGroups: ...} goes by Unix groups. Default: everybody.",
    )
    extra: Mapping[str, SlurmValue] = Field(
        default={},
        description="Further keys of the queue's PartitionName line that the image's Slurm knows, such as PriorityTier."
        " Default: none.",
    )
