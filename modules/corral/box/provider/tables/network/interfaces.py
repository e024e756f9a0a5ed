"""Network interfaces that are not part of an instance's launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import boolean, text, text_set
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.ec2_requests import delete_and_wait, only, retag, tag_specifications


def _create_interface(cloud: RegionClients, inputs: State) -> str:
    request = to_request(INTERFACE.props, inputs, ("subnetId", "securityGroups", "description", "interfaceType"))
    addresses = list(inputs.get("privateIps") or ())
    if addresses:
        request["PrivateIpAddresses"] = [
            {"PrivateIpAddress": address, "Primary": index == 0} for index, address in enumerate(addresses)
        ]
    made = cloud.ec2.create_network_interface(**request, **tag_specifications("network-interface", inputs))
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def _describe_interface(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("InvalidNetworkInterfaceID.NotFound"):
        found = cloud.ec2.describe_network_interfaces(NetworkInterfaceIds=[id])["NetworkInterfaces"]
    interface: Mapping[str, Any] = only(found, id)
    return interface


def _apply_interface(cloud: RegionClients, id: str, inputs: State) -> None:
    wanted = inputs.get("sourceDestCheck", True)
    if _describe_interface(cloud, id).get("SourceDestCheck", True) != wanted:
        cloud.ec2.modify_network_interface_attribute(NetworkInterfaceId=id, SourceDestCheck={"Value": wanted})


def _read_interface(cloud: RegionClients, id: str, known: State) -> State:
    interface = _describe_interface(cloud, id)
    return {
        **from_response(INTERFACE.state, interface),
        "privateIps": [one["PrivateIpAddress"] for one in interface.get("PrivateIpAddresses", [])],
        "securityGroups": [group["GroupId"] for group in interface.get("Groups", [])],
        "arn": cloud.arn("ec2", f"network-interface/{id}"),
        "tagsAll": tag_map(interface.get("TagSet")),
    }


def _update_interface(cloud: RegionClients, change: ResourceUpdate) -> None:
    modify = cloud.ec2.modify_network_interface_attribute
    if change.touches("securityGroups"):
        modify(NetworkInterfaceId=change.id, Groups=change.new["securityGroups"])
    if change.touches("privateIps"):
        _assign(cloud, change)
    if change.touches("description"):
        modify(NetworkInterfaceId=change.id, Description={"Value": change.new.get("description", "")})


def _assign(cloud: RegionClients, change: ResourceUpdate) -> None:
    old, new = set(change.old.get("privateIps") or ()), set(change.new["privateIps"])
    if old - new:
        cloud.ec2.unassign_private_ip_addresses(NetworkInterfaceId=change.id, PrivateIpAddresses=sorted(old - new))
    if new - old:
        cloud.ec2.assign_private_ip_addresses(NetworkInterfaceId=change.id, PrivateIpAddresses=sorted(new - old))


def _loses_primary(old: State, new: State) -> frozenset[str]:
    """Secondary addresses can change in place; the primary address cannot."""
    kept = old.get("privateIp") in (new.get("privateIps") or ())
    return frozenset() if kept else frozenset({"privateIps"})


def _delete_interface(cloud: RegionClients, id: str, state: State) -> None:
    cloud.until(lambda: _describe_interface(cloud, id)["Status"] == "available" or None, f"{id} free")
    gone = "InvalidNetworkInterfaceID.NotFound"
    delete_and_wait(cloud, lambda: cloud.ec2.delete_network_interface(NetworkInterfaceId=id), id, gone)


INTERFACE = Resource(
    token="aws:ec2/networkInterface:NetworkInterface",
    props={
        "subnetId": text(required=True, replaces=True),
        "privateIps": text_set(computed=True),
        "securityGroups": text_set(computed=True, aws="Groups"),
        "description": text(),
        "interfaceType": text(replaces=True, computed=True),
        "sourceDestCheck": boolean(default=True),
    },
    outputs={
        "arn": text(),
        "macAddress": text(),
        "ownerId": text(),
        "privateDnsName": text(),
        "privateIp": text(aws="PrivateIpAddress"),
    },
    create=_create_interface,
    apply=_apply_interface,
    read=_read_interface,
    update=_update_interface,
    delete=_delete_interface,
    retag=retag,
    replaces_if=_loses_primary,
)

RESOURCES = (INTERFACE,)
