"""VPCs, their subnets, and CIDR reservations in subnets."""

from __future__ import annotations

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import boolean, text
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State, Timeouts
from corral.box.provider.tables.ec2_requests import delete_and_wait, only, retag, tag_specifications

# --- VPC

VPC_SWITCHES = ("enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")


def _create_vpc(cloud: RegionClients, inputs: State) -> str:
    request = to_request(VPC.props, inputs, ("cidrBlock", "instanceTenancy"))
    return str(cloud.ec2.create_vpc(**request, **tag_specifications("vpc", inputs))["Vpc"]["VpcId"])


def _apply_vpc(cloud: RegionClients, id: str, inputs: State) -> None:
    for name in VPC_SWITCHES:
        if name in inputs:
            cloud.ec2.modify_vpc_attribute(VpcId=id, **{name[0].upper() + name[1:]: {"Value": inputs[name]}})


def _update_vpc(cloud: RegionClients, change: ResourceUpdate) -> None:
    if change.touches("instanceTenancy"):
        cloud.ec2.modify_vpc_tenancy(VpcId=change.id, InstanceTenancy=change.new.get("instanceTenancy", "default"))


def _becomes_dedicated(old: State, new: State) -> frozenset[str]:
    """Tenancy can change in place from dedicated to default, but not back."""
    shared = new.get("instanceTenancy", "default") == "default"
    return frozenset() if shared else frozenset({"instanceTenancy"})


def _read_vpc(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidVpcID.NotFound"):
        vpc = only(cloud.ec2.describe_vpcs(VpcIds=[id])["Vpcs"], id)
    switches = {
        name: cloud.ec2.describe_vpc_attribute(VpcId=id, Attribute=name)[name[0].upper() + name[1:]]["Value"]
        for name in VPC_SWITCHES
    }
    return {
        **from_response(VPC.state, vpc),
        **switches,
        **_default_resources(cloud, id),
        "arn": cloud.arn("ec2", f"vpc/{id}"),
        "tagsAll": tag_map(vpc.get("Tags")),
    }


def _default_resources(cloud: RegionClients, id: str) -> State:
    """The objects that AWS creates with a VPC."""
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


def _delete_vpc(cloud: RegionClients, id: str, state: State) -> None:
    delete_and_wait(cloud, lambda: cloud.ec2.delete_vpc(VpcId=id), id, "InvalidVpcID.NotFound")


VPC = Resource(
    token="aws:ec2/vpc:Vpc",
    props={
        "cidrBlock": text(required=True, replaces=True),
        "instanceTenancy": text(default="default"),
        "enableDnsSupport": boolean(default=True),
        "enableDnsHostnames": boolean(computed=True),
        "enableNetworkAddressUsageMetrics": boolean(computed=True),
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
    apply=_apply_vpc,
    read=_read_vpc,
    update=_update_vpc,
    delete=_delete_vpc,
    retag=retag,
    replaces_if=_becomes_dedicated,
)

# --- subnet

SUBNET_SWITCHES = ("mapPublicIpOnLaunch", "assignIpv6AddressOnCreation")


def _create_subnet(cloud: RegionClients, inputs: State) -> str:
    request = to_request(SUBNET.props, inputs, ("vpcId", "cidrBlock", "availabilityZone", "availabilityZoneId"))
    return str(cloud.ec2.create_subnet(**request, **tag_specifications("subnet", inputs))["Subnet"]["SubnetId"])


def _apply_subnet(cloud: RegionClients, id: str, inputs: State) -> None:
    for name in SUBNET_SWITCHES:
        if name in inputs:
            cloud.ec2.modify_subnet_attribute(SubnetId=id, **{name[0].upper() + name[1:]: {"Value": inputs[name]}})


def _read_subnet(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidSubnetID.NotFound"):
        subnet = only(cloud.ec2.describe_subnets(SubnetIds=[id])["Subnets"], id)
    return {**from_response(SUBNET.state, subnet), "tagsAll": tag_map(subnet.get("Tags"))}


def _delete_subnet(cloud: RegionClients, id: str, state: State) -> None:
    delete_and_wait(cloud, lambda: cloud.ec2.delete_subnet(SubnetId=id), id, "InvalidSubnetID.NotFound")


SUBNET = Resource(
    token="aws:ec2/subnet:Subnet",
    timeouts=Timeouts(delete=1200),
    props={
        "vpcId": text(required=True, replaces=True),
        "cidrBlock": text(required=True, replaces=True),
        "availabilityZone": text(computed=True, replaces=True),
        "availabilityZoneId": text(computed=True, replaces=True),
        "mapPublicIpOnLaunch": boolean(default=False),
        "assignIpv6AddressOnCreation": boolean(default=False),
    },
    outputs={"arn": text(aws="SubnetArn"), "ownerId": text()},
    create=_create_subnet,
    apply=_apply_subnet,
    read=_read_subnet,
    delete=_delete_subnet,
    retag=retag,
)


def _create_reservation(cloud: RegionClients, inputs: State) -> str:
    made = cloud.ec2.create_subnet_cidr_reservation(**to_request(RESERVATION.props, inputs))
    return str(made["SubnetCidrReservation"]["SubnetCidrReservationId"])


def _read_reservation(cloud: RegionClients, id: str, known: State) -> State:
    subnet, _, reservation = id.rpartition(":")  # an import names SUBNET:RESERVATION
    with not_found_on("InvalidSubnetID.NotFound"):
        answer = cloud.ec2.get_subnet_cidr_reservations(SubnetId=subnet or known["subnetId"])
    found = [one for one in answer["SubnetIpv4CidrReservations"] if one["SubnetCidrReservationId"] == reservation]
    return {**from_response(RESERVATION.state, only(found, id)), "reservationId": reservation}


def _delete_reservation(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("InvalidSubnetCidrReservationID.NotFound"):
        cloud.ec2.delete_subnet_cidr_reservation(SubnetCidrReservationId=id)


RESERVATION = Resource(
    token="aws:ec2/subnetCidrReservation:SubnetCidrReservation",
    props={
        "subnetId": text(required=True, replaces=True),
        "cidrBlock": text(required=True, replaces=True, aws="Cidr"),
        "reservationType": text(required=True, replaces=True),
        "description": text(replaces=True, write_only=True),  # moto does not return it
    },
    outputs={"ownerId": text()},
    create=_create_reservation,
    read=_read_reservation,
    delete=_delete_reservation,
)

RESOURCES = (
    VPC,
    SUBNET,
    RESERVATION,
)
