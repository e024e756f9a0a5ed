"""Place the interfaces of a launch: network card and device, subnet and groups, within the instance type's limits.

Source: EC2 user guide, "Network cards" and "Elastic Fabric Adapter".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box.api_errors import ApiError
from corral.box.ec2_network.subnets import no_free_address


@dataclass(frozen=True, slots=True, kw_only=True)
class NicPlacement:
    """One interface of each instance, with its network card and device index."""

    card: int
    device: int
    interface_type: str
    subnet: Any
    groups: tuple[str, ...]
    delete_on_termination: bool
    existing: str | None = None
    address: str | None = None
    description: str | None = None
    public: bool = False


def place_nics(
    backend: Any,
    nics: list[Any],
    subnet: Any,
    groups: tuple[str, ...],
    kind: str,
    count: int,
    parameters: Mapping[str, Any],
) -> tuple[NicPlacement, ...]:
    """The interfaces of each instance in the order of their cards; one primary interface by default."""
    if not nics:
        nics = [{"DeviceIndex": 0, "PrivateIpAddress": parameters.get("PrivateIpAddress")}]
        nics[0]["AssociatePublicIpAddress"] = subnet.map_public_ip_on_launch
    if len(nics) > 1 and any(nic.get("AssociatePublicIpAddress") for nic in nics):
        raise ApiError("InvalidParameterCombination", "The associatePublicIPAddress parameter cannot be specified when"
                      " launching with multiple network interfaces.")  # fmt: skip
    if count > 1 and any(nic.get("NetworkInterfaceId") or nic.get("PrivateIpAddress") for nic in nics):
        raise ApiError("InvalidParameterCombination", "A network interface ID or a private IP address may not be"
                      " specified when launching more than one instance.")  # fmt: skip
    placements = [_place_nic(backend, nic, subnet, groups) for nic in nics]
    return tuple(sorted(placements, key=lambda placement: (placement.card, placement.device)))


def _place_nic(backend: Any, nic: Mapping[str, Any], subnet: Any, groups: tuple[str, ...]) -> NicPlacement:
    card, device = card_and_device(nic)
    if existing := nic.get("NetworkInterfaceId"):
        return _place_existing(backend, nic, backend.get_network_interface(existing))
    subnet = backend.get_subnet(nic["SubnetId"]) if nic.get("SubnetId") else subnet
    own_groups = tuple(nic.get("Groups") or groups)
    backend.check_groups(own_groups, subnet.vpc_id)
    address = nic.get("PrivateIpAddress") or next(
        (entry["PrivateIpAddress"] for entry in nic.get("PrivateIpAddresses") or [] if entry.get("Primary")), None
    )
    if address:
        subnet.check_address(address)
    delete_on_termination = nic.get("DeleteOnTermination")
    return NicPlacement(
        card=card,
        device=device,
        interface_type=nic.get("InterfaceType") or "interface",
        subnet=subnet,
        groups=own_groups,
        delete_on_termination=True if delete_on_termination is None else bool(delete_on_termination),
        address=address,
        description=nic.get("Description"),
        public=bool(nic.get("AssociatePublicIpAddress")),
    )


def _place_existing(backend: Any, nic: Mapping[str, Any], eni: Any) -> NicPlacement:
    card, device = card_and_device(nic)
    if nic.get("SubnetId") or nic.get("Groups") or nic.get("PrivateIpAddress"):
        raise ApiError("InvalidParameterCombination", f"The network interface '{eni.id}' has a subnet, groups and an"
                      " address already; they may not be specified with its ID.")  # fmt: skip
    if eni.attachment_id:
        raise ApiError("InvalidNetworkInterface.InUse", f"Interface: [{eni.id}] in use.")
    return NicPlacement(
        card=card,
        device=device,
        interface_type=eni.interface_type,
        subnet=eni.subnet,
        groups=tuple(group.id for group in eni.group_set),
        delete_on_termination=bool(nic.get("DeleteOnTermination")),
        existing=eni.id,
    )


def card_and_device(nic: Mapping[str, Any]) -> tuple[int, int]:
    """The network card and device index that a specification names."""
    if nic.get("DeviceIndex") is None:
        raise ApiError("InvalidParameterValue", "Each network interface requires a device index.")
    return int(nic.get("NetworkCardIndex") or 0), int(nic["DeviceIndex"])


def check_cards(placements: tuple[NicPlacement, ...], kind: str) -> None:
    """Raises ApiError unless an instance of this type can have these interfaces."""
    network = INSTANCE_TYPES[kind]["NetworkInfo"]
    if placements[0].card or placements[0].device:
        raise ApiError("InvalidParameterValue", "A primary network interface (device index 0 on network card 0) is"
                      " required.")  # fmt: skip
    if placements[0].interface_type == "efa-only":
        raise ApiError("InvalidParameterValue", "The primary network interface cannot be of type 'efa-only'.")
    taken = [(placement.card, placement.device) for placement in placements]
    if len(set(taken)) < len(taken):
        raise ApiError("InvalidParameterValue", "Each network interface requires a unique device index on its card.")
    cards = {card["NetworkCardIndex"]: card for card in network["NetworkCards"]}
    for placement in placements:
        _check_card(placement, cards, kind)
    for index, card in cards.items():
        on_card = sum(placement.card == index for placement in placements)
        if on_card > card["MaximumNetworkInterfaces"]:
            raise ApiError("AttachmentLimitExceeded", f"Interface count {on_card} exceeds the limit for {kind} on"
                          f" network card {index}")  # fmt: skip
    efas = sum(placement.interface_type in ("efa", "efa-only") for placement in placements)
    if efas > network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0):
        raise ApiError("AttachmentLimitExceeded", f"EFA interface count {efas} exceeds the limit for {kind}")


def _check_card(placement: NicPlacement, cards: Mapping[int, Any], kind: str) -> None:
    if placement.card not in cards:
        raise ApiError("InvalidParameterValue", f"Network card index {placement.card} is not valid for instance type"
                      f" '{kind}', which has {len(cards)} network cards.")  # fmt: skip
    allowed = cards[placement.card].get("InterfaceTypes", ["interface"])
    if placement.interface_type not in allowed and len(cards) > 1:
        raise ApiError("AttachmentLimitExceeded", f"The limit of '{placement.interface_type}' interfaces on network"
                      f" card {placement.card} of instance type '{kind}' is 0.")  # fmt: skip
    if placement.interface_type not in allowed:
        raise ApiError("InvalidParameterValue", f"Interface type '{placement.interface_type}' is not supported on"
                      f" network card {placement.card} of instance type '{kind}'.")  # fmt: skip


def count_with_addresses(least: int, most: int, placements: tuple[NicPlacement, ...]) -> int:
    """How many instances the subnets have addresses for, at most `most`. Raises ApiError below `least`."""
    needing = [
        placement.subnet
        for placement in placements
        if placement.interface_type != "efa-only" and not placement.existing
    ]
    for subnet in needing:
        each = sum(other is subnet for other in needing)
        most = min(most, subnet.free_addresses // each)
        if most < least:
            raise no_free_address(subnet.id)
    return most
