"""Plan a cluster from its spec and its base's plan."""

from collections.abc import Iterator
from datetime import timedelta

from corral.catalog.aws.images import find_image_profile
from corral.catalog.aws.instance_types import Accelerator, InstanceType, Vendor
from corral.catalog.container_sources import container_sources
from corral.catalog.project_catalog import Catalog, shipped_catalog
from corral.model.base import BasePlan
from corral.model.cluster import (
    ArchivePlan,
    BucketPlan,
    ClusterPlan,
    ContainerImagePlan,
    GresPlan,
    ImagePlan,
    JobsPlan,
    LifetimePlan,
    NodePlan,
    QueuePlan,
    RepositoryPlan,
)
from corral.model.containers import ContainerRuntime, ContainersPlan
from corral.model.hooks import HooksPlan
from corral.model.monitoring import AlertReceivers, MonitoringPlan, RemoteWritePlan
from corral.model.tags import cluster_tags
from corral.model.urls import parse_image, parse_remote_write, parse_repository, remote_write_url
from corral.plan.accounts import check_accounts, plan_accounts
from corral.plan.file_systems import plan_lustre
from corral.plan.head import check_head_address, plan_head
from corral.plan.iam.role_arns import check_job_role
from corral.plan.login import plan_login
from corral.plan.lustre_efa import lustre_efa_interfaces
from corral.plan.network_interfaces import plan_nics
from corral.plan.offers import plan_offers, plan_placement_groups
from corral.plan.static_node_check import check_static_nodes
from corral.plan.users import plan_access
from corral.spec.models.cluster import ClusterSpec, JobsSpec, LifetimeSpec, RemoteWriteSpec
from corral.spec.models.image import ImageSpec
from corral.spec.models.queues import QueueSpec
from corral.spec.models.slurm import SlurmSpec
from corral.spec.spec_errors import SpecErrors

# Of EC2's memory figure, kernel and firmware keep a part that slurmd cannot see: about 3 % of a large machine, up to
# 11 % of one with 4 GiB. Source: measured capacities of EC2's types, in aws/karpenter-provider-aws,
# pkg/providers/instancetype/zz_generated.memory_overhead.go at 15e8769.
_SYSTEM_SHARE = 0.05
_SMALL_SYSTEM_SHARE = 0.04
_SMALL_SYSTEM_MIB = 320  # with the smaller share it exceeds 5 % below 32,000 MiB
_METRICS_SHARE = 5  # of the state volume; the rest is for Slurm's state, whose loss would lose jobs


def plan_cluster(
    spec: ClusterSpec, base: BasePlan, *, catalog: Catalog | None = None, image_profile: str | None = None
) -> ClusterPlan:
    """Plan this cluster. `image_profile` replaces every declared image, as in the box.

    `catalog`: the project's, None for the shipped one.
    Raises SpecErrors for mistakes that depend on the base: a head address outside the reserved range, static nodes that
    do not fit into the subnets; and for more buckets and secrets than a role's policy can hold.
    """
    known = catalog or shipped_catalog()
    zone = base.zone(spec.head.zone or base.zones[0].zone_id)
    errors = check_head_address(spec.head, zone, file=spec.file)
    if errors:
        raise SpecErrors(errors)
    queues = tuple(
        _queue(queue, base, known, image_profile, is_default=number == 0) for number, queue in enumerate(spec.queues)
    )
    plan = ClusterPlan(
        name=spec.name,
        base=base.name,
        region=base.region,
        dns_zone=f"{spec.name}.corral.internal",
        prefix=f"clusters/{spec.name}",
        image=plan_image(spec.image, image_profile),
        head=plan_head(spec.head, spec.name, zone, known),
        queues=queues,
        placement_groups=tuple(g for queue in queues for g in plan_placement_groups(queue.name, queue.offers)),
        lustre=(*plan_lustre(spec.storage.lustre, zone.zone_id, retained=False), *base.lustre),
        home=base.home is not None,
        lifetime=_lifetime(spec.lifetime),
        notify=base.budget.notify if base.budget else (),
        tags=cluster_tags(spec.tags, base.name, spec.name),
        jobs=_jobs(spec.jobs),
        extra_slurm=dict(sorted(spec.slurm.extra.items())),
        access=plan_access(spec.access),
        accounts=plan_accounts(spec),
        hooks=_hooks(spec.slurm),
        containers=plan_containers(spec.containers),
        monitoring=_monitoring(spec, base),
        login=plan_login(spec.login, base, zone.zone_id, known) if spec.login else None,
    )
    if errors := (
        *check_static_nodes(spec, plan, base),
        *check_job_role(plan, file=spec.file),
        *check_accounts(plan, file=spec.file),
    ):
        raise SpecErrors(errors)
    return plan


def _hooks(slurm: SlurmSpec) -> HooksPlan:
    return HooksPlan(
        prolog=slurm.prolog or "",
        epilog=slurm.epilog or "",
        prolog_slurmctld=slurm.prolog_slurmctld or "",
        epilog_slurmctld=slurm.epilog_slurmctld or "",
        job_submit=slurm.job_submit or "",
        plugstack=slurm.plugstack,
    )


def _monitoring(spec: ClusterSpec, base: BasePlan) -> MonitoringPlan:
    if not spec.monitoring.prometheus:
        return MonitoringPlan()
    alerts = spec.monitoring.alerts
    return MonitoringPlan(
        prometheus=True,
        retention_s=_seconds(spec.monitoring.retention),
        retention_gib=spec.head.state_gib // _METRICS_SHARE,
        budget_usd_per_month=base.budget.usd_per_month if base.budget else None,
        alerts=AlertReceivers(topic=alerts.topic, slack=alerts.slack, pagerduty=alerts.pagerduty) if alerts else None,
        remote_write=_remote_write(spec.monitoring.remote_write, base.region),
    )


