"""A base's spec to its plan."""

from corral.model.base import BasePlan, BudgetPlan, HomePlan, ZonePlan
from corral.plan.network import plan_public, plan_zones
from corral.plan.storage import plan_lustre
from corral.spec.base import AdoptSpec, BaseSpec


def plan_base(spec: BaseSpec) -> BasePlan:
    """The plan of this base: subnets, kept file systems, budget and the tags that everything in it carries."""
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
        tags={**dict(sorted(spec.tags.items())), "corral:base": spec.name},
        adopted_vpc=adopt.vpc if adopt else None,
        lustre=plan_lustre(spec.storage.lustre, network.zone_names[0], kept=True),
    )


def _adopted(adopt: AdoptSpec) -> tuple[ZonePlan, ...]:
    return tuple(
        ZonePlan(zone_id=subnet.zone, private=subnet.cidr, heads=None, subnet=subnet.id) for subnet in adopt.subnets
    )
