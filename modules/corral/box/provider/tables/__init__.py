"""The resource types that the stand-in provider knows, in packages by purpose.

A table holds what is particular to a type. Which changes replace a resource, which values AWS computes and which
defaults apply follow the schemas of terraform-provider-aws 6, on which the official provider is built;
test_provider_force_new compares both.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.resource import Resource
from corral.box.provider.tables.compute import instances, launch_templates, placement_groups, volumes
from corral.box.provider.tables.identity import kms_keys, parameters, policies, roles, secrets
from corral.box.provider.tables.network import (
    dns,
    endpoints,
    gateways,
    interfaces,
    load_balancers,
    routes,
    security_groups,
    vpcs,
)
from corral.box.provider.tables.operations import alarms, budgets, logs, topics
from corral.box.provider.tables.storage import bucket_settings, buckets, efs, lustre, objects

TABLES = (
    *(instances, launch_templates, placement_groups, volumes),
    *(dns, endpoints, gateways, interfaces, load_balancers, routes, security_groups, vpcs),
    *(bucket_settings, buckets, efs, lustre, objects),
    *(kms_keys, parameters, policies, roles, secrets),
    *(alarms, budgets, logs, topics),
)
RESOURCES: Mapping[str, Resource] = {resource.token: resource for table in TABLES for resource in table.RESOURCES}
