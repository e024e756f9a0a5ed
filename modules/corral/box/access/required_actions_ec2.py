"""The actions that EC2 calls require: a launch requires all resources that it creates and uses, and the passed role.

Source: Service Authorization Reference, Amazon EC2; EC2 User Guide, "Control access to launch templates with IAM
permissions" and "Grant permission to tag Amazon EC2 resources during creation".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from corral.box.access.policy_evaluator import RequiredAction
from corral.box.access.tagged_resources import tag_context
from corral.box.account import ACCOUNT, PARTITION
from corral.box.api_calls import Call
from corral.box.ec2.launch import template_version
from corral.model.partitions import partition_of, service_principal

Context = Mapping[str, str]
Fields = Mapping[str, Any]
# What a launch uses, by the fields of a request and of a template.
_USED = (
    ("image", "ImageId"),
    ("subnet", "SubnetId"),
    ("security-group", "SecurityGroupId"),
    ("placement-group", "Placement"),
    ("capacity-reservation", "CapacityReservationSpecification"),
    ("key-pair", "KeyName"),
)
_MADE = ("instance", "network-interface", "volume")
# What these calls create is a resource of their action, besides what they name.
_CREATED = {"CreateVolume": "volume", "CreateVpcEndpoint": "vpc-endpoint"}
# Kinds of resources by the start of their ids.
_KINDS = {
    "eipalloc": "elastic-ip",
    "eni": "network-interface",
    "i": "instance",
    "igw": "internet-gateway",
    "lt": "launch-template",
    "nat": "natgateway",
    "pg": "placement-group",
    "rtb": "route-table",
    "scr": "subnet-cidr-reservation",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
_READS = ("Describe", "Get")  # about all resources: ids are filters
# Actions on route tables, whatever else their parameters name.
_ON_TABLES = frozenset({"CreateRoute", "DeleteRoute", "ReplaceRoute"})
_INTERFACE = re.compile(r"NetworkInterface\.\d+\.NetworkInterfaceId")
_ID = re.compile(r"[A-Za-z]+Id(?:\.\d+)?")  # an id in the request itself, not in a rule or a route


def ec2_actions_required_by(call: Call, fields: Fields, base: Context) -> Iterator[RequiredAction]:
    """The actions that must be allowed for a call of EC2."""
    backend = ec2_backends[ACCOUNT][call.region]
    here = f"arn:{partition_of(call.region).name}:ec2:{call.region}:{ACCOUNT}"
    match call.action:
        case "RunInstances":
            yield from _launch(call, fields, base, backend)
        case "CreateTags" | "DeleteTags":
            for one in _numbered(fields, "ResourceId"):
                context = {**base, **_resource_tags(backend, one)}
                yield RequiredAction(action=f"ec2:{call.action}", resource=f"{here}:*/{one}", context=context)
        case action if action.startswith(_READS):
            yield RequiredAction(action=f"ec2:{action}", context=base)
        case _:
            yield from _change(call, fields, base, backend)


def _change(call: Call, fields: Fields, base: Context, backend: Any) -> Iterator[RequiredAction]:
    """The action on each resource that the call names, or on all, and the tags of what it creates."""
    here, action = f"arn:{PARTITION}:ec2:{call.region}:{ACCOUNT}", f"ec2:{call.action}"
    named = [str(value) for key, value in fields.items() if _ID.fullmatch(key)]
    groups = backend.placement_groups.values() if call.action == "DeletePlacementGroup" else ()
    named += [group.id for group in groups if group.name == fields.get("GroupName")]
    tables = backend.route_tables.values() if "AssociationId" in fields else ()
    named += [table.id for table in tables if fields["AssociationId"] in table.all_associations_ids]
    kinds = {"rtb"} if call.action in _ON_TABLES else _KINDS.keys()
    known = [one for one in named if one.partition("-")[0] in kinds]
    for one in known:
        arn = f"{here}:{_KINDS[one.partition('-')[0]]}/{one}"
        yield RequiredAction(action=action, resource=arn, context={**base, **_resource_tags(backend, one)})
    if made := _CREATED.get(call.action):
        yield RequiredAction(action=action, resource=f"{here}:{made}/*", context=base)
    if (snapshot := fields.get("SnapshotId")) and call.action == "CreateVolume":
        arn = f"arn:{PARTITION}:ec2:{call.region}::snapshot/{snapshot}"
        yield RequiredAction(action=action, resource=arn, context={**base, **_resource_tags(backend, str(snapshot))})
    if not known and not made:
        yield RequiredAction(action=action, context=base)
    for kind in sorted(_tagged(fields, {})):
        tagging = {**base, "ec2:createaction": call.action}
        yield RequiredAction(action="ec2:CreateTags", resource=f"{here}:{kind}/*", context=tagging)


def _launch(call: Call, fields: Fields, base: Context, backend: Any) -> Iterator[RequiredAction]:
    here, template = f"arn:{partition_of(call.region).name}:ec2:{call.region}:{ACCOUNT}", _template(fields, backend)
    context = dict(base)
    if template is not None:
        arn = f"{here}:launch-template/{template.template.id}"
        context["ec2:launchtemplate"] = arn
        own = {**context, **_resource_tags(backend, template.template.id)}
        yield RequiredAction(action="ec2:RunInstances", resource=arn, context=own)
    data: Mapping[str, Any] = template.data if template is not None else {}
    for kind, field in _used(fields, data):
        marked = {**context, "ec2:islaunchtemplateresource": str(not _has(fields, field)).lower()}
        name = fields.get(field) or data.get(field) or "named"
        owners = {"image": "", "subnet": _subnet_owner(fields, data, backend)}
        arn = f"arn:{partition_of(call.region).name}:ec2:{call.region}:{owners.get(kind, ACCOUNT)}:{kind}/{name}"
        yield RequiredAction(action="ec2:RunInstances", resource=arn, context=marked)
    spot = _has(fields, "InstanceMarketOptions") or "InstanceMarketOptions" in data
    own = {"ec2:instancetype": _value(fields, data, "InstanceType"), "ec2:instancemarkettype": _market(fields, data)}
    for kind in (*_MADE, *(("spot-instances-request",) if spot else ())):
        found = {**context, **own} if kind == "instance" else context
        yield RequiredAction(action="ec2:RunInstances", resource=f"{here}:{kind}/*", context=found)
    for id in sorted(_existing_interfaces(fields, data)):
        marked = {**context, "ec2:islaunchtemplateresource": str(id not in fields.values()).lower()}
        found = {**marked, **_resource_tags(backend, id)}
        yield RequiredAction(action="ec2:RunInstances", resource=f"{here}:network-interface/{id}", context=found)
    for kind in sorted(_tagged(fields, data)):
        tagging = {**base, "ec2:createaction": "RunInstances", **_requested_tags(kind, fields, data)}
        yield RequiredAction(action="ec2:CreateTags", resource=f"{here}:{kind}/*", context=tagging)
    if (role := _passed(fields, data)) is not None:
        passing = {**base, "iam:passedtoservice": service_principal("ec2", call.region)}
        yield RequiredAction(action="iam:PassRole", resource=role, context=passing)


def _value(fields: Fields, data: Mapping[str, Any], name: str) -> str:
    return str(fields.get(name) or data.get(name) or "")


def _market(fields: Fields, data: Mapping[str, Any]) -> str:
    """The value of ec2:InstanceMarketType."""
    in_template = data.get("InstanceMarketOptions") or {}
    return str(fields.get("InstanceMarketOptions.MarketType") or in_template.get("MarketType") or "on-demand")


def is_spot_launch(fields: Fields, backend: Any) -> bool:
    """True if RunInstances with these fields requests spot instances."""
    template = _template(fields, backend)
    return _market(fields, template.data if template is not None else {}) == "spot"


def _template(fields: Fields, backend: Any) -> Any:
    named = {
        key: fields[f"LaunchTemplate.{key}"]
        for key in ("LaunchTemplateId", "LaunchTemplateName", "Version")
        if f"LaunchTemplate.{key}" in fields
    }
    return template_version(backend, named) if named else None


def _used(fields: Fields, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for kind, field in _USED:
        nested = any("SubnetId" in nic or "Groups" in nic for nic in data.get("NetworkInterfaces", ()))
        if _has(fields, field) or field in data or f"{field}s" in data or (field == "SubnetId" and nested):
            yield kind, field


def _existing_interfaces(fields: Fields, data: Mapping[str, Any]) -> set[str]:
    """The ids of the interfaces that a launch attaches; one that it makes has none."""
    named = {str(value) for key, value in fields.items() if _INTERFACE.fullmatch(key)}
    return named | {
        str(one["NetworkInterfaceId"]) for one in data.get("NetworkInterfaces", ()) if "NetworkInterfaceId" in one
    }


def _subnet_owner(fields: Fields, data: Mapping[str, Any], backend: Any) -> str:
    """The account of the launch's subnet, which may be shared with this one."""
    nics = (nic.get("SubnetId") for nic in data.get("NetworkInterfaces", ()))
    declared = {fields.get("SubnetId"), data.get("SubnetId"), *nics}
    known = (subnet for zone in backend.subnets.values() for subnet in zone.values())
    return next((str(subnet.owner_id) for subnet in known if subnet.id in declared), ACCOUNT)


