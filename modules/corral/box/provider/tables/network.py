"""VPCs and what routes in them: subnets, gateways, addresses, route tables, endpoints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import block, blocks, document, flag, text, words, wordset
from corral.box.provider.tables.ec2 import ended, only, retag, tagged
from corral.box.provider.translate import record, request, tag_map

# --- VPC

VPC_SWITCHES = ("enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")


def _create_vpc(cloud: Cloud, inputs: State) -> str:
    asked = request(VPC.props, inputs, ("cidrBlock", "instanceTenancy"))
    return str(cloud.ec2.create_vpc(**asked, **tagged("vpc", inputs))["Vpc"]["VpcId"])


def _settle_vpc(cloud: Cloud, id: str, inputs: State) -> None:
    for name in VPC_SWITCHES:
        if name in inputs:
            cloud.ec2.modify_vpc_attribute(VpcId=id, **{name[0].upper() + name[1:]: {"Value": inputs[name]}})


def _read_vpc(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidVpcID.NotFound"):
        vpc = only(cloud.ec2.describe_vpcs(VpcIds=[id])["Vpcs"], id)
    switches = {
        name: cloud.ec2.describe_vpc_attribute(VpcId=id, Attribute=name)[name[0].upper() + name[1:]]["Value"]
        for name in VPC_SWITCHES
    }
    return {
        **record(VPC.state, vpc),
        **switches,
        **_vpc_companions(cloud, id),
        "arn": cloud.arn("ec2", f"vpc/{id}"),
        "tagsAll": tag_map(vpc.get("Tags")),
    }


def _vpc_companions(cloud: Cloud, id: str) -> State:
    """The objects that AWS makes with a VPC."""
    of_vpc = {"Name": "vpc-id", "Values": [id]}
    acls = cloud.ec2.describe_network_acls(Filters=[of_vpc, {"Name": "default", "Values": ["true"]}])["NetworkAcls"]
    groups = cloud.ec2.describe_security_groups(Filters=[of_vpc, {"Name": "group-name", "Values": ["default"]}])
    main = {"Name": "association.main", "Values": ["true"]}
    tables = cloud.ec2.describe_route_tables(Filters=[of_vpc, main])["RouteTables"]
    return {
        "defaultNetworkAclId": acls[0]["NetworkAclId"] if acls else None,
        "defaultSecurityGroupId": groups["SecurityGroups"][0]["GroupId"] if groups["SecurityGroups"] else None,
        "defaultRouteTableId": tables[0]["RouteTableId"] if tables else None,
        "mainRouteTableId": tables[0]["RouteTableId"] if tables else None,
    }


def _delete_vpc(cloud: Cloud, id: str, state: State) -> None:
    ended(cloud, lambda: cloud.ec2.delete_vpc(VpcId=id), id, "InvalidVpcID.NotFound")


VPC = Resource(
    token="aws:ec2/vpc:Vpc",
    props={
        "cidrBlock": text(required=True, replaces=True),
        "instanceTenancy": text(replaces=True, default="default"),
        "enableDnsSupport": flag(default=True),
        "enableDnsHostnames": flag(computed=True),
        "enableNetworkAddressUsageMetrics": flag(computed=True),
    },
    outputs={
        "arn": text(),
        "ownerId": text(),
        "dhcpOptionsId": text(),
        "defaultNetworkAclId": text(),
        "defaultRouteTableId": text(),
        "defaultSecurityGroupId": text(),
        "mainRouteTableId": text(),
    },
    create=_create_vpc,
    settle=_settle_vpc,
    read=_read_vpc,
    delete=_delete_vpc,
    retag=retag,
)

# --- subnet

SUBNET_SWITCHES = ("mapPublicIpOnLaunch", "assignIpv6AddressOnCreation")


def _create_subnet(cloud: Cloud, inputs: State) -> str:
    asked = request(SUBNET.props, inputs, ("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId"))
    return str(cloud.ec2.create_subnet(**asked, **tagged("subnet", inputs))["Subnet"]["SubnetId"])


def _settle_subnet(cloud: Cloud, id: str, inputs: State) -> None:
    for name in SUBNET_SWITCHES:
        if name in inputs:
            cloud.ec2.modify_subnet_attribute(SubnetId=id, **{name[0].upper() + name[1:]: {"Value": inputs[name]}})


def _read_subnet(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidSubnetID.NotFound"):
        subnet = only(cloud.ec2.describe_subnets(SubnetIds=[id])["Subnets"], id)
    return {**record(SUBNET.state, subnet), "tagsAll": tag_map(subnet.get("Tags"))}


def _delete_subnet(cloud: Cloud, id: str, state: State) -> None:
    ended(cloud, lambda: cloud.ec2.delete_subnet(SubnetId=id), id, "InvalidSubnetID.NotFound")


SUBNET = Resource(
    token="aws:ec2/subnet:Subnet",
    props={
        "vpcId": text(required=True, replaces=True),
        "cidrBlock": text(required=True, replaces=True),
        "availabilityZone": text(computed=True, replaces=True),
        "availabilityZoneId": text(computed=True, replaces=True),
        "mapPublicIpOnLaunch": flag(default=False),
        "assignIpv6AddressOnCreation": flag(default=False),
    },
    outputs={"arn": text(aws="SubnetArn"), "ownerId": text()},
    create=_create_subnet,
    settle=_settle_subnet,
    read=_read_subnet,
    delete=_delete_subnet,
    retag=retag,
)


def _create_reservation(cloud: Cloud, inputs: State) -> str:
    made = cloud.ec2.create_subnet_cidr_reservation(**request(RESERVATION.props, inputs))
    return str(made["SubnetCidrReservation"]["SubnetCidrReservationId"])


def _read_reservation(cloud: Cloud, id: str, known: State) -> State:
    subnet, _, reservation = id.rpartition(":")  # an import says SUBNET:RESERVATION
    with absence("InvalidSubnetID.NotFound"):
        answer = cloud.ec2.get_subnet_cidr_reservations(SubnetId=subnet or known["subnetId"])
    found = [one for one in answer["SubnetIpv4CidrReservations"] if one["SubnetCidrReservationId"] == reservation]
    return {**record(RESERVATION.state, only(found, id)), "reservationId": reservation}


def _delete_reservation(cloud: Cloud, id: str, state: State) -> None:
    with absence("InvalidSubnetCidrReservationID.NotFound"):
        cloud.ec2.delete_subnet_cidr_reservation(SubnetCidrReservationId=id)


RESERVATION = Resource(
    token="aws:ec2/subnetCidrReservation:SubnetCidrReservation",
    props={
        "subnetId": text(required=True, replaces=True),
        "cidrBlock": text(required=True, replaces=True, aws="Cidr"),
        "reservationType": text(required=True, replaces=True),
        "description": text(replaces=True, kept=True),  # moto does not tell it
    },
    outputs={"ownerId": text()},
    create=_create_reservation,
    read=_read_reservation,
    delete=_delete_reservation,
)

# --- gateways and addresses


def _create_internet_gateway(cloud: Cloud, inputs: State) -> str:
    made = cloud.ec2.create_internet_gateway(**tagged("internet-gateway", inputs))
    return str(made["InternetGateway"]["InternetGatewayId"])


def _read_internet_gateway(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidInternetGatewayID.NotFound"):
        found = cloud.ec2.describe_internet_gateways(InternetGatewayIds=[id])["InternetGateways"]
    gateway = only(found, id)
    attached = gateway.get("Attachments") or [{}]
    return {
        "vpcId": attached[0].get("VpcId"),
        "ownerId": gateway.get("OwnerId"),
        "arn": cloud.arn("ec2", f"internet-gateway/{id}"),
        "tagsAll": tag_map(gateway.get("Tags")),
    }


def _settle_internet_gateway(cloud: Cloud, id: str, inputs: State) -> None:
    attached, wanted = _read_internet_gateway(cloud, id, {})["vpcId"], inputs.get("vpcId")
    if attached and attached != wanted:
        cloud.ec2.detach_internet_gateway(InternetGatewayId=id, VpcId=attached)
    if wanted and attached != wanted:
        cloud.ec2.attach_internet_gateway(InternetGatewayId=id, VpcId=wanted)


def _delete_internet_gateway(cloud: Cloud, id: str, state: State) -> None:
    _settle_internet_gateway(cloud, id, {})
    ended(cloud, lambda: cloud.ec2.delete_internet_gateway(InternetGatewayId=id), id)


INTERNET_GATEWAY = Resource(
    token="aws:ec2/internetGateway:InternetGateway",
    props={"vpcId": text(computed=True)},
    outputs={"arn": text(), "ownerId": text()},
    create=_create_internet_gateway,
    settle=_settle_internet_gateway,
    read=_read_internet_gateway,
    delete=_delete_internet_gateway,
    retag=retag,
)


def _create_address(cloud: Cloud, inputs: State) -> str:
    return str(cloud.ec2.allocate_address(Domain="vpc", **tagged("elastic-ip", inputs))["AllocationId"])


def _read_address(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidAllocationID.NotFound"):
        address = only(cloud.ec2.describe_addresses(AllocationIds=[id])["Addresses"], id)
    dashed = str(address["PublicIp"]).replace(".", "-")
    return {
        **record(ADDRESS.state, address),
        "allocationId": id,
        "arn": cloud.arn("ec2", f"elastic-ip/{id}"),
        "publicDns": f"ec2-{dashed}.{_domain(cloud)}.amazonaws.com",
        "tagsAll": tag_map(address.get("Tags")),
    }


def _domain(cloud: Cloud) -> str:
    return "compute-1" if cloud.region == "us-east-1" else f"{cloud.region}.compute"


def _delete_address(cloud: Cloud, id: str, state: State) -> None:
    with absence("InvalidAllocationID.NotFound"):
        cloud.ec2.release_address(AllocationId=id)


ADDRESS = Resource(
    token="aws:ec2/eip:Eip",
    props={"domain": text(replaces=True, default="vpc")},
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


def _create_nat(cloud: Cloud, inputs: State) -> str:
    asked = request(NAT.props, inputs)
    return str(cloud.ec2.create_nat_gateway(**asked, **tagged("natgateway", inputs))["NatGateway"]["NatGatewayId"])


def _describe_nat(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("NatGatewayNotFound", "InvalidNatGatewayID.NotFound"):
        nat: Mapping[str, Any] = only(cloud.ec2.describe_nat_gateways(NatGatewayIds=[id])["NatGateways"], id)
    if nat["State"] == "deleted":
        raise Gone(f"{id} is deleted")
    return nat


def _settle_nat(cloud: Cloud, id: str, inputs: State) -> None:
    cloud.until(lambda: _describe_nat(cloud, id)["State"] == "available" or None, f"{id} available")


def _read_nat(cloud: Cloud, id: str, known: State) -> State:
    nat = _describe_nat(cloud, id)
    address = (nat.get("NatGatewayAddresses") or [{}])[0]
    return {**record(NAT.state, {**nat, **address}), "tagsAll": tag_map(nat.get("Tags"))}


def _delete_nat(cloud: Cloud, id: str, state: State) -> None:
    _describe_nat(cloud, id)
    cloud.ec2.delete_nat_gateway(NatGatewayId=id)
    cloud.until_gone(lambda: _describe_nat(cloud, id), id)


NAT = Resource(
    token="aws:ec2/natGateway:NatGateway",
    props={
        "allocationId": text(replaces=True),
        "connectivityType": text(replaces=True, default="public"),
        "privateIp": text(replaces=True, computed=True, aws="PrivateIpAddress"),
        "subnetId": text(required=True, replaces=True),
    },
    outputs={"associationId": text(), "networkInterfaceId": text(), "publicIp": text()},
    create=_create_nat,
    settle=_settle_nat,
    read=_read_nat,
    delete=_delete_nat,
    retag=retag,
)

# --- routes


def _create_table(cloud: Cloud, inputs: State) -> str:
    made = cloud.ec2.create_route_table(VpcId=inputs["vpcId"], **tagged("route-table", inputs))
    return str(made["RouteTable"]["RouteTableId"])


def _describe_table(cloud: Cloud, id: str) -> Mapping[str, Any]:
    with absence("InvalidRouteTableID.NotFound"):
        table: Mapping[str, Any] = only(cloud.ec2.describe_route_tables(RouteTableIds=[id])["RouteTables"], id)
    return table


def _read_table(cloud: Cloud, id: str, known: State) -> State:
    table = _describe_table(cloud, id)
    return {
        **record(TABLE.state, table),
        "arn": cloud.arn("ec2", f"route-table/{id}"),
        "tagsAll": tag_map(table.get("Tags")),
    }


def _delete_table(cloud: Cloud, id: str, state: State) -> None:
    ended(cloud, lambda: cloud.ec2.delete_route_table(RouteTableId=id), id, "InvalidRouteTableID.NotFound")


TABLE = Resource(
    token="aws:ec2/routeTable:RouteTable",
    props={"vpcId": text(required=True, replaces=True)},
    outputs={"arn": text(), "ownerId": text()},
    create=_create_table,
    read=_read_table,
    delete=_delete_table,
    retag=retag,
)


def _destination(values: State) -> str:
    return str(values.get("destinationCidrBlock") or values.get("destinationPrefixListId"))


def _create_route(cloud: Cloud, inputs: State) -> str:
    cloud.ec2.create_route(**request(ROUTE.props, inputs))
    return f"{inputs['routeTableId']}_{_destination(inputs)}"


def _read_route(cloud: Cloud, id: str, known: State) -> State:
    table, _, destination = id.partition("_")
    for route in _describe_table(cloud, table).get("Routes", []):
        found = record(ROUTE.state, route)
        if _destination(found) == destination:
            return {**found, "routeTableId": table}
    raise Gone(f"{table} has no route to {destination}")


def _update_route(cloud: Cloud, change: Change) -> None:
    cloud.ec2.replace_route(**request(ROUTE.props, change.new))


def _delete_route(cloud: Cloud, id: str, state: State) -> None:
    where = request(ROUTE.props, state, ("routeTableId", "destinationCidrBlock", "destinationPrefixListId"))
    with absence("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"):
        cloud.ec2.delete_route(**where)


ROUTE = Resource(
    token="aws:ec2/route:Route",
    props={
        "routeTableId": text(required=True, replaces=True),
        "destinationCidrBlock": text(replaces=True),
        "destinationPrefixListId": text(replaces=True),
        "gatewayId": text(),
        "natGatewayId": text(),
        "networkInterfaceId": text(computed=True),
        "transitGatewayId": text(),
        "vpcPeeringConnectionId": text(),
    },
    outputs={"origin": text(), "state": text(), "instanceId": text(), "instanceOwnerId": text()},
    create=_create_route,
    read=_read_route,
    update=_update_route,
    delete=_delete_route,
)


def _create_association(cloud: Cloud, inputs: State) -> str:
    return str(cloud.ec2.associate_route_table(**request(ASSOCIATION.props, inputs))["AssociationId"])


def _find_association(cloud: Cloud, id: str, known: State) -> tuple[str, str, str]:
    """The association's own id, its subnet or gateway, and its table."""
    side = known.get("subnetId") or known.get("gatewayId") or id.partition("/")[0]  # an import says SUBNET/TABLE
    for table in cloud.ec2.describe_route_tables()["RouteTables"]:
        for association in table.get("Associations", []):
            ends = (association.get("SubnetId"), association.get("GatewayId"))
            if side in ends:
                return association["RouteTableAssociationId"], side, table["RouteTableId"]
    raise Gone(f"{side} has no route table")


