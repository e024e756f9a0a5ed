"""The resource types that the stand-in knows, one record each, in files by what they are for.

A table says what is particular to a type. What makes a new resource, what AWS decides and what holds by default follow
the schemas of terraform-provider-aws 6, on which the official provider is built; test_provider_force_new compares.
"""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.resource import Resource
from corral.box.provider.tables import (
    alarms,
    bucket_settings,
    buckets,
    budgets,
    dns,
    efs,
    endpoints,
    gateways,
    instances,
    interfaces,
    keys,
    logs,
    lustre,
    objects,
    parameters,
    placement,
    policies,
    roles,
    routes,
    secret_values,
    security,
    templates,
    topics,
    volumes,
    vpcs,
)

FILES = (
    alarms,
    bucket_settings,
    buckets,
    budgets,
    dns,
    efs,
    endpoints,
    gateways,
    instances,
    interfaces,
    keys,
    logs,
    lustre,
    objects,
    parameters,
    placement,
    policies,
    roles,
    routes,
    secret_values,
    security,
    templates,
    topics,
    volumes,
    vpcs,
)
RESOURCES: Mapping[str, Resource] = {resource.token: resource for file in FILES for resource in file.RESOURCES}
