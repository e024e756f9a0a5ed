"""Login nodes: their names, the zones that they take in turn, and their load balancer."""

from collections.abc import Collection

from corral.catalog.project_catalog import Catalog
from corral.model.base import BasePlan
from corral.model.cluster import LOGIN, LoadBalancerPlan, LoginPlan
from corral.spec.models.cluster import LoadBalancerSpec, LoginSpec


def plan_login(spec: LoginSpec, base: BasePlan, head_zone: str, catalog: Catalog) -> LoginPlan:
    """Plan the login nodes of a cluster whose head is in this zone."""
    machine = catalog.instance_type(spec.instance_type)
    zones = [base.zone(name).zone_id for name in spec.zones] or [head_zone]
    nodes = {f"{LOGIN}-{number + 1}": zones[number % len(zones)] for number in range(spec.count)}
    return LoginPlan(
        instance_type=machine.name,
        vcpus=machine.vcpus,
        memory_mib=machine.memory_mib,
        root_gib=spec.root_gib,
        zones=nodes,
        load_balancer=_load_balancer(spec.load_balancer, frozenset(nodes.values())) if spec.load_balancer else None,
    )


def _load_balancer(spec: LoadBalancerSpec, zones: Collection[str]) -> LoadBalancerPlan:
    return LoadBalancerPlan(scheme=spec.scheme, allow=tuple(sorted(spec.allow)), zones=tuple(sorted(zones)))
