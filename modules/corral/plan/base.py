"""A base's spec to its plan."""

from corral.model.base import BasePlan, BudgetPlan, HomePlan
from corral.plan.network import plan_public, plan_zones
from corral.spec.base import BaseSpec


def plan_base(spec: BaseSpec) -> BasePlan:
    """The plan of this base: subnets, home, budget and the tags that everything in it carries."""
    home, budget = spec.storage.home, spec.budget
    return BasePlan(
        name=spec.name,
        region=spec.region,
        vpc_cidr=spec.network.cidr,
        zones=plan_zones(spec.network.cidr, spec.network.zones),
        public=plan_public(spec.network.cidr, spec.network.zones[0]),
        interface_endpoints=tuple(sorted(spec.network.interface_endpoints)),
        home=HomePlan(token=f"corral-{spec.name}-home", throughput=home.throughput) if home else None,
        budget=BudgetPlan(usd_per_month=budget.usd_per_month, notify=budget.notify) if budget else None,
        tags={**dict(sorted(spec.tags.items())), "corral:base": spec.name},
    )
