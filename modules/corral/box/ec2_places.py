"""Where the interfaces of a launch sit: which network card and device, in which subnet and groups, and whether the
instance type has room for them. Source: EC2 user guide, "Network cards" and "Elastic Fabric Adapter".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box.ec2_subnets import no_free_address
from corral.box.refusals import Refused


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


def find_places(
    backend: Any,
    nics: list[Any],
    subnet: Any,
    groups: tuple[str, ...],
    kind: str,
    count: int,
    asked: Mapping[str, Any],
) -> tuple[NetworkCardPlace, ...]:
    """The interfaces of each instance in the order of their cards; one primary interface where none is asked for."""
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
    card, device = place_of(nic)
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
    card, device = place_of(nic)
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


def place_of(nic: Mapping[str, Any]) -> tuple[int, int]:
    """The network card and device index that a specification names."""
    if nic.get("DeviceIndex") is None:
        raise Refused("InvalidParameterValue", "Each network interface requires a device index.")
    return int(nic.get("NetworkCardIndex") or 0), int(nic["DeviceIndex"])


def check_cards(places: tuple[NetworkCardPlace, ...], kind: str) -> None:
    """Raises Refused unless an instance of this type can have these interfaces."""
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


def count_with_addresses(least: int, most: int, places: tuple[NetworkCardPlace, ...]) -> int:
    """How many instances the subnets have addresses for, up to the most that were asked for."""
    needing = [place.subnet for place in places if place.interface_type != "efa-only" and not place.existing]
    for subnet in needing:
        each = sum(other is subnet for other in needing)
        most = min(most, subnet.free_addresses // each)
        if most < least:
            raise no_free_address(subnet.id)
    return most