def _read_association(cloud: Cloud, id: str, known: State) -> State:
    _, side, table = _find_association(cloud, id, known)
    return {"subnetId" if side.startswith("subnet-") else "gatewayId": side, "routeTableId": table}


def _update_association(cloud: Cloud, change: Change) -> None:
    id, _, _ = _find_association(cloud, change.id, change.old)
    cloud.ec2.replace_route_table_association(AssociationId=id, RouteTableId=change.new["routeTableId"])


def _delete_association(cloud: Cloud, id: str, state: State) -> None:
    current, _, _ = _find_association(cloud, id, state)
    with absence("InvalidAssociationID.NotFound"):
        cloud.ec2.disassociate_route_table(AssociationId=current)


ASSOCIATION = Resource(
    token="aws:ec2/routeTableAssociation:RouteTableAssociation",
    props={
        "routeTableId": text(required=True),
        "subnetId": text(replaces=True),
        "gatewayId": text(replaces=True),
    },
    create=_create_association,
    read=_read_association,
    update=_update_association,
    delete=_delete_association,
)

# --- endpoints

ENDPOINT_SETS = {
    "routeTableIds": "RouteTableIds",
    "subnetIds": "SubnetIds",
    "securityGroupIds": "SecurityGroupIds",
}


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
    asked: dict[str, Any] = request(ENDPOINT.props, change.new, change.names & {"policy", "privateDnsEnabled"})
    for name, aws in ENDPOINT_SETS.items():
        old, new = set(change.old.get(name) or ()), set(change.new.get(name) or ())
        if change.touches(name):
            asked |= _some(f"Add{aws}", new - old) | _some(f"Remove{aws}", old - new)
    if asked:
        cloud.ec2.modify_vpc_endpoint(VpcEndpointId=change.id, **asked)


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
)

RESOURCES = (VPC, SUBNET, RESERVATION, INTERNET_GATEWAY, ADDRESS, NAT, TABLE, ROUTE, ASSOCIATION, ENDPOINT)
