"""A cluster's spec, on its base's plan, to its plan."""

from datetime import timedelta

from corral.catalog.images import find_image_profile
from corral.catalog.instances import find_instance_type
from corral.model.base import BasePlan
from corral.model.cluster import (
    ClusterPlan,
    DataLinkPlan,
    ImagePlan,
    LifetimePlan,
    LustrePlan,
    QueuePlan,
)
from corral.plan.head import check_head_address, plan_head
from corral.plan.nics import plan_nics
from corral.plan.nodes import plan_node
from corral.plan.offers import plan_offers, plan_placement_groups
from corral.spec.cluster import ClusterSpec, ImageSpec, LustreSpec, QueueSpec
from corral.spec.errors import SpecErrors

_NODE_ROOT_GIB = 200  # a deep learning image needs about 100; containers and logs of jobs take the rest


def plan_cluster(spec: ClusterSpec, base: BasePlan, *, image_profile: str | None = None) -> ClusterPlan:
    """The plan of this cluster. `image_profile` stands in for the declared image, as the box's own profile does.

    Raises SpecErrors for what only shows against the base: an address outside the range kept for heads.
    """
    zone = base.zone(spec.head.zone or base.zones[0].zone_id)
    errors = check_head_address(spec.head, zone, file=spec.file)
    if errors:
        raise SpecErrors(errors)
    queues = tuple(_queue(queue, base, is_default=number == 0) for number, queue in enumerate(spec.queues))
    return ClusterPlan(
        name=spec.name,
        base=base.name,
        region=base.region,
        dns_zone=f"{spec.name}.corral.internal",
        prefix=f"clusters/{spec.name}",
        image=plan_image(spec.image, image_profile),
        head=plan_head(spec.head, spec.name, zone),
        queues=queues,
        placement_groups=tuple(g for queue in queues for g in plan_placement_groups(queue.name, queue.offers)),
        lustre=tuple(_lustre(system, zone.zone_id) for system in sorted(spec.storage.lustre, key=lambda s: s.name)),
        home=base.home is not None,
        lifetime=LifetimePlan(
            ttl_s=_seconds(spec.lifetime.ttl) if spec.lifetime.ttl else None,
            idle_s=_seconds(spec.lifetime.idle) if spec.lifetime.idle else None,
        ),
        notify=base.budget.notify if base.budget else (),
        tags={**dict(sorted(spec.tags.items())), "corral:base": base.name, "corral:cluster": spec.name},
    )


def plan_image(spec: ImageSpec, override: str | None) -> ImagePlan:
    """The image as declared, or that of the overriding profile. An id of the user's own is used as it is."""
    profile = find_image_profile(override or spec.profile)
    own = None if override else spec.id
    return ImagePlan(
        profile=profile.name,
        image_id=own,
        parameter=None if own else profile.image_parameter,
        system=profile.system,
        python=profile.python,
        slurm_version=profile.slurm_version,
        slurm_sbin=profile.slurm_sbin,
        default_user=profile.default_user,
        root_device=profile.root_device_name,
    )


def _queue(spec: QueueSpec, base: BasePlan, *, is_default: bool) -> QueuePlan:
    machine = find_instance_type(spec.instance_type)
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
        nics=plan_nics(machine, efa=efa),
        node=plan_node(machine),
        nvme_count=machine.nvme_count,
        root_gib=_NODE_ROOT_GIB,
        offers=plan_offers(spec, tuple(zone.zone_id for zone in base.zones), grouped=efa),
    )


def _lustre(spec: LustreSpec, head_zone: str) -> LustrePlan:
    return LustrePlan(
        name=spec.name,
        zone_id=spec.zone or head_zone,
        size_gib=spec.size_gib,
        deployment=spec.deployment,
        mount=spec.mount_point,
        data=tuple(
            DataLinkPlan(path=link.path, s3=link.s3, imports=link.imports, exports=link.exports)
            for link in sorted(spec.data, key=lambda link: link.path)
        ),
    )


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())
