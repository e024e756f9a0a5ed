"""The plan of a cluster: head, queues, their offers, and its own file systems.

Serialised, this is cluster.json.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from corral.model.accounts import AccountsPlan
from corral.model.containers import ContainersPlan
from corral.model.enums import BalancerScheme, InterfaceType, Market
from corral.model.hooks import HooksPlan
from corral.model.lustre import LustrePlan
from corral.model.monitoring import MonitoringPlan
from corral.model.run_forecast import RunForecastNumbers
from corral.model.users import ADMIN_HOMES, HOMES, AccessPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePlan:
    """An additional apt archive: what follows `deb` in a list of sources, and the URL of its key."""

    line: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePlan:
    """What the machines boot: a fixed image, or the SSM parameter that is resolved once and then pinned.

    `box`: the system of the machine that the box (the local AWS emulator) runs on, whatever the plan says. `packages`:
    versions of the packages to add, by name. `lustre`: the archive of its Lustre client. `ssm_agent`: the URL of the
    package of Systems Manager's agent, with the region and its domain to fill in; empty if the image has the agent.
    """

    profile: str
    image_id: str | None
    parameter: str | None
    system: str
    python: str
    slurm_version: str
    slurm_sbin: str
    default_user: str
    root_device: str
    box: bool = False
    packages: Mapping[str, str] = field(default_factory=dict)
    lustre: ArchivePlan | None = None
    ssm_agent: str = ""


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


LOGIN = "login"  # before the number in the names of login nodes; no queue has this name


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBalancerPlan:
    """What people reach login nodes through without credentials of AWS. `allow`: the networks that they come from.

    `zones`: those that it is in. It reaches login nodes in these alone.
    """

    scheme: BalancerScheme
    allow: tuple[IPv4Network, ...]
    zones: tuple[str, ...]

    @property
    def is_internal(self) -> bool:
        """Whether only the VPC and what is connected to it can address it."""
        return self.scheme is BalancerScheme.INTERNAL


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPlan:
    """The machines that people log in to. `zones`: the zone id of each by its name, `login-1` and so on."""

    instance_type: str
    vcpus: int
    memory_mib: int
    root_gib: int
    zones: Mapping[str, str]
    load_balancer: LoadBalancerPlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPlan:
    """One network interface of an instance, by network card and device index (EC2's NetworkCardIndex, DeviceIndex)."""

    card: int
    device: int
    interface_type: InterfaceType


@dataclass(frozen=True, slots=True, kw_only=True)
class GresPlan:
    """The accelerators of a node as Slurm's generic resource `<name>:<type>:<count>`; the name is gpu or neuron."""

    type: str
    count: int
    name: str = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """A node of a queue as slurm.conf describes it. `real_memory_mib` leaves memory for the system."""

    sockets: int
    cores_per_socket: int
    threads_per_core: int
    real_memory_mib: int
    gres: GresPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferPlan:
    """One pool in one zone: what a single launch uses. `key` is stable and names the launch template.

    `reservation`: the id of the capacity that is launched into. `placement_group`: the key of a group of the cluster's
    own; `reserved_group`: the name of the group that the reservation was made in, which every launch must name.
    """

    key: str
    pool: int
    market: Market
    zone_id: str
    max_price_usd_per_hour: float | None
    placement_group: str | None
    reservation: str | None = None
    reserved_group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """A queue (a Slurm partition): nodes `<name>-[1-max_nodes]`, of which the first `min_nodes` always run.

    `image`: the image of its nodes if not the cluster's. `nvme_mount`: mount point of local disks, None for none.
    `weight`, `accounts`, `extra`: optional settings in slurm.conf. `lustre_efa`: how many EFA interfaces a node uses
    for Lustre file systems with EFA in its zone.
    """

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
    nvme_mount: str | None = None
    image: ImagePlan | None = None
    exclusive: bool = False
    weight: int | None = None
    accounts: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    lustre_efa: int = 0

    @property
    def static_nodes(self) -> tuple[str, ...]:
        """The names of the nodes that always run."""
        return tuple(f"{self.name}-{number}" for number in range(1, self.min_nodes + 1))

    @property
    def node_names(self) -> str:
        """All node names, folded as Slurm writes them: `train-[1-4]`, or `train-1` for one."""
        return f"{self.name}-[1-{self.max_nodes}]" if self.max_nodes > 1 else f"{self.name}-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementGroupPlan:
    """A cluster placement group. It is in one zone, so there is one per queue and zone."""

    key: str
    queue: str
    zone_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimePlan:
    """When the cluster shuts itself down: `ttl_s` after the first deployment, `idle_s` without a job. None: never."""

    ttl_s: int | None
    idle_s: int | None


def image_key(queue: QueuePlan) -> str:
    """Return the key of this queue's image id: `image` if it is the cluster's image."""
    if queue.image is None:
        return "image"
    return f"image-{queue.image.image_id or queue.image.profile}"


def declared_images(plan: "ClusterPlan") -> frozenset[str]:
    """Return the keys of images with a declared id. These follow the spec; the others stay pinned."""
    return frozenset(key for key, image in plan.images.items() if image.image_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPlan:
    """A bucket, or what is below a prefix of it, that jobs may read or also write."""

    s3: str
    write: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryPlan:
    """A repository of images in ECR. `account`: its owner; None for the cluster's account."""

    account: str | None
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerImagePlan:
    """An image in ECR. `account`: its owner; None for the cluster's account. `version`: its tag or its digest."""

    account: str | None
    repository: str
    version: str

    @property
    def is_digest(self) -> bool:
        """True if the version is a digest; a tag has no colon."""
        return ":" in self.version

    def __str__(self) -> str:
        owner = f"{self.account}: " if self.account else ""
        return f"{owner}{self.repository}{'@' if self.is_digest else ':'}{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsPlan:
    """What jobs may use: buckets, repositories, and by variable the names of secrets, never their values.

    `images`: of containers, in these repositories, to be checked before a cluster starts.
    """

    buckets: tuple[BucketPlan, ...] = ()
    registries: tuple[RepositoryPlan, ...] = ()
    images: tuple[ContainerImagePlan, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """All parts of a cluster that are known before anything exists.

    `lustre`: the file systems that machines mount, the cluster's own first, then its base's. `runs`: forecasts of the
    declared training runs.
    """

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
    jobs: JobsPlan = field(default_factory=JobsPlan)
    extra_slurm: Mapping[str, str] = field(default_factory=dict)
    access: AccessPlan = field(default_factory=AccessPlan)
    accounts: AccountsPlan = field(default_factory=AccountsPlan)
    hooks: HooksPlan = field(default_factory=HooksPlan)
    containers: ContainersPlan = field(default_factory=ContainersPlan)
    monitoring: MonitoringPlan = field(default_factory=MonitoringPlan)
    login: LoginPlan | None = None
    runs: tuple[RunForecastNumbers, ...] = ()

    @property
    def gate(self) -> str:
        """The name by which people outside reach the cluster: of its first login node, or of its head."""
        return f"{self.name}-{next(iter(self.login.zones)) if self.login else 'head'}"

    @property
    def host_key_secret(self) -> str:
        """The name of the secret with the host key that all login nodes behind a load balancer show to ssh."""
        return f"corral/{self.name}/login-host-key"

    @property
    def admin_homes(self) -> str:
        """Where administrators have their homes on the head: not on the shared /home if nobody else logs in there."""
        return ADMIN_HOMES if self.login else HOMES

    @property
    def requeues_ended_in_grace(self) -> bool:
        """Whether Slurm, from 24.05 on, requeues a preempted job whose script ends in its grace time (decision 212)."""
        release = tuple(int(part) for part in self.image.slurm_version.split(".")[:2])
        return self.accounts.preempts and release >= (24, 5)

    @property
    def own_lustre(self) -> tuple[LustrePlan, ...]:
        """The file systems that are created and deleted with the cluster."""
        return tuple(system for system in self.lustre if not system.retained)

    @property
    def images(self) -> Mapping[str, ImagePlan]:
        """The images of its machines by key: `image` for the cluster's own."""
        return {"image": self.image, **{image_key(queue): self.image_of(queue) for queue in self.queues}}

    def image_of(self, queue: QueuePlan) -> ImagePlan:
        """What the nodes of this queue boot."""
        return queue.image or self.image

    def lustre_efa(self, queue: QueuePlan, zone_id: str) -> int:
        """How many EFA interfaces a node in this zone uses for Lustre: EFA reaches no other zone."""
        return queue.lustre_efa if any(system.efa and system.zone_id == zone_id for system in self.lustre) else 0

    def queue(self, name: str) -> QueuePlan:
        """The queue of this name. Raises KeyError if the cluster has none."""
        for queue in self.queues:
            if queue.name == name:
                return queue
        raise KeyError(name)