def _remote_write(spec: RemoteWriteSpec | None, region: str) -> RemoteWritePlan | None:
    if spec is None:
        return None
    if spec.url and (found := parse_remote_write(spec.url)):
        return RemoteWritePlan(workspace=found.workspace, url=spec.url)
    workspace = spec.workspace or ""
    return RemoteWritePlan(workspace=workspace, url=remote_write_url(workspace, region))


def plan_containers(runtime: ContainerRuntime) -> ContainersPlan:
    """Return what runs containers, with the catalogue's sources."""
    sources = container_sources().get(runtime, ())
    return ContainersPlan(runtime=runtime, sources=tuple(one.plan for one in sources))


def plan_image(spec: ImageSpec, override: str | None) -> ImagePlan:
    """Return the declared image, or that of the overriding profile. A user's image id stays unchanged.

    The profile describes the image's content, except a declared Slurm release.
    """
    profile = find_image_profile(override or spec.profile)
    own = None if override else spec.id
    return ImagePlan(
        profile=profile.name,
        image_id=own,
        parameter=None if own else profile.image_parameter,
        system=profile.system,
        python=profile.python,
        slurm_version=spec.slurm if own and spec.slurm else profile.slurm_version,
        slurm_sbin=profile.slurm_sbin,
        default_user=profile.default_user,
        root_device=profile.root_device_name,
        box=profile.box,
        packages=profile.packages,
        lustre=ArchivePlan(line=profile.lustre_archive, key=profile.lustre_key) if profile.lustre_archive else None,
        ssm_agent=profile.ssm_agent,
    )


def plan_node(instance_type: InstanceType) -> NodePlan:
    """Plan the Slurm node for this instance type. Slurm sets a node DOWN if it has less memory than declared."""
    accelerator = instance_type.accelerator
    return NodePlan(
        sockets=instance_type.sockets,
        cores_per_socket=instance_type.cores // instance_type.sockets,
        threads_per_core=instance_type.threads_per_core,
        real_memory_mib=slurm_memory_mib(instance_type.memory_mib),
        gres=_gres(accelerator) if accelerator else None,
    )


def slurm_memory_mib(memory_mib: int) -> int:
    """The memory that Slurm may give to jobs on a machine of this size; less than slurmd will find."""
    large = int(memory_mib * (1 - _SYSTEM_SHARE))
    return min(large, int(memory_mib * (1 - _SMALL_SYSTEM_SHARE)) - _SMALL_SYSTEM_MIB)


def _gres(accelerator: Accelerator) -> GresPlan:
    """Plan the generic resource: `gpu`, whose Slurm plugin sets GPU variables, or another name for Neuron devices."""
    name = "neuron" if accelerator.vendor is Vendor.NEURON else "gpu"
    return GresPlan(type=accelerator.name, count=accelerator.count, name=name)


def _queue(
    spec: QueueSpec, base: BasePlan, catalog: Catalog, image_profile: str | None, *, is_default: bool
) -> QueuePlan:
    machine = catalog.instance_type(spec.instance_type)
    efa = machine.efa_maximum > 0 and spec.efa != "off"
    return QueuePlan(
        name=spec.name,
        instance_type=machine.name,
        min_nodes=spec.nodes.min,
        max_nodes=spec.nodes.max,
        suspend_after_s=_seconds(spec.suspend_after),
        time_limit_s=_seconds(spec.time_limit) if spec.time_limit else None,
        is_default=is_default,
        efa=efa,
        nics=plan_nics(machine, efa=efa, with_ena=spec.efa == "with-ena"),
        node=plan_node(machine),
        nvme_count=machine.nvme_count,
        root_gib=spec.root_gib,
        offers=plan_offers(spec, tuple(zone.zone_id for zone in base.zones), grouped=efa and spec.placement == "auto"),
        nvme_mount=spec.nvme if machine.nvme_count and spec.nvme != "off" else None,
        image=plan_image(spec.image, image_profile) if spec.image else None,
        exclusive=spec.exclusive,
        weight=spec.weight,
        accounts=spec.accounts,
        extra=dict(sorted(spec.extra.items())),
        lustre_efa=lustre_efa_interfaces(machine) if efa else 0,
    )


def _jobs(spec: JobsSpec) -> JobsPlan:
    buckets = tuple(BucketPlan(s3=bucket.s3.rstrip("/"), write=bucket.write) for bucket in spec.buckets)
    found = filter(None, map(parse_repository, spec.registries))
    registries = tuple(RepositoryPlan(account=one.account, name=one.name) for one in found)
    return JobsPlan(
        buckets=buckets,
        registries=registries,
        images=tuple(_container_images(spec)),
        secrets=dict(sorted(spec.secrets.items())),
    )


def _container_images(spec: JobsSpec) -> Iterator[ContainerImagePlan]:
    for text in spec.images:
        name, version = parse_image(text) or ("", "")
        if found := parse_repository(name):
            yield ContainerImagePlan(account=found.account, repository=found.name, version=version)


def _lifetime(spec: LifetimeSpec) -> LifetimePlan:
    return LifetimePlan(
        ttl_s=_seconds(spec.ttl) if spec.ttl else None, idle_s=_seconds(spec.idle) if spec.idle else None
    )


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
