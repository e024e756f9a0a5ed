"""VPC endpoints: gateway and interface endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import block, block_list, boolean, json_document, text, text_list, text_set
from corral.box.provider.provider_errors import NotFound, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State
from corral.box.provider.tables.ec2_requests import only, retag, tag_specifications

ENDPOINT_SETS = {
    "routeTableIds": "RouteTableIds",
    "subnetIds": "SubnetIds",
    "securityGroupIds": "SecurityGroupIds",
}


CHANGEABLE = frozenset({"policy", "privateDnsEnabled", "ipAddressType", "dnsOptions"})


def _create_endpoint(cloud: RegionClients, inputs: State) -> str:
    request = to_request(ENDPOINT.props, inputs, (*ENDPOINT_SETS, "vpcId", "serviceName", "vpcEndpointType", "policy"))
    request |= to_request(ENDPOINT.props, inputs, ("privateDnsEnabled", "ipAddressType", "dnsOptions"))
    return str(
        cloud.ec2.create_vpc_endpoint(**request, **tag_specifications("vpc-endpoint", inputs))["VpcEndpoint"][
            "VpcEndpointId"
        ]
    )


def _describe_endpoint(cloud: RegionClients, id: str) -> Mapping[str, Any]:
    with not_found_on("InvalidVpcEndpointId.NotFound", "InvalidVpcEndpoint.NotFound"):
        found = cloud.ec2.describe_vpc_endpoints(VpcEndpointIds=[id])["VpcEndpoints"]
    endpoint: Mapping[str, Any] = only(found, id)
    if endpoint["State"].lower() == "deleted":
        raise NotFound(f"{id} is deleted")
    return endpoint


def _apply_endpoint(cloud: RegionClients, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_endpoint(cloud, id)["State"].lower() == "available" or None, f"{id} available")


def _read_endpoint(cloud: RegionClients, id: str, known: State) -> State:
    endpoint = _describe_endpoint(cloud, id)
    groups = [group["GroupId"] for group in endpoint.get("Groups", [])]
    return {
        **from_response(ENDPOINT.state, endpoint),
        "securityGroupIds": groups,
        **_prefix_list(cloud, endpoint["ServiceName"], endpoint.get("VpcEndpointType", "Gateway")),
        "arn": cloud.arn("ec2", f"vpc-endpoint/{id}"),
        "tagsAll": tag_map(endpoint.get("Tags")),
    }


def _prefix_list(cloud: RegionClients, service: str, kind: str) -> State:
    if kind != "Gateway":
        return {}
    named = [{"Name": "prefix-list-name", "Values": [service]}]
    found = cloud.ec2.describe_managed_prefix_lists(Filters=named)["PrefixLists"]
    return {"prefixListId": found[0]["PrefixListId"]} if found else {}


def _update_endpoint(cloud: RegionClients, change: ResourceUpdate) -> None:
    request: dict[str, Any] = to_request(ENDPOINT.props, change.new, change.names & CHANGEABLE)
    for name, aws in ENDPOINT_SETS.items():
        old, new = set(change.old.get(name) or ()), set(change.new.get(name) or ())
        if change.touches(name):
            request |= _some(f"Add{aws}", new - old) | _some(f"Remove{aws}", old - new)
    if request:
        cloud.ec2.modify_vpc_endpoint(VpcEndpointId=change.id, **request)


def _replaces_private_dns(old: State, new: State) -> frozenset[str]:
    """Only an interface endpoint can change its private DNS in place."""
    interface = new.get("vpcEndpointType") == "Interface"
    return frozenset() if interface else frozenset({"privateDnsEnabled"})


def _some(name: str, ids: Iterable[str]) -> dict[str, list[str]]:
    return {name: sorted(ids)} if ids else {}


def _delete_endpoint(cloud: RegionClients, id: str, state: State) -> None:
    _describe_endpoint(cloud, id)
    cloud.ec2.delete_vpc_endpoints(VpcEndpointIds=[id])
    cloud.until_gone(lambda: _describe_endpoint(cloud, id), id)


ENDPOINT = Resource(
    token="aws:ec2/vpcEndpoint:VpcEndpoint",
    props={
        "vpcId": text(required=True, replaces=True),
        "serviceName": text(required=True, replaces=True),
        "vpcEndpointType": text(replaces=True, default="Gateway"),
        "policy": json_document(computed=True, aws="PolicyDocument"),
        "privateDnsEnabled": boolean(computed=True),
        "ipAddressType": text(computed=True),
        "dnsOptions": block({"dnsRecordIpType": text(computed=True)}, computed=True),
        "routeTableIds": text_set(computed=True),
        "subnetIds": text_set(computed=True),
        "securityGroupIds": text_set(computed=True),
    },
    outputs={
        "arn": text(),
        "ownerId": text(),
        "state": text(),
        "prefixListId": text(),
        "requesterManaged": boolean(),
        "networkInterfaceIds": text_list(changes_with="subnetIds"),
        "dnsEntries": block_list({"dnsName": text(), "hostedZoneId": text()}, changes_with="subnetIds"),
    },
    create=_create_endpoint,
    apply=_apply_endpoint,
    read=_read_endpoint,
    update=_update_endpoint,
    delete=_delete_endpoint,
    retag=retag,
    replaces_if=_replaces_private_dns,
)

RESOURCES = (ENDPOINT,)
