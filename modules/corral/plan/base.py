"""Plan a base from its spec."""

from corral.model.base import BasePlan, BudgetPlan, HomePlan, ZonePlan
from corral.model.tags import base_tags
from corral.plan.file_systems import plan_lustre
from corral.plan.subnets import plan_public, plan_zones
from corral.spec.models.base import AdoptSpec, BaseSpec


def plan_base(spec: BaseSpec) -> BasePlan:
    """Plan this base: subnets, retained file systems, budget and tags."""
    network, home, budget, adopt = spec.network, spec.storage.home, spec.budget, spec.network.adopt
    return BasePlan(
        name=spec.name,
        region=spec.region,
        vpc_cidr=None if adopt else network.cidr,
        zones=_adopted(adopt) if adopt else plan_zones(network.cidr, network.zones),
        public=None if adopt else plan_public(network.cidr, network.zones[0]),
        interface_endpoints=tuple(sorted(network.interface_endpoints)),
        home=HomePlan(token=f"corral-{spec.name}-home", throughput=home.throughput) if home else None,
        budget=BudgetPlan(usd_per_month=budget.usd_per_month, notify=budget.notify) if budget else None,
        tags=base_tags(spec.tags, spec.name),
        adopted_vpc=adopt.vpc if adopt else None,
        lustre=plan_lustre(spec.storage.lustre, network.zone_names[0], retained=True),
    )


def _adopted(adopt: AdoptSpec) -> tuple[ZonePlan, ...]:
    return tuple(
        ZonePlan(zone_id=subnet.zone, private=subnet.cidr, heads=None, subnet=subnet.id) for subnet in adopt.subnets
    )
