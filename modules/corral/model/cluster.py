"""The plan of a cluster: head, queues, their offers, and the file systems that live with it.

Serialised, this is cluster.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from corral.model.markets import InterfaceType, Market


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePlan:
    """What the machines boot: a fixed image, or the SSM parameter that is resolved once and then pinned."""

    profile: str
    image_id: str | None
    parameter: str | None
    system: str
    python: str
    slurm_version: str
    slurm_sbin: str
    default_user: str
    root_device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadPlan:
    """The machine that runs slurmctld. Its address and its state volume outlive it."""

    host_name: str
    zone_id: str
    instance_type: str
    vcpus: int
    memory_mib: int
    address: IPv4Address
    root_gib: int
    state_gib: int
    state_device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPlan:
    """One network interface of an instance, by network card and device index (EC2's NetworkCardIndex, DeviceIndex)."""

    card: int
    device: int
    interface_type: InterfaceType


@dataclass(frozen=True, slots=True, kw_only=True)
class GresPlan:
    """The accelerators of a node as Slurm's generic resource `gpu:<type>:<count>`."""

    type: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """A node of a queue as slurm.conf describes it. `real_memory_mib` leaves room for the system."""

    sockets: int
    cores_per_socket: int
    threads_per_core: int
    real_memory_mib: int
    gres: GresPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPlan:
    """One pool in one zone: what a single launch uses. `key` is stable and names the launch template."""

    key: str
    pool: int
    market: Market
    zone_id: str
    max_price_usd_per_hour: float | None
    placement_group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """A queue (a Slurm partition): nodes `<name>-[1-max_nodes]`, of which the first `min_nodes` never go away."""

    name: str
    instance_type: str
    min_nodes: int
    max_nodes: int
    suspend_after_s: int
    time_limit_s: int | None
    is_default: bool
    efa: bool
    nics: tuple[NicPlan, ...]
    node: NodePlan
    nvme_count: int
    root_gib: int
    offers: tuple[OfferPlan, ...]

    @property
    def node_names(self) -> str:
        """All node names, folded as Slurm writes them: `train-[1-4]`, or `train-1` for one."""
        return f"{self.name}-[1-{self.max_nodes}]" if self.max_nodes > 1 else f"{self.name}-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementGroupPlan:
    """A cluster placement group; it lives in one zone, so there is one per queue and zone."""

    key: str
    queue: str
    zone_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLinkPlan:
    """A data repository association: files below `path` of the file system are objects below `s3`."""

    path: str
    s3: str
    imports: tuple[str, ...]
    exports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LustrePlan:
    """An FSx for Lustre file system that lives and dies with the cluster."""

    name: str
    zone_id: str
    size_gib: int
    deployment: str
    mount: str
    data: tuple[DataLinkPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimePlan:
    """When the cluster ends by itself: `ttl_s` after the first up, `idle_s` without a job. None: never."""

    ttl_s: int | None
    idle_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Everything that a cluster consists of and that is known before anything exists."""

    name: str
    base: str
    region: str
    dns_zone: str
    prefix: str
    image: ImagePlan
    head: HeadPlan
    queues: tuple[QueuePlan, ...]
    placement_groups: tuple[PlacementGroupPlan, ...]
    lustre: tuple[LustrePlan, ...]
    home: bool
    lifetime: LifetimePlan
    notify: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)

    def queue(self, name: str) -> QueuePlan:
        """The queue of this name. Raises KeyError where the cluster has none."""
        for queue in self.queues:
            if queue.name == name:
                return queue
        raise KeyError(name)
