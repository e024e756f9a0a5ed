"""What a RunInstances call asks for, judged as AWS judges it; nothing exists or changes here.

`plan_launch` merges the launch template with the request and returns a `Launch`, or raises the error that AWS gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.utils import filter_iam_instance_profiles, parse_user_data

from corral.box.ec2_placement import PlacementGroup
from corral.box.ec2_subnets import no_free_address
from corral.box.refusals import Refused

DEFAULT_TYPE = "m1.small"
ROOT_GIB = 8
INTERFACE_REPLACES = {
    "SubnetId": "subnet ID",
    "SecurityGroupIds": "security groups",
    "SecurityGroups": "security groups",
    "PrivateIpAddress": "private IP address",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCardPlace:
    """One interface of each instance, and where it sits."""

    card: int
    device: int
    interface_type: str
    subnet: Any
    groups: tuple[str, ...]
    ends: bool  # with the instance
    existing: str | None = None
    address: str | None = None
    description: str | None = None
    public: bool = False


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
    user_data: Any


def plan_launch(backend: Any, request: Mapping[str, Any]) -> Launch:
    """The launch that the request asks for. Raises Refused with AWS's error if it cannot be."""
    template = _template_data(backend, request.get("LaunchTemplate"))
    asked = {**template, **request}
    count = _count(asked)
    kind = _instance_type(asked)
    image = _image(backend, asked)
    nics = asked.get("NetworkInterfaces") or []
    _check_not_both(asked, nics)
    subnet = _subnet(backend, asked, nics)
    groups = _groups(backend, asked, nics, subnet)
    places = _places(backend, nics, subnet, groups, kind, count, asked)
    _check_cards(places, kind)
    _check_zone(kind, subnet.availability_zone)
    _check_profile(backend, asked.get("IamInstanceProfile"))
    return Launch(
        asked=asked,
        count=_count_with_addresses(int(asked["MinCount"]), count, places),
        instance_type=kind,
        subnet=subnet,
        places=places,
        groups=places[0].groups,
        disks=_disks(image, asked.get("BlockDeviceMappings") or []),
        tags=_tags(template, request),
        lifecycle=_lifecycle(asked, kind),
        placement_group=_placement_group(backend, asked, kind, subnet.availability_zone),
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


def _count_with_addresses(least: int, most: int, places: tuple[NetworkCardPlace, ...]) -> int:
    """How many instances the subnets have addresses for, up to the most that were asked for."""
    needing = [place.subnet for place in places if place.interface_type != "efa-only" and not place.existing]
    for subnet in needing:
        each = sum(other is subnet for other in needing)
        most = min(most, subnet.free_addresses // each)
        if most < least:
            raise no_free_address(subnet.id)
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
    first: Mapping[str, Any] = next((nic for nic in nics if _place(nic) == (0, 0)), {})
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


def _places(
    backend: Any,
    nics: list[Any],
    subnet: Any,
    groups: tuple[str, ...],
    kind: str,
    count: int,
    asked: Mapping[str, Any],
) -> tuple[NetworkCardPlace, ...]:
    if not nics:
        nics = [{"DeviceIndex": 0, "PrivateIpAddress": asked.get("PrivateIpAddress")}]
        nics[0]["AssociatePublicIpAddress"] = subnet.map_public_ip_on_launch
    if len(nics) > 1 and any(nic.get("AssociatePublicIpAddress") for nic in nics):
        raise Refused("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified when"
                      " launching with multiple network interfaces.")  # fmt: skip
    if count > 1 and any(nic.get("NetworkInterfaceId") or nic.get("PrivateIpAddress") for nic in nics):
        raise Refused("InvalidParameterCombination", "A network interface ID or a private IP address may not be"
                      " specified when launching more than one instance.")  # fmt: skip
    places = [_one_place(backend, nic, subnet, groups) for nic in nics]
    return tuple(sorted(places, key=lambda place: (place.card, place.device)))


def _one_place(backend: Any, nic: Mapping[str, Any], subnet: Any, groups: tuple[str, ...]) -> NetworkCardPlace:
    card, device = _place(nic)
    if existing := nic.get("NetworkInterfaceId"):
        return _existing_place(backend, nic, backend.get_network_interface(existing))
    subnet = backend.get_subnet(nic["SubnetId"]) if nic.get("SubnetId") else subnet
    own_groups = tuple(nic.get("Groups") or groups)
    backend.check_groups(own_groups, subnet.vpc_id)
    address = nic.get("PrivateIpAddress") or next(
        (entry["PrivateIpAddress"] for entry in nic.get("PrivateIpAddresses") or [] if entry.get("Primary")), None
    )
    if address:
        subnet.check_address(address)
    ends = nic.get("DeleteOnTermination")
    return NetworkCardPlace(
        card=card,
        device=device,
        interface_type=nic.get("InterfaceType") or "interface",
        subnet=subnet,
        groups=own_groups,
        ends=True if ends is None else bool(ends),
        address=address,
        description=nic.get("Description"),
        public=bool(nic.get("AssociatePublicIpAddress")),
    )


def _existing_place(backend: Any, nic: Mapping[str, Any], eni: Any) -> NetworkCardPlace:
    card, device = _place(nic)
    if nic.get("SubnetId") or nic.get("Groups") or nic.get("PrivateIpAddress"):
        raise Refused("InvalidParameterCombination", f"The network interface '{eni.id}' has a subnet, groups and an"
                      " address already; they may not be specified with its ID.")  # fmt: skip
    if eni.attachment_id:
        raise Refused("InvalidNetworkInterface.InUse", f"Interface: [{eni.id}] in use.")
    return NetworkCardPlace(
        card=card,
        device=device,
        interface_type=eni.interface_type,
        subnet=eni.subnet,
        groups=tuple(group.id for group in eni.group_set),
        ends=bool(nic.get("DeleteOnTermination")),
        existing=eni.id,
    )


def _place(nic: Mapping[str, Any]) -> tuple[int, int]:
    if nic.get("DeviceIndex") is None:
        raise Refused("InvalidParameterValue", "Each network interface requires a device index.")
    return int(nic.get("NetworkCardIndex") or 0), int(nic["DeviceIndex"])


def _check_cards(places: tuple[NetworkCardPlace, ...], kind: str) -> None:
    network = INSTANCE_TYPES[kind]["NetworkInfo"]
    if places[0].card or places[0].device:
        raise Refused("InvalidParameterValue", "A primary network interface (device index 0 on network card 0) is"
                      " required.")  # fmt: skip
    if places[0].interface_type == "efa-only":
        raise Refused("InvalidParameterValue", "The primary network interface cannot be of type 'efa-only'.")
    taken = [(place.card, place.device) for place in places]
    if len(set(taken)) < len(taken):
        raise Refused("InvalidParameterValue", "Each network interface requires a unique device index on its card.")
    cards = {card["NetworkCardIndex"]: card for card in network["NetworkCards"]}
    for place in places:
        _check_card(place, cards, kind)
    for index, card in cards.items():
        on_card = sum(place.card == index for place in places)
        if on_card > card["MaximumNetworkInterfaces"]:
            raise Refused("AttachmentLimitExceeded", f"Interface count {on_card} exceeds the limit for {kind} on"
                          f" network card {index}")  # fmt: skip
    efas = sum(place.interface_type in ("efa", "efa-only") for place in places)
    if efas > network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0):
        raise Refused("AttachmentLimitExceeded", f"EFA interface count {efas} exceeds the limit for {kind}")


def _check_card(place: NetworkCardPlace, cards: Mapping[int, Any], kind: str) -> None:
    if place.card not in cards:
        raise Refused("InvalidParameterValue", f"Network card index {place.card} is not valid for instance type"
                      f" '{kind}', which has {len(cards)} network cards.")  # fmt: skip
    allowed = cards[place.card].get("InterfaceTypes", ["interface"])
    if place.interface_type not in allowed and len(cards) > 1:
        raise Refused("AttachmentLimitExceeded", f"The limit of '{place.interface_type}' interfaces on network card"
                      f" {place.card} of instance type '{kind}' is 0.")  # fmt: skip
    if place.interface_type not in allowed:
        raise Refused("InvalidParameterValue", f"Interface type '{place.interface_type}' is not supported on network"
                      f" card {place.card} of instance type '{kind}'.")  # fmt: skip


def _check_zone(kind: str, zone: str) -> None:
    region = zone[:-1]
    offers = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region)
    if offers is None:
        return  # moto has no list for this region
    zones = sorted(offer["Location"] for offer in offers if offer["InstanceType"] == kind)
    if zone not in zones:
        raise Refused("Unsupported", f"Your requested instance type ({kind}) is not supported in your requested"
                      f" Availability Zone ({zone}). Please retry your request by not specifying an Availability Zone"
                      f" or choosing {', '.join(zones)}.")  # fmt: skip


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
    return market


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
    for other in backend.all_instances():
        in_group = other.placement.group_name == group.name and other.state != "terminated"
        if in_group and other.placement.zone != zone:
            raise Refused("InvalidParameterValue", f"Instances in the Placement Group '{group.name}' must be launched"
                          f" in the {other.placement.zone} Availability Zone.")  # fmt: skip
    return group


