"""VPC endpoints, of the gateway and of the interface kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import block, blocks, document, flag, text, words, wordset
from corral.box.provider.tables.ec2 import only, retag, tagged
from corral.box.provider.translate import record, request, tag_map

ENDPOINT_SETS = {
    "routeTableIds": "RouteTableIds",
    "subnetIds": "SubnetIds",
    "securityGroupIds": "SecurityGroupIds",
}


CHANGEABLE = frozenset({"policy", "privateDnsEnabled", "ipAddressType", "dnsOptions"})


def _create_endpoint(cloud: Cloud, inputs: State) -> str:
    asked = request(ENDPOINT.props, inputs, (*ENDPOINT_SETS, "vpcId", "serviceName", "vpcEndpointType", "policy"))
    asked |= request(ENDPOINT.props, inputs, ("privateDnsEnabled", "ipAddressType", "dnsOptions"))
    return str(cloud.ec2.create_vpc_endpoint(**asked, **tagged("vpc-endpoint", inputs))["VpcEndpoint"]["VpcEndpointId"])


def _describe_endpoint(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("InvalidVpcEndpointId.NotFound", "InvalidVpcEndpoint.NotFound"):
        found = cloud.ec2.describe_vpc_endpoints(VpcEndpointIds=[id])["VpcEndpoints"]
    endpoint: Mapping[str, Any] = only(found, id)
    if endpoint["State"].lower() == "deleted":
        raise Gone(f"{id} is deleted")
    return endpoint


def _settle_endpoint(cloud: Cloud, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_endpoint(cloud, id)["State"].lower() == "available" or None, f"{id} available")


def _read_endpoint(cloud: Cloud, id: str, known: State) -> State:
    endpoint = _describe_endpoint(cloud, id)
    groups = [group["GroupId"] for group in endpoint.get("Groups", [])]
    return {
        **record(ENDPOINT.state, endpoint),
        "securityGroupIds": groups,
        **_prefix_list(cloud, endpoint["ServiceName"], endpoint.get("VpcEndpointType", "Gateway")),
        "arn": cloud.arn("ec2", f"vpc-endpoint/{id}"),
        "tagsAll": tag_map(endpoint.get("Tags")),
    }


def _prefix_list(cloud: Cloud, service: str, kind: str) -> State:
    if kind != "Gateway":
        return {}
    named = [{"Name": "prefix-list-name", "Values": [service]}]
    found = cloud.ec2.describe_managed_prefix_lists(Filters=named)["PrefixLists"]
    return {"prefixListId": found[0]["PrefixListId"]} if found else {}


def _update_endpoint(cloud: Cloud, change: Change) -> None:
    asked: dict[str, Any] = request(ENDPOINT.props, change.new, change.names & CHANGEABLE)
    for name, aws in ENDPOINT_SETS.items():
        old, new = set(change.old.get(name) or ()), set(change.new.get(name) or ())
        if change.touches(name):
            asked |= _some(f"Add{aws}", new - old) | _some(f"Remove{aws}", old - new)
    if asked:
        cloud.ec2.modify_vpc_endpoint(VpcEndpointId=change.id, **asked)


def _has_no_names(old: State, new: State) -> frozenset[str]:
    """Only an endpoint of the interface kind turns its private names on and off."""
    interface = new.get("vpcEndpointType") == "Interface"
    return frozenset() if interface else frozenset({"privateDnsEnabled"})


def _some(name: str, ids: Iterable[str]) -> dict[str, list[str]]:
    return {name: sorted(ids)} if ids else {}


def _delete_endpoint(cloud: Cloud, id: str, state: State) -> None:
    _describe_endpoint(cloud, id)
    cloud.ec2.delete_vpc_endpoints(VpcEndpointIds=[id])
    cloud.until_gone(lambda: _describe_endpoint(cloud, id), id)


ENDPOINT = Resource(
    token="aws:ec2/vpcEndpoint:VpcEndpoint",
    props={
        "vpcId": text(required=True, replaces=True),
        "serviceName": text(required=True, replaces=True),
        "vpcEndpointType": text(replaces=True, default="Gateway"),
        "policy": document(computed=True, aws="PolicyDocument"),
        "privateDnsEnabled": flag(computed=True),
        "ipAddressType": text(computed=True),
        "dnsOptions": block({"dnsRecordIpType": text(computed=True)}, computed=True),
        "routeTableIds": wordset(computed=True),
        "subnetIds": wordset(computed=True),
        "securityGroupIds": wordset(computed=True),
    },
    outputs={
        "arn": text(),
        "ownerId": text(),
        "state": text(),
        "prefixListId": text(),
        "requesterManaged": flag(),
        "networkInterfaceIds": words(changes_with="subnetIds"),
        "dnsEntries": blocks({"dnsName": text(), "hostedZoneId": text()}, changes_with="subnetIds"),
    },
    create=_create_endpoint,
    settle=_settle_endpoint,
    read=_read_endpoint,
    update=_update_endpoint,
    delete=_delete_endpoint,
    retag=retag,
    replaces_if=_has_no_names,
)

RESOURCES = (ENDPOINT,)
