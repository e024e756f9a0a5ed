"""Network interfaces that live on their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import flag, text, wordset
from corral.box.provider.tables.ec2 import ended, only, retag, tagged
from corral.box.provider.translate import record, request, tag_map


def _create_interface(cloud: Cloud, inputs: State) -> str:
    asked = request(INTERFACE.props, inputs, ("subnetId", "securityGroups", "description", "interfaceType"))
    addresses = list(inputs.get("privateIps") or ())
    if addresses:
        asked["PrivateIpAddresses"] = [
            {"PrivateIpAddress": address, "Primary": index == 0} for index, address in enumerate(addresses)
        ]
    made = cloud.ec2.create_network_interface(**asked, **tagged("network-interface", inputs))
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def _describe_interface(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("InvalidNetworkInterfaceID.NotFound"):
        found = cloud.ec2.describe_network_interfaces(NetworkInterfaceIds=[id])["NetworkInterfaces"]
    interface: Mapping[str, Any] = only(found, id)
    return interface


def _settle_interface(cloud: Cloud, id: str, inputs: State) -> None:
    wanted = inputs.get("sourceDestCheck", True)
    if _describe_interface(cloud, id).get("SourceDestCheck", True) != wanted:
        cloud.ec2.modify_network_interface_attribute(NetworkInterfaceId=id, SourceDestCheck={"Value": wanted})


def _read_interface(cloud: Cloud, id: str, known: State) -> State:
    interface = _describe_interface(cloud, id)
    return {
        **record(INTERFACE.state, interface),
        "privateIps": [one["PrivateIpAddress"] for one in interface.get("PrivateIpAddresses", [])],
        "securityGroups": [group["GroupId"] for group in interface.get("Groups", [])],
        "arn": cloud.arn("ec2", f"network-interface/{id}"),
        "tagsAll": tag_map(interface.get("TagSet")),
    }


def _update_interface(cloud: Cloud, change: Change) -> None:
    modify = cloud.ec2.modify_network_interface_attribute
    if change.touches("securityGroups"):
        modify(NetworkInterfaceId=change.id, Groups=change.new["securityGroups"])
    if change.touches("privateIps"):
        _assign(cloud, change)
    if change.touches("description"):
        modify(NetworkInterfaceId=change.id, Description={"Value": change.new.get("description", "")})


def _assign(cloud: Cloud, change: Change) -> None:
    old, new = set(change.old.get("privateIps") or ()), set(change.new["privateIps"])
    if old - new:
        cloud.ec2.unassign_private_ip_addresses(NetworkInterfaceId=change.id, PrivateIpAddresses=sorted(old - new))
    if new - old:
        cloud.ec2.assign_private_ip_addresses(NetworkInterfaceId=change.id, PrivateIpAddresses=sorted(new - old))


def _loses_primary(old: State, new: State) -> frozenset[str]:
    """Secondary addresses come and go; the primary one is the interface's for life."""
    kept = old.get("privateIp") in (new.get("privateIps") or ())
    return frozenset() if kept else frozenset({"privateIps"})


def _delete_interface(cloud: Cloud, id: str, state: State) -> None:
    cloud.until(lambda: _describe_interface(cloud, id)["Status"] == "available" or None, f"{id} free", timeout_s=60)
    gone = "InvalidNetworkInterfaceID.NotFound"
    ended(cloud, lambda: cloud.ec2.delete_network_interface(NetworkInterfaceId=id), id, gone)


INTERFACE = Resource(
    token="aws:ec2/networkInterface:NetworkInterface",
    props={
        "subnetId": text(required=True, replaces=True),
        "privateIps": wordset(computed=True),
        "securityGroups": wordset(computed=True, aws="Groups"),
        "description": text(),
        "interfaceType": text(replaces=True, computed=True),
        "sourceDestCheck": flag(default=True),
    },
    outputs={
        "arn": text(),
        "macAddress": text(),
        "ownerId": text(),
        "privateDnsName": text(),
        "privateIp": text(aws="PrivateIpAddress"),
    },
    create=_create_interface,
    settle=_settle_interface,
    read=_read_interface,
    update=_update_interface,
    delete=_delete_interface,
    retag=retag,
    replaces_if=_loses_primary,
)

RESOURCES = (INTERFACE,)
