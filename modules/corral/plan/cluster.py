"""A cluster's spec, on its base's plan, to its plan."""

from datetime import timedelta

from corral.catalog.images import find_image_profile
from corral.catalog.project import Catalogue, shipped_catalogue
from corral.model.base import BasePlan
from corral.model.cluster import ArchivePlan, BucketPlan, ClusterPlan, ImagePlan, JobsPlan, LifetimePlan, QueuePlan
from corral.plan.head import check_head_address, plan_head
from corral.plan.nics import plan_nics
from corral.plan.nodes import plan_node
from corral.plan.offers import plan_offers, plan_placement_groups
from corral.plan.roles import check_job_role
from corral.plan.static import check_static_nodes
from corral.plan.storage import plan_lustre
from corral.spec.cluster import ClusterSpec, JobsSpec, LifetimeSpec
from corral.spec.errors import SpecErrors
from corral.spec.image import ImageSpec
from corral.spec.queues import QueueSpec


def plan_cluster(
    spec: ClusterSpec, base: BasePlan, *, catalogue: Catalogue | None = None, image_profile: str | None = None
) -> ClusterPlan:
    """The plan of this cluster. `image_profile` stands in for every declared image, as the box's own profile does.

    `catalogue`: the project's, None for the shipped one.
    Raises SpecErrors for what only shows against the base: an address outside the range kept for heads, nodes that are
    always there and find no place in its subnets; and for more buckets and secrets than a role's policy holds.
    """
    known = catalogue or shipped_catalogue()
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
        lustre=(*plan_lustre(spec.storage.lustre, zone.zone_id, kept=False), *base.lustre),
        home=base.home is not None,
        lifetime=_lifetime(spec.lifetime),
        notify=base.budget.notify if base.budget else (),
        tags={**dict(sorted(spec.tags.items())), "corral:base": base.name, "corral:cluster": spec.name},
        jobs=_jobs(spec.jobs),
        extra_slurm=dict(sorted(spec.slurm.extra.items())),
        ssh_keys=spec.access.ssh_keys,
    )
    if errors := (*check_static_nodes(spec, plan, base), *check_job_role(plan, file=spec.file)):
        raise SpecErrors(errors)
    return plan


def plan_image(spec: ImageSpec, override: str | None) -> ImagePlan:
    """The image as declared, or that of the overriding profile. An id of the user's own is used as it is.

    The profile says what is in it, but for its Slurm where that is declared.
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
    )


def _queue(
    spec: QueueSpec, base: BasePlan, catalogue: Catalogue, image_profile: str | None, *, is_default: bool
) -> QueuePlan:
    machine = catalogue.instance_type(spec.instance_type)
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
    )


def _jobs(spec: JobsSpec) -> JobsPlan:
    buckets = tuple(BucketPlan(s3=bucket.s3.rstrip("/"), write=bucket.write) for bucket in spec.buckets)
    return JobsPlan(buckets=buckets, secrets=dict(sorted(spec.secrets.items())))


def _lifetime(spec: LifetimeSpec) -> LifetimePlan:
    return LifetimePlan(
        ttl_s=_seconds(spec.ttl) if spec.ttl else None, idle_s=_seconds(spec.idle) if spec.idle else None
    )


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