def _has(fields: Fields, name: str) -> bool:
    return any(key == name or key.startswith(f"{name}.") for key in fields)


def _tagged(fields: Fields, data: Mapping[str, Any]) -> set[str]:
    requested = {
        str(value) for key, value in fields.items() if key.startswith("TagSpec") and key.endswith("ResourceType")
    }
    return requested | {str(one["ResourceType"]) for one in data.get("TagSpecifications", ())}


def _requested_tags(kind: str, fields: Fields, data: Mapping[str, Any]) -> dict[str, str]:
    """The tags of a new resource of this kind as condition keys: the template's, and those of the request instead."""
    tags = {
        str(tag["Key"]): str(tag["Value"])
        for one in data.get("TagSpecifications", ())
        for tag in one.get("Tags", ())
        if one["ResourceType"] == kind
    }
    for name in fields:
        number, _, rest = name.removeprefix("TagSpecification.").partition(".")
        if rest.endswith(".Key") and fields.get(f"TagSpecification.{number}.ResourceType") == kind:
            tags[str(fields[name])] = str(fields.get(f"{name.removesuffix('Key')}Value", ""))
    return {f"aws:requesttag/{key}".lower(): value for key, value in tags.items()}


def _passed(fields: Fields, data: Mapping[str, Any]) -> str | None:
    """The ARN of the role in the launch's instance profile."""
    held = data.get("IamInstanceProfile", {})
    arn = fields.get("IamInstanceProfile.Arn", held.get("Arn"))
    name = fields.get("IamInstanceProfile.Name", held.get("Name"))
    profiles = iam_backends[ACCOUNT]["aws"].instance_profiles.values()
    return next((one.roles[0].arn for one in profiles if one.roles and (one.arn == arn or one.name == name)), None)


def _numbered(fields: Fields, name: str) -> list[str]:
    return [str(value) for key, value in fields.items() if key.rpartition(".")[0] == name]


def _resource_tags(backend: Any, resource: str) -> dict[str, str]:
    return tag_context(backend.tags.get(resource, {}), ("aws", "ec2"))
