"""Login nodes: their names, and the zones that they take in turn."""

from corral.catalog.project_catalog import Catalog
from corral.model.base import BasePlan
from corral.model.cluster import LOGIN, LoginPlan
from corral.spec.models.cluster import LoginSpec


def plan_login(spec: LoginSpec, base: BasePlan, head_zone: str, catalog: Catalog) -> LoginPlan:
    """Plan the login nodes of a cluster whose head is in this zone."""
    machine = catalog.instance_type(spec.instance_type)
    zones = [base.zone(name).zone_id for name in spec.zones] or [head_zone]
    return LoginPlan(
        instance_type=machine.name,
        vcpus=machine.vcpus,
        memory_mib=machine.memory_mib,
        root_gib=spec.root_gib,
        zones={f"{LOGIN}-{number + 1}": zones[number % len(zones)] for number in range(spec.count)},
    )