def _disks(image: Any, mappings: list[Any]) -> tuple[Mapping[str, Any], ...]:
    disks = {image.root_device_name: {"device": image.root_device_name, "size": ROOT_GIB, "ends": True}}
    for mapping in mappings:
        device = mapping.get("DeviceName")
        if not device:
            raise Refused("MissingParameter", "The request must contain the parameter deviceName")
        if "NoDevice" in mapping:
            disks.pop(device, None)
        elif "Ebs" in mapping:
            disks[device] = _disk(mapping, disks.get(device))
    return tuple(disks[device] for device in sorted(disks))


def _disk(mapping: Mapping[str, Any], image_disk: Mapping[str, Any] | None) -> dict[str, Any]:
    ebs = mapping["Ebs"] or {}
    size = ebs.get("VolumeSize") or (image_disk or {}).get("size")
    if not size and not ebs.get("SnapshotId"):
        raise Refused("MissingParameter", "The request must contain the parameter size or snapshotId")
    ends = ebs.get("DeleteOnTermination")
    wanted = {
        "snapshot_id": ebs.get("SnapshotId"),
        "encrypted": bool(ebs.get("Encrypted")),
        "kms_key_id": ebs.get("KmsKeyId"),
        "volume_type": ebs.get("VolumeType"),
        "iops": ebs.get("Iops"),
        "throughput": ebs.get("Throughput"),
    }
    ends = bool(image_disk) if ends is None else bool(ends)
    return {"device": mapping["DeviceName"], "size": size, "ends": ends, **wanted}


def _tags(template: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    tags: dict[str, dict[str, str]] = {}
    for specification in [*template.get("TagSpecifications", []), *(request.get("TagSpecifications") or [])]:
        kind = tags.setdefault(specification["ResourceType"], {})
        kind |= {tag["Key"]: tag.get("Value", "") for tag in specification.get("Tags", [])}
    return tags
