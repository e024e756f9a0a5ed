"""Internet gateways, elastic addresses and NAT gateways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import text
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, State, Timeouts
from corral.box.provider.tables.ec2_requests import delete_and_wait, only, retag, tag_specifications


def _create_internet_gateway(cloud: RegionClients, inputs: State) -> str:
    made = cloud.ec2.create_internet_gateway(**tag_specifications("internet-gateway", inputs))
    return str(made["InternetGateway"]["InternetGatewayId"])


def _read_internet_gateway(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidInternetGatewayID.NotFound"):
        found = cloud.ec2.describe_internet_gateways(InternetGatewayIds=[id])["InternetGateways"]
    gateway = only(found, id)
    attached = gateway.get("Attachments") or [{}]
    return {
        "vpcId": attached[0].get("VpcId"),
        "ownerId": gateway.get("OwnerId"),
        "arn": cloud.arn("ec2", f"internet-gateway/{id}"),
        "tagsAll": tag_map(gateway.get("Tags")),
    }


def _apply_internet_gateway(cloud: RegionClients, id: str, inputs: State) -> None:
    attached, wanted = _read_internet_gateway(cloud, id, {})["vpcId"], inputs.get("vpcId")
    if attached and attached != wanted:
        cloud.ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=attached)
    if wanted and attached != wanted:
        cloud.ec2.attach_internet_gateway(InternetGatewayId=id, VpcId=wanted)


def _delete_internet_gateway(cloud: RegionClients, id: str, state: State) -> None:
    _apply_internet_gateway(cloud, id, {})
    delete_and_wait(cloud, lambda: cloud.ec2.delete_internet_gateway(InternetGatewayId=id), id)


INTERNET_GATEWAY = Resource(
    token="aws:ec2/internetGateway:InternetGateway",
    timeouts=Timeouts(create=1200, update=1200, delete=1200),
    props={"vpcId": text(computed=True)},
    outputs={"arn": text(), "ownerId": text()},
    create=_create_internet_gateway,
    apply=_apply_internet_gateway,
    read=_read_internet_gateway,
    delete=_delete_internet_gateway,
    retag=retag,
)


def _create_address(cloud: RegionClients, inputs: State) -> str:
    return str(cloud.ec2.allocate_address(Domain="vpc", **tag_specifications("elastic-ip", inputs))["AllocationId"])


def _read_address(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidAllocationID.NotFound"):
        address = only(cloud.ec2.describe_addresses(AllocationIds=[id])["Addresses"], id)
    dashed = str(address["PublicIp"]).replace(".", "-")
    return {
        **from_response(ADDRESS.state, address),
        "allocationId": id,
        "arn": cloud.arn("ec2", f"elastic-ip/{id}"),
        "publicDns": f"ec2-{dashed}.{_domain(cloud)}.{cloud.partition.dns_suffix}",
        "tagsAll": tag_map(address.get("Tags")),
    }


def _domain(cloud: RegionClients) -> str:
    return "compute-1" if cloud.region == "us-east-1" else f"{cloud.region}.compute"


def _delete_address(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("InvalidAllocationID.NotFound"):
        cloud.ec2.release_address(AllocationId=id)


ADDRESS = Resource(
    token="aws:ec2/eip:Eip",
    props={"domain": text(replaces=True, computed=True)},
    outputs={
        "arn": text(),
        "allocationId": text(),
        "associationId": text(),
        "publicIp": text(),
        "publicDns": text(),
        "privateIp": text(aws="PrivateIpAddress"),
        "networkInterface": text(aws="NetworkInterfaceId"),
    },
    create=_create_address,
    read=_read_address,
    delete=_delete_address,
    retag=retag,
)


def _create_nat(cloud: RegionClients, inputs: State) -> str:
    request = to_request(NAT.props, inputs)
    return str(
        cloud.ec2.create_nat_gateway(**request, **tag_specifications("natgateway", inputs))["NatGateway"][
            "NatGatewayId"
        ]
    )


def _describe_nat(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("NatGatewayNotFound", "InvalidNatGatewayID.NotFound"):
        nat: Mapping[str, Any] = only(cloud.ec2.describe_nat_gateways(NatGatewayIds=[id])["NatGateways"], id)
    if nat["State"] == "deleted":
        raise NotFound(f"{id} is deleted")
    return nat


def _apply_nat(cloud: RegionClients, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_nat(cloud, id)["State"] == "available" or None, f"{id} available")


def _read_nat(cloud: RegionClients, id: str, known: State) -> State:
    nat = _describe_nat(cloud, id)
    address = (nat.get("NatGatewayAddresses") or [{}])[0]
    return {**from_response(NAT.state, {**nat, **address}), "tagsAll": tag_map(nat.get("Tags"))}


def _delete_nat(cloud: RegionClients, id: str, state: State) -> None:
    _describe_nat(cloud, id)
    cloud.ec2.delete_nat_gateway(NatGatewayId=id)
    cloud.until_gone(lambda: _describe_nat(cloud, id), id)


NAT = Resource(
    token="aws:ec2/natGateway:NatGateway",
    timeouts=Timeouts(delete=1800),
    props={
        "allocationId": text(replaces=True),
        "connectivityType": text(replaces=True, default="public"),
        "privateIp": text(replaces=True, computed=True, aws="PrivateIpAddress"),
        "subnetId": text(required=True, replaces=True),
    },
    outputs={"associationId": text(), "networkInterfaceId": text(), "publicIp": text()},
    create=_create_nat,
    apply=_apply_nat,
    read=_read_nat,
    delete=_delete_nat,
    retag=retag,
)

RESOURCES = (
    INTERNET_GATEWAY,
    ADDRESS,
    NAT,
)
