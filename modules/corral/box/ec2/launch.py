"""Validate a RunInstances call as AWS does; nothing is created or changed here.

`plan_launch` merges the launch template with the request and returns a `LaunchPlan`, or raises AWS's error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.utils import filter_iam_instance_profiles, parse_user_data

from corral.box.api_errors import ApiError
from corral.box.delays import NEW_PROFILE, NEW_TEMPLATE, duration
from corral.box.ec2.disks import plan_disks
from corral.box.ec2_capacity.placement_groups import PlacementGroup
from corral.box.ec2_capacity.reservation_matching import (
    CapacityRequest,
    cluster_arn,
    find_reservation,
    launchable_count,
    platform_of,
)
from corral.box.ec2_capacity.reservations import CapacityReservation
from corral.box.ec2_network.nic_placement import (
    NicPlacement,
    card_and_device,
    check_cards,
    count_with_addresses,
    place_nics,
)
from corral.box.faults import store
from corral.box.faults.records import RequestTagsOnly
from corral.box.zones import check_offered

DEFAULT_TYPE = "m1.small"
_SHOWN_KEY = r"[0-9a-zA-Z\-_+=,.@:]{1,255}"
TAG_LENGTHS = {"Key": 128, "Value": 256}  # Unicode characters (EC2 user guide, tag your resources, restrictions)
_RESERVED_KEYS = (".", "..", "_index")
INTERFACE_REPLACES = {
    "SubnetId": "subnet ID",
    "SecurityGroupIds": "security groups",
    "SecurityGroups": "security groups",
    "PrivateIpAddress": "private IP address",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """A valid launch. `parameters`: those of the template and the request."""

    parameters: Mapping[str, Any]
    count: int
    instance_type: str
    subnet: Any
    nic_placements: tuple[NicPlacement, ...]
    groups: tuple[str, ...]
    disks: tuple[Mapping[str, Any], ...]
    tags: Mapping[str, Mapping[str, str]]
    lifecycle: str | None
    placement_group: PlacementGroup | None
    reservation: CapacityReservation | None
    user_data: Any


def plan_launch(backend: Any, request: Mapping[str, Any], now: datetime | None = None) -> LaunchPlan:
    """The launch of a request. `now` defaults to the current time. Raises ApiError."""
    named = request.get("LaunchTemplate")
    version = template_version(backend, named) if named else None
    if version:
        _check_old_enough(version)
    template = {name: value for name, value in version.data.items() if value} if version else {}
    parameters = {**template, **request}
    count = _count(parameters)
    kind = _instance_type(parameters)
    image = _image(backend, parameters)
    nics = parameters.get("NetworkInterfaces") or []
    _check_not_both(parameters, nics)
    subnet = _subnet(backend, parameters, nics)
    groups = _groups(backend, parameters, nics, subnet)
    nic_placements = place_nics(backend, nics, subnet, groups, kind, count, parameters)
    check_cards(nic_placements, kind)
    check_offered(kind, subnet.availability_zone)
    _check_profile(backend, parameters.get("IamInstanceProfile"))
    group = _placement_group(backend, parameters, kind, subnet.availability_zone)
    wanted = CapacityRequest(
        instance_type=kind,
        platform=platform_of(image),
        zone=subnet.availability_zone,
        tenancy=(parameters.get("Placement") or {}).get("Tenancy") or "default",
        group_arn=cluster_arn(group),
        least=int(parameters["MinCount"]),
        most=count_with_addresses(int(parameters["MinCount"]), count, nic_placements),
    )
    used, now = backend.used_capacity(), now or utcnow()
    reservation = find_reservation(backend, parameters, wanted, used, now)
    return LaunchPlan(
        parameters=parameters,
        count=launchable_count(reservation, wanted, used, now),
        instance_type=kind,
        subnet=subnet,
        nic_placements=nic_placements,
        groups=nic_placements[0].groups,
        disks=plan_disks(image, parameters.get("BlockDeviceMappings") or []),
        tags=_checked_tags(_tags(template, request, _launched_from(version)), parameters),
        lifecycle=_lifecycle(parameters, kind),
        placement_group=group,
        reservation=reservation,
        user_data=parameters.get("UserData") if "UserData" not in request else parse_user_data(request["UserData"]),
    )


def template_version(backend: Any, named: Mapping[str, Any]) -> Any:
    """The launch template version that a request names."""
    if named.get("LaunchTemplateId") and named.get("LaunchTemplateName"):
        raise ApiError(
            "InvalidParameterCombination", "Specify either a launch template ID or a launch template name, not both."
        )
    if template_id := named.get("LaunchTemplateId"):
        template = backend.get_launch_template(template_id)
    else:
        template = backend.get_launch_template_by_name(named.get("LaunchTemplateName"))
    version = str(named.get("Version") or "$Default")
    if version not in ("$Default", "$Latest") and version not in {str(held.number) for held in template.versions}:
        raise _no_version(template, version)
    return template.get_version(version)


def _check_old_enough(version: Any) -> None:
    """Raises ApiError for a template or version that a launch does not find yet."""
    oldest, template = utcnow() - duration(NEW_TEMPLATE), version.template
    if template.create_time > oldest:
        raise ApiError("InvalidLaunchTemplateId.NotFound", f"The specified launch template, with template ID"
                       f" {template.id}, does not exist.")  # fmt: skip
    if version.create_time > oldest:
        raise _no_version(template, str(version.number))


def _no_version(template: Any, version: str) -> ApiError:
    return ApiError(
        "InvalidLaunchTemplateId.VersionNotFound",
        f"Could not find the specified version {version} for the launch template with ID {template.id}.",
    )


def _launched_from(version: Any) -> dict[str, str]:
    """The tags that EC2 itself adds to an instance."""
    if version is None:
        return {}
    return {"aws:ec2launchtemplate:id": version.template.id, "aws:ec2launchtemplate:version": str(version.number)}


def _count(parameters: Mapping[str, Any]) -> int:
    least, most = int(parameters.get("MinCount") or 0), int(parameters.get("MaxCount") or 0)
    if least < 1:
        raise ApiError("InvalidParameterValue", f"Invalid value '{least}' for MinCount; it must be at least 1.")
    if most < least:
        raise ApiError("InvalidParameterValue", f"Invalid value '{most}' for MaxCount; it is below MinCount {least}.")
    return most


def _instance_type(parameters: Mapping[str, Any]) -> str:
    kind = str(parameters.get("InstanceType") or DEFAULT_TYPE)
    if kind not in INSTANCE_TYPES:
        raise ApiError("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    return kind


def _image(backend: Any, parameters: Mapping[str, Any]) -> Any:
    image_id = parameters.get("ImageId")
    if not image_id:
        raise ApiError("MissingParameter", "The request must contain the parameter ImageId")
    if not str(image_id).startswith("ami-"):
        raise ApiError("InvalidAMIID.Malformed", f'Invalid id: "{image_id}" (expecting "ami-...")')
    if image_id not in backend.amis:
        raise ApiError("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")
    return backend.amis[image_id]


def _check_not_both(parameters: Mapping[str, Any], nics: list[Any]) -> None:
    for name, words in INTERFACE_REPLACES.items():
        if nics and parameters.get(name):
            raise ApiError("InvalidParameterCombination", f"Network interfaces and an instance-level {words} may not be"
                          " specified on the same request")  # fmt: skip


def _subnet(backend: Any, parameters: Mapping[str, Any], nics: list[Any]) -> Any:
    first: Mapping[str, Any] = next((nic for nic in nics if card_and_device(nic) == (0, 0)), {})
    if first.get("NetworkInterfaceId"):
        subnet = backend.get_network_interface(first["NetworkInterfaceId"]).subnet
    elif subnet_id := first.get("SubnetId") or parameters.get("SubnetId"):
        subnet = backend.get_subnet(subnet_id)
    else:
        zone = (parameters.get("Placement") or {}).get("AvailabilityZone") or f"{backend.region_name}a"
        subnet = backend.get_default_subnets().get(zone)
    if subnet is None:
        raise ApiError("MissingInput", f"No default subnet for availability zone: '{zone}'.")
    return subnet


def _groups(backend: Any, parameters: Mapping[str, Any], nics: list[Any], subnet: Any) -> tuple[str, ...]:
    named = [
        backend.get_security_group_from_name(name, subnet.vpc_id) for name in parameters.get("SecurityGroups") or []
    ]
    if None in named:
        raise ApiError("InvalidGroup.NotFound", f"A security group of {parameters['SecurityGroups']} does not exist")
    chosen = [*(group.id for group in named), *(parameters.get("SecurityGroupIds") or [])]
    backend.check_groups(chosen, subnet.vpc_id)
    return tuple(chosen or [backend.get_security_group_from_name("default", subnet.vpc_id).id])


def _check_profile(backend: Any, profile: Mapping[str, Any] | None) -> None:
    if not profile:
        return
    try:
        found = filter_iam_instance_profiles(
            backend.account_id, backend.partition, profile.get("Arn"), profile.get("Name")
        )
    except Exception:  # moto raises an IAM error where EC2 gives one of its own
        found = None
    if not found or found.create_date > utcnow() - duration(NEW_PROFILE):
        field, value = next(iter(profile.items()))
        raise ApiError("InvalidParameterValue", f"Value ({value}) for parameter iamInstanceProfile.{field.lower()} is"
                      f" invalid. Invalid IAM Instance Profile {field.lower()}")  # fmt: skip


def _lifecycle(parameters: Mapping[str, Any], kind: str) -> str | None:
    market = (parameters.get("InstanceMarketOptions") or {}).get("MarketType")
    if market and market not in INSTANCE_TYPES[kind]["SupportedUsageClasses"]:
        raise ApiError("InvalidParameterCombination", f"The instance type '{kind}' is not available on the market"
                      f" '{market}'.")  # fmt: skip
    return None if market == "on-demand" else market


def _placement_group(backend: Any, parameters: Mapping[str, Any], kind: str, zone: str) -> PlacementGroup | None:
    placement = parameters.get("Placement") or {}
    name = placement.get("GroupName") or placement.get("GroupId")
    if not name:
        return None
    group: PlacementGroup = backend.get_placement_group(name)
    if group.strategy not in INSTANCE_TYPES[kind].get("PlacementGroupInfo", {}).get("SupportedStrategies", []):
        raise ApiError("InvalidParameterCombination", f"{group.strategy.capitalize()} placement groups are not"
                      f" supported by the '{kind}' instance type.")  # fmt: skip
    if group.strategy != "cluster":
        return group
    if (parameters.get("InstanceMarketOptions") or {}).get("MarketType") == "capacity-block":
        raise ApiError("InvalidParameterCombination", "A capacity block cannot be used with a cluster placement group.")
    backend.check_zone_of_group(group, zone)
    return group


def check_tag_length(part: str, text: str) -> None:
    """Raises ApiError if the Key or Value of a tag is too long."""
    if len(text) > TAG_LENGTHS[part]:
        raise ApiError(
            "InvalidParameterValue", f"Tag {part.lower()} exceeds the maximum length of {TAG_LENGTHS[part]} characters"
        )


def _checked_tags(
    tags: Mapping[str, Mapping[str, str]], parameters: Mapping[str, Any]
) -> Mapping[str, Mapping[str, str]]:
    """The tags. Raises ApiError for long ones, and for keys that instance metadata cannot have as paths.

    Source: EC2 user guide, "View tags for your EC2 instances using instance metadata"; error text: seek-oss/aec#411.
    """
    for key, value in (tag for kind in tags.values() for tag in kind.items()):
        check_tag_length("Key", key)
        check_tag_length("Value", value)
    shown = (parameters.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled"
    for key in tags.get("instance", {}) if shown else ():
        if key in _RESERVED_KEYS or not re.fullmatch(_SHOWN_KEY, key):
            raise ApiError(
                "InvalidParameterValue",
                f"'{key}' is not a valid tag key. Tag keys must match pattern ({_SHOWN_KEY}), and must not be a"
                " reserved name ('.', '..', '_index')",
            )
    return tags


def _tags(
    template: Mapping[str, Any], request: Mapping[str, Any], launched_from: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """The tags by kind of resource. AWS does not document whether those of a request join its template's."""
    requested = request.get("TagSpecifications") or []
    replaces = requested and any(isinstance(fault, RequestTagsOnly) for fault in store.faults())
    own = [] if replaces else template.get("TagSpecifications", [])
    tags: dict[str, dict[str, str]] = {"instance": dict(launched_from)}
    for specification in [*own, *requested]:
        kind = tags.setdefault(specification["ResourceType"], {})
        kind |= {tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", [])}
    return tags
