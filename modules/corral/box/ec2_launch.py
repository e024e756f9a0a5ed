"""What a RunInstances call asks for, judged as AWS judges it; nothing exists or changes here.

`plan_launch` merges the launch template with the request and returns a `Launch`, or raises the error that AWS gives.
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

from corral.box.ec2_disks import find_disks
from corral.box.ec2_placement import PlacementGroup
from corral.box.ec2_places import NetworkCardPlace, check_cards, count_with_addresses, find_places, place_of
from corral.box.ec2_reservations import CapacityReservation
from corral.box.ec2_targets import Wanted, cluster_arn, find_reservation, places_left, platform_of
from corral.box.ec2_zones import check_offered
from corral.box.refusals import Refused

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
class Launch:
    """A launch that AWS would accept."""

    asked: Mapping[str, Any]
    count: int
    instance_type: str
    subnet: Any
    places: tuple[NetworkCardPlace, ...]
    groups: tuple[str, ...]
    disks: tuple[Mapping[str, Any], ...]
    tags: Mapping[str, Mapping[str, str]]
    lifecycle: str | None
    placement_group: PlacementGroup | None
    reservation: CapacityReservation | None
    user_data: Any


def plan_launch(backend: Any, request: Mapping[str, Any], now: datetime | None = None) -> Launch:
    """The launch that the request asks for, now if no other time is said. Raises Refused if it cannot be."""
    template = _template_data(backend, request.get("LaunchTemplate"))
    asked = {**template, **request}
    count = _count(asked)
    kind = _instance_type(asked)
    image = _image(backend, asked)
    nics = asked.get("NetworkInterfaces") or []
    _check_not_both(asked, nics)
    subnet = _subnet(backend, asked, nics)
    groups = _groups(backend, asked, nics, subnet)
    places = find_places(backend, nics, subnet, groups, kind, count, asked)
    check_cards(places, kind)
    check_offered(kind, subnet.availability_zone)
    _check_profile(backend, asked.get("IamInstanceProfile"))
    group = _placement_group(backend, asked, kind, subnet.availability_zone)
    wanted = Wanted(
        instance_type=kind,
        platform=platform_of(image),
        zone=subnet.availability_zone,
        tenancy=(asked.get("Placement") or {}).get("Tenancy") or "default",
        group_arn=cluster_arn(group),
        least=int(asked["MinCount"]),
        most=count_with_addresses(int(asked["MinCount"]), count, places),
    )
    used, now = backend.used_capacity(), now or utcnow()
    reservation = find_reservation(backend, asked, wanted, used, now)
    return Launch(
        asked=asked,
        count=places_left(reservation, wanted, used, now),
        instance_type=kind,
        subnet=subnet,
        places=places,
        groups=places[0].groups,
        disks=find_disks(image, asked.get("BlockDeviceMappings") or []),
        tags=_checked_tags(_tags(template, request), asked),
        lifecycle=_lifecycle(asked, kind),
        placement_group=group,
        reservation=reservation,
        user_data=asked.get("UserData") if "UserData" not in request else parse_user_data(request["UserData"]),
    )


def template_version(backend: Any, named: Mapping[str, Any]) -> Any:
    """The launch template version that a request names."""
    if named.get("LaunchTemplateId") and named.get("LaunchTemplateName"):
        raise Refused(
            "InvalidParameterCombination", "Specify either a launch template ID or a launch template name, not both."
        )
    if template_id := named.get("LaunchTemplateId"):
        template = backend.get_launch_template(template_id)
    else:
        template = backend.get_launch_template_by_name(named.get("LaunchTemplateName"))
    version = str(named.get("Version") or "$Default")
    if version not in ("$Default", "$Latest") and version not in {str(held.number) for held in template.versions}:
        raise Refused(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find the specified version {version} for the launch template with ID {template.id}.",
        )
    return template.get_version(version)


def _template_data(backend: Any, named: Mapping[str, Any] | None) -> dict[str, Any]:
    if not named:
        return {}
    version = template_version(backend, named)
    launched_from = [
        {"Key": "aws:ec2launchtemplate:id", "Value": version.template.id},
        {"Key": "aws:ec2launchtemplate:version", "Value": str(version.number)},
    ]
    specifications = [*version.data.get("TagSpecifications", []), {"ResourceType": "instance", "Tags": launched_from}]
    return {**{name: value for name, value in version.data.items() if value}, "TagSpecifications": specifications}


def _count(asked: Mapping[str, Any]) -> int:
    least, most = int(asked.get("MinCount") or 0), int(asked.get("MaxCount") or 0)
    if least < 1:
        raise Refused("InvalidParameterValue", f"Invalid value '{least}' for MinCount; it must be at least 1.")
    if most < least:
        raise Refused("InvalidParameterValue", f"Invalid value '{most}' for MaxCount; it is below MinCount {least}.")
    return most


def _instance_type(asked: Mapping[str, Any]) -> str:
    kind = str(asked.get("InstanceType") or DEFAULT_TYPE)
    if kind not in INSTANCE_TYPES:
        raise Refused("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    return kind


def _image(backend: Any, asked: Mapping[str, Any]) -> Any:
    image_id = asked.get("ImageId")
    if not image_id:
        raise Refused("MissingParameter", "The request must contain the parameter ImageId")
    if not str(image_id).startswith("ami-"):
        raise Refused("InvalidAMIID.Malformed", f'Invalid id: "{image_id}" (expecting "ami-...")')
    if image_id not in backend.amis:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{image_id}]' does not exist")
    return backend.amis[image_id]


def _check_not_both(asked: Mapping[str, Any], nics: list[Any]) -> None:
    for name, words in INTERFACE_REPLACES.items():
        if nics and asked.get(name):
            raise Refused("InvalidParameterCombination", f"Network interfaces and an instance-level {words} may not be"
                          " specified on the same request")  # fmt: skip


def _subnet(backend: Any, asked: Mapping[str, Any], nics: list[Any]) -> Any:
    first: Mapping[str, Any] = next((nic for nic in nics if place_of(nic) == (0, 0)), {})
    if first.get("NetworkInterfaceId"):
        subnet = backend.get_network_interface(first["NetworkInterfaceId"]).subnet
    elif subnet_id := first.get("SubnetId") or asked.get("SubnetId"):
        subnet = backend.get_subnet(subnet_id)
    else:
        zone = (asked.get("Placement") or {}).get("AvailabilityZone") or f"{backend.region_name}a"
        subnet = backend.get_default_subnets().get(zone)
    if subnet is None:
        raise Refused("MissingInput", f"No default subnet for availability zone: '{zone}'.")
    return subnet


def _groups(backend: Any, asked: Mapping[str, Any], nics: list[Any], subnet: Any) -> tuple[str, ...]:
    named = [backend.get_security_group_from_name(name, subnet.vpc_id) for name in asked.get("SecurityGroups") or []]
    if None in named:
        raise Refused("InvalidGroup.NotFound", f"A security group of {asked['SecurityGroups']} does not exist")
    chosen = [*(group.id for group in named), *(asked.get("SecurityGroupIds") or [])]
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
    if not found:
        field, value = next(iter(profile.items()))
        raise Refused("InvalidParameterValue", f"Value ({value}) for parameter iamInstanceProfile.{field.lower()} is"
                      f" invalid. Invalid IAM Instance Profile {field.lower()}")  # fmt: skip


def _lifecycle(asked: Mapping[str, Any], kind: str) -> str | None:
    market = (asked.get("InstanceMarketOptions") or {}).get("MarketType")
    if market and market not in INSTANCE_TYPES[kind]["SupportedUsageClasses"]:
        raise Refused("InvalidParameterCombination", f"The instance type '{kind}' is not available on the market"
                      f" '{market}'.")  # fmt: skip
    return None if market == "on-demand" else market


def _placement_group(backend: Any, asked: Mapping[str, Any], kind: str, zone: str) -> PlacementGroup | None:
    placement = asked.get("Placement") or {}
    name = placement.get("GroupName") or placement.get("GroupId")
    if not name:
        return None
    group: PlacementGroup = backend.get_placement_group(name)
    if group.strategy not in INSTANCE_TYPES[kind].get("PlacementGroupInfo", {}).get("SupportedStrategies", []):
        raise Refused("InvalidParameterCombination", f"{group.strategy.capitalize()} placement groups are not"
                      f" supported by the '{kind}' instance type.")  # fmt: skip
    if group.strategy != "cluster":
        return group
    if (asked.get("InstanceMarketOptions") or {}).get("MarketType") == "capacity-block":
        raise Refused("InvalidParameterCombination", "A capacity block cannot be used with a cluster placement group.")
    backend.check_zone_of_group(group, zone)
    return group


def check_tag_length(part: str, text: str) -> None:
    """Raises Refused where the Key or Value of a tag is too long."""
    if len(text) > TAG_LENGTHS[part]:
        raise Refused(
            "InvalidParameterValue", f"Tag {part.lower()} exceeds the maximum length of {TAG_LENGTHS[part]} characters"
        )


def _checked_tags(tags: Mapping[str, Mapping[str, str]], asked: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    """The tags, of which an instance's become paths where its metadata are to show them.

    Source: EC2 user guide, "View tags for your EC2 instances using instance metadata"; the words: seek-oss/aec#411.
    """
    for key, value in (tag for kind in tags.values() for tag in kind.items()):
        check_tag_length("Key", key)
        check_tag_length("Value", value)
    shown = (asked.get("MetadataOptions") or {}).get("InstanceMetadataTags") == "enabled"
    for key in tags.get("instance", {}) if shown else ():
        if key in _RESERVED_KEYS or not re.fullmatch(_SHOWN_KEY, key):
            raise Refused(
                "InvalidParameterValue",
                f"'{key}' is not a valid tag key. Tag keys must match pattern ({_SHOWN_KEY}), and must not be a"
                " reserved name ('.', '..', '_index')",
            )
    return tags


def _tags(template: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    tags: dict[str, dict[str, str]] = {}
    for specification in [*template.get("TagSpecifications", []), *(request.get("TagSpecifications") or [])]:
        kind = tags.setdefault(specification["ResourceType"], {})
        kind |= {tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", [])}
    return tags
