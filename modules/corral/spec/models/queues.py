"""The fields of a queue: instance type, number of nodes, sources of capacity."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from corral.model.enums import Market
from corral.spec.models.base_model import SpecRecord
from corral.spec.models.durations import Duration
from corral.spec.models.image import ImageSpec

EBS_LARGEST_GIB = 16384  # the largest gp3 volume
_LARGEST_WEIGHT = 4294967280  # slurm.conf(5), Weight


def _as_text(value: Any) -> Any:
    """Accept whole numbers, as in slurm.conf, and return them as text; return other values unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


SlurmValue = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "integer"]})]


class NodesSpec(SpecRecord):
    """How many nodes a queue has."""

    min: int = Field(default=0, ge=0, description="Nodes that always run. Default: 0.")
    max: int = Field(ge=1, description="Maximum number of nodes.")


class PoolSpec(SpecRecord):
    """A source of capacity: a market, in some zones."""

    market: Market = Field(description="How EC2 sells it: spot, on-demand, reservation or capacity-block.")
    zones: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Zones, tried in this order; for a reservation or a capacity block, the zone that it is in."
        " Default: all zones of the base, in its order.",
    )
    ids: tuple[str, ...] = Field(
        default=(),
        description="Ids of the capacity reservations or capacity blocks, tried in this order: cr-...."
        " Required for these two markets.",
    )
    count: int | None = Field(
        default=None,
        ge=1,
        description="Total number of instances in the reservations or blocks. Default: unknown, not checked.",
    )
    placement_group: str | None = Field(
        default=None,
        description="Name of the placement group of the reservations. Default: none.",
    )
    max_price: float | None = Field(
        default=None, gt=0, description="Maximum spot price in USD per instance hour. Default: the on-demand price."
    )


class QueueSpec(SpecRecord):
    """A Slurm partition of equal machines. The first queue is the default."""

    name: str = Field(description="Name of the queue: lowercase letters, digits, hyphens.")
    instance_type: str = Field(description="EC2 type of the nodes, such as p4d.24xlarge.")
    nodes: NodesSpec = Field(description="Minimum and maximum number of nodes: {min: 0, max: 4}.")
    suspend_after: Duration = Field(
        default=timedelta(minutes=10), description="Idle time before a node is terminated. Default: 10m."
    )
    capacity: tuple[PoolSpec, ...] = Field(min_length=1, description="Sources of capacity, tried in this order.")
    efa: Literal["auto", "on", "with-ena", "off"] = Field(
        default="auto",
        description="EFA interfaces: auto uses EFA if the type supports it, on requires it, off disables it. These"
        " interfaces are EFA-only and take no address. with-ena requires interfaces that are also ENA, with one address"
        " each. Default: auto.",
    )
    placement: Literal["auto", "off"] = Field(
        default="auto",
        description="Cluster placement groups: auto creates one per zone if the nodes have EFA, off creates none."
        " Default: auto.",
    )
    image: ImageSpec | None = Field(default=None, description="The nodes' image. Default: the cluster's.")
    root_gib: int = Field(
        default=200,
        ge=20,
        le=EBS_LARGEST_GIB,
        description="Size of a node's root volume in GiB; a deep learning image takes about 100. Default: 200.",
    )
    nvme: str = Field(
        default="/nvme",
        description="Mount point of the node's local NVMe disks, joined into one volume; its data is lost with the"
        " node. off leaves them unmounted. Default: /nvme.",
    )
    exclusive: bool = Field(
        default=False, description="Allocate whole nodes to each job, whatever it requests. Default: false."
    )
    time_limit: Duration | None = Field(default=None, description="Maximum run time of a job. Default: no limit.")
    weight: int | None = Field(
        default=None,
        ge=1,
        le=_LARGEST_WEIGHT,
        description="Slurm node weight: Slurm allocates nodes with lower weight first. Default: 1.",
    )
    accounts: tuple[str, ...] = Field(
        default=(),
        description="Slurm accounts that may submit jobs to the queue. corral creates them; add people with"
        " `sacctmgr add user`. To restrict by Unix group instead, use extra: {AllowGroups: ...}. Default: everybody.",
    )
    extra: Mapping[str, SlurmValue] = Field(
        default={},
        description="Additional keys for the queue's PartitionName line that the image's Slurm supports, such as"
        " PriorityTier. Default: none.",
    )
