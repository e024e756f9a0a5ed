"""The AWS names of the resource kinds in moto's collections, and the collections that hold no resources.

The inventory shows an unlisted collection under the class name of its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

BOOKKEEPING_SERVICES = {"sts", "moto_api", "instance_metadata", "resourcegroupstaggingapi"}

BOOKKEEPING: Mapping[str, frozenset[str]] = {
    "ec2": frozenset(
        {
            "tags",
            "launches",
            "instances_by_id",
            "reservation_tokens",
            "block_offerings",
            "api_buckets",  # API throttling
            "faults",
            "late_instances",
            "sold_offerings",
            "reservations",
            "attachments",
            "deleted_amis",
            "subnet_associations",
            "launch_template_name_to_ids",
            "launch_template_insert_order",
            "iam_instance_profile_associations",
            "transit_gateway_associations",
            "transit_gateway_propagations",
            "configurations_by_arn",
        }
    ),
    "s3": frozenset({"buckets", "tagger"}),
    "route53": frozenset({"zones", "resource_tags", "delegation_sets"}),
    "efs": frozenset({"creation_tokens", "next_markers", "file_systems_by_token"}),
    "iam": frozenset({"access_keys", "inline_policies"}),
    "kms": frozenset({"key_to_aliases", "alias_changes", "tag_changes"}),
    "sns": frozenset({"sms_messages", "opt_out_numbers", "sms_attributes", "_message_public_keys"}),  # keys: of AWS
    "cloudwatch": frozenset({"metric_data", "paged_metric_data"}),
    "logs": frozenset({"queries", "_resource_policies"}),
    "ssm": frozenset({"_resource_tags", "_commands", "ssm_prefix"}),
    "fsx": frozenset({"mount_names"}),
}

KINDS: Mapping[str, Mapping[str, str]] = {
    "ec2": {
        "vpcs": "vpc",
        "subnets": "subnet",
        "groups": "security-group",
        "enis": "network-interface",
        "volumes": "volume",
        "snapshots": "snapshot",
        "amis": "image",
        "launch_templates": "launch-template",
        "placement_groups": "placement-group",
        "capacity_reservations": "capacity-reservation",
        "capacity_blocks": "capacity-block",
        "route_tables": "route-table",
        "internet_gateways": "internet-gateway",
        "nat_gateways": "nat-gateway",
        "addresses": "elastic-ip",
        "vpc_end_points": "vpc-endpoint",
        "network_acls": "network-acl",
        "key_pairs": "key-pair",
        "managed_prefix_lists": "managed-prefix-list",
    },
    "efs": {
        "file_systems_by_id": "file-system",
        "mount_targets_by_id": "mount-target",
        "access_points": "access-point",
    },
    "elbv2": {"load_balancers": "load-balancer", "target_groups": "target-group"},
    "fsx": {"file_systems": "file-system", "backups": "backup", "associations": "data-repository-association"},
    "iam": {
        "roles": "role",
        "instance_profiles": "instance-profile",
        "managed_policies": "policy",
        "users": "user",
        "groups": "group",
    },
    "kms": {"keys": "key"},
    "secretsmanager": {"secrets": "secret"},
    "ssm": {"_parameters": "parameter", "_documents": "document"},
    "sns": {"topics": "topic", "subscriptions": "subscription"},
    "logs": {"groups": "log-group"},
    "cloudwatch": {"alarms": "alarm", "dashboards": "dashboard"},
    "budgets": {"budgets": "budget"},
}


NAME_ATTRIBUTES: Mapping[tuple[str, str], str] = {("iam", "roles"): "name", ("iam", "users"): "name"}
"""The attribute with the resource's name, where it differs from the collection's key."""

UNIQUE_IDS = {"ec2"}
"""Services whose ids are unique without their collection."""


def is_deleted(value: Any) -> bool:
    """True for a deleted resource that AWS still lists for a while."""
    if getattr(value, "is_over", False) is True:
        return True
    state = getattr(value, "state", None)
    return isinstance(state, str) and state in ("deleted", "deleting", "terminated")


def is_default(service: str, attribute: str, value: Any) -> bool:
    """True for resources that every account or VPC has from its creation, or that services create for themselves."""
    if service == "iam":
        return any(part in getattr(value, "arn", "") for part in (":iam::aws:policy/", ":role/aws-service-role/"))
    if service != "ec2":
        return False
    backend = getattr(value, "ec2_backend", None)
    if backend is not None and getattr(value, "vpc_id", None) == backend.default_vpc.id and attribute != "enis":
        return _came_with_vpc(attribute, value)
    match attribute:
        case "amis":
            return bool(value.owner_alias == "amazon")  # those of `images`, and published ones
        case "vpcs":
            return bool(value.is_default)
        case "snapshots":
            return bool(value.from_ami)
        case "managed_prefix_lists":
            return str(value.prefix_list_name).startswith("com.amazonaws.")
    return _came_with_vpc(attribute, value)


def _came_with_vpc(attribute: str, value: Any) -> bool:
    match attribute:
        case "subnets":
            return bool(value.default_for_az)
        case "groups":
            return bool(value.name == "default")
        case "route_tables":
            return value.main_association_id is not None
        case "network_acls":
            return bool(value.default)
    return False


def _instances(backend: Any) -> Iterator[tuple[str, str]]:
    for reservation in backend.reservations.values():
        for instance in reservation.instances:
            if instance.state != "terminated":
                yield "instance", instance.id
    for subnets in backend.subnets.values():
        for subnet in subnets.values():
            for reservation in subnet._cidr_reservations:
                yield "subnet-cidr-reservation", reservation.id


def _buckets(backend: Any) -> Iterator[tuple[str, str]]:
    for bucket in backend.buckets.values():
        yield "bucket", bucket.name
        for key in list(bucket.keys):
            versions = len(bucket.keys.getlist(key))
            yield "object", f"{bucket.name}/{key}" + (f" ({versions} versions)" if versions > 1 else "")


def _zones(backend: Any) -> Iterator[tuple[str, str]]:
    for zone in backend.zones.values():
        yield "hosted-zone", zone.resource_id
        for record in zone.rrsets:
            if record.type not in ("NS", "SOA"):
                yield "record", f"{zone.resource_id}/{record.name}/{record.type}"


def _aliases(backend: Any) -> Iterator[tuple[str, str]]:
    for key in backend.keys.values():
        for alias in key.aliases:
            if not alias.startswith("alias/aws/"):
                yield "alias", alias


CUSTOM_LISTINGS: Mapping[str, Callable[[Any], Iterator[tuple[str, str]]]] = {
    "ec2": _instances,
    "s3": _buckets,
    "route53": _zones,
    "kms": _aliases,
}
