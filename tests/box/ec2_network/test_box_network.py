"""VPCs, subnets, groups and gateways: their addresses, and the order of their deletion."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork, launch, node_template


def _code(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return str(refused.value.response["Error"]["Code"])


def test_a_subnet_in_a_zone_given_by_id_assigns_no_public_addresses(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    subnet = aws("ec2").describe_subnets(SubnetIds=[launch_network.subnet])["Subnets"][0]
    shown = {name: subnet[name] for name in ("AvailabilityZone", "AvailabilityZoneId", "MapPublicIpOnLaunch")}
    assert shown == {
        "AvailabilityZone": "us-east-1b",
        "AvailabilityZoneId": "use1-az1",
        "MapPublicIpOnLaunch": False,
    }


def test_a_subnet_has_five_addresses_fewer_than_its_range(aws: Clients, launch_network: LaunchNetwork) -> None:
    assert (
        aws("ec2").describe_subnets(SubnetIds=[launch_network.subnet])["Subnets"][0]["AvailableIpAddressCount"] == 251
    )


def test_reserved_addresses_are_assigned_only_on_request(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    ec2.create_subnet_cidr_reservation(SubnetId=launch_network.subnet, Cidr="10.64.1.0/28", ReservationType="explicit")
    by_itself = ec2.create_network_interface(SubnetId=launch_network.subnet)["NetworkInterface"]
    named = ec2.create_network_interface(SubnetId=launch_network.subnet, PrivateIpAddress="10.64.1.11")[
        "NetworkInterface"
    ]
    assert (by_itself["PrivateIpAddress"], named["PrivateIpAddress"]) == ("10.64.1.16", "10.64.1.11")


def test_a_released_address_is_assigned_again_after_all_others(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    vpc = ec2.describe_subnets(SubnetIds=[launch_network.subnet])["Subnets"][0]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.64.77.0/28")["Subnet"]["SubnetId"]

    def create() -> str:
        made = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]
        ec2.delete_network_interface(NetworkInterfaceId=made["NetworkInterfaceId"])
        return str(made["PrivateIpAddress"])

    assert [create() for _ in range(12)] == [f"10.64.77.{last}" for last in (*range(4, 15), 4)]


def test_a_reservation_is_listed_with_its_tags_until_it_is_deleted(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, tags = aws("ec2"), [{"Key": "corral:base", "Value": "dev"}]
    made = ec2.create_subnet_cidr_reservation(
        SubnetId=launch_network.subnet,
        Cidr="10.64.1.0/28",
        ReservationType="explicit",
        TagSpecifications=[{"ResourceType": "subnet-cidr-reservation", "Tags": tags}],
    )["SubnetCidrReservation"]
    listed = ec2.get_subnet_cidr_reservations(SubnetId=launch_network.subnet)["SubnetIpv4CidrReservations"]
    ec2.delete_subnet_cidr_reservation(SubnetCidrReservationId=made["SubnetCidrReservationId"])
    after = ec2.get_subnet_cidr_reservations(SubnetId=launch_network.subnet)["SubnetIpv4CidrReservations"]
    assert ([(held["Cidr"], held["Tags"]) for held in listed], after) == ([("10.64.1.0/28", tags)], [])


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("10.64.1.2", "InvalidParameterValue"),  # AWS's own
        ("10.64.2.9", "InvalidParameterValue"),  # another range
        ("10.64.1.50", "InvalidIPAddress.InUse"),
    ],
)
def test_an_address_is_refused(aws: Clients, launch_network: LaunchNetwork, address: str, code: str) -> None:
    ec2 = aws("ec2")
    ec2.create_network_interface(SubnetId=launch_network.subnet, PrivateIpAddress="10.64.1.50")
    with pytest.raises(ClientError) as refused:
        ec2.create_network_interface(SubnetId=launch_network.subnet, PrivateIpAddress=address)
    assert _code(refused) == code


def test_subnet_group_and_vpc_in_use_cannot_be_deleted(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, node_template(launch_network))
    ec2, codes = aws("ec2"), []
    for act, named in (
        (ec2.delete_subnet, {"SubnetId": launch_network.subnet}),
        (ec2.delete_security_group, {"GroupId": launch_network.group}),
        (ec2.delete_vpc, {"VpcId": launch_network.vpc}),
    ):
        with pytest.raises(ClientError) as refused:
            act(**named)
        codes.append(_code(refused))
    assert codes == ["DependencyViolation", "DependencyViolation", "DependencyViolation"]


@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_a_group_referenced_by_another_group_cannot_be_deleted(
    aws: Clients, launch_network: LaunchNetwork, direction: str
) -> None:
    ec2 = aws("ec2")
    other = ec2.create_security_group(GroupName="other", Description="other", VpcId=launch_network.vpc)["GroupId"]
    pairs = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": launch_network.group}]}]
    getattr(ec2, f"authorize_security_group_{direction}")(GroupId=other, IpPermissions=pairs)
    with pytest.raises(ClientError) as refused:
        ec2.delete_security_group(GroupId=launch_network.group)
    assert _code(refused) == "DependencyViolation"


def test_a_group_that_references_only_itself_can_be_deleted(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    ec2.delete_security_group(GroupId=launch_network.group)
    left = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [launch_network.vpc]}])["SecurityGroups"]
    assert [group["GroupName"] for group in left] == ["default"]


def test_the_default_group_of_a_vpc_is_open_to_itself(aws: Clients, launch_network: LaunchNetwork) -> None:
    mine = [{"Name": "vpc-id", "Values": [launch_network.vpc]}, {"Name": "group-name", "Values": ["default"]}]
    (group,) = aws("ec2").describe_security_groups(Filters=mine)["SecurityGroups"]
    (rule,) = group["IpPermissions"]
    assert (rule["IpProtocol"], rule["UserIdGroupPairs"][0]["GroupId"]) == ("-1", group["GroupId"])


def test_an_empty_vpc_is_deleted_with_its_default_resources(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    ec2.delete_subnet(SubnetId=launch_network.subnet)
    ec2.delete_security_group(GroupId=launch_network.group)
    ec2.delete_vpc(VpcId=launch_network.vpc)
    of_vpc = [{"Name": "vpc-id", "Values": [launch_network.vpc]}]
    left = [
        ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"],
        ec2.describe_route_tables(Filters=of_vpc)["RouteTables"],
        ec2.describe_network_acls(Filters=of_vpc)["NetworkAcls"],
    ]
    assert left == [[], [], []]


def _nat(aws: Clients, launch_network: LaunchNetwork) -> tuple[str, str, str]:
    ec2 = aws("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=launch_network.vpc)
    elastic = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=launch_network.subnet, AllocationId=elastic)["NatGateway"]["NatGatewayId"]
    return gateway, elastic, nat


def test_a_nat_gateway_holds_its_interface_address_and_internet_gateway(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    (gateway, elastic, nat), ec2, codes = _nat(aws, launch_network), aws("ec2"), []
    address = ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["NatGatewayAddresses"][0]
    for act, named in (
        (ec2.release_address, {"AllocationId": elastic}),
        (ec2.detach_internet_gateway, {"InternetGatewayId": gateway, "VpcId": launch_network.vpc}),
        (ec2.delete_network_interface, {"NetworkInterfaceId": address["NetworkInterfaceId"]}),
        (ec2.create_nat_gateway, {"SubnetId": launch_network.subnet, "AllocationId": elastic}),
    ):
        with pytest.raises(ClientError) as refused:
            act(**named)
        codes.append(_code(refused))
    assert (address["PrivateIp"], codes) == (
        "10.64.1.4",
        ["InvalidIPAddress.InUse", "DependencyViolation", "InvalidParameterValue", "Resource.AlreadyAssociated"],
    )


def test_a_deleted_nat_gateway_frees_its_address_and_interface(aws: Clients, launch_network: LaunchNetwork) -> None:
    (gateway, elastic, nat), ec2 = _nat(aws, launch_network), aws("ec2")
    ec2.delete_nat_gateway(NatGatewayId=nat)
    ec2.release_address(AllocationId=elastic)
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=launch_network.vpc)
    ec2.delete_internet_gateway(InternetGatewayId=gateway)
    shown = ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"]
    assert (shown, ec2.describe_network_interfaces()["NetworkInterfaces"]) == ("deleted", [])


def test_a_gateway_endpoint_is_a_route_in_its_tables(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    table = ec2.create_route_table(VpcId=launch_network.vpc)["RouteTable"]["RouteTableId"]
    endpoint = ec2.create_vpc_endpoint(
        VpcId=launch_network.vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table]
    )["VpcEndpoint"]["VpcEndpointId"]
    seen = []
    for act in (lambda: None, lambda: ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])):
        act()
        routes = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]
        seen.append([route["GatewayId"] == endpoint for route in routes])
    assert seen == [[False, True], [False]]


@pytest.mark.parametrize(
    ("region", "name"),
    [("us-east-1", "com.amazonaws.us-west-2.ec2"), ("cn-north-1", "com.amazonaws.cn-north-1.ec2")],
)
def test_an_endpoint_service_of_another_region_or_partition_does_not_exist(
    aws: Clients, region: str, name: str
) -> None:
    ec2 = aws("ec2", region=region)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    with pytest.raises(ClientError) as refused:
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name, VpcEndpointType="Interface")
    assert _code(refused) == "InvalidServiceName"


def test_an_endpoint_service_of_china_begins_with_its_domain(aws: Clients) -> None:
    ec2, name = aws("ec2", region="cn-north-1"), "cn.com.amazonaws.cn-north-1.ec2"
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=name, VpcEndpointType="Interface")["VpcEndpoint"]
    assert made["ServiceName"] == name


def test_an_interface_endpoint_has_an_interface_in_each_subnet(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    endpoint = ec2.create_vpc_endpoint(
        VpcId=launch_network.vpc,
        ServiceName="com.amazonaws.us-east-1.ssm",
        VpcEndpointType="Interface",
        SubnetIds=[launch_network.subnet],
        SecurityGroupIds=[launch_network.group],
    )["VpcEndpoint"]
    interfaces = ec2.describe_network_interfaces(NetworkInterfaceIds=endpoint["NetworkInterfaceIds"])
    ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])
    after = ec2.describe_network_interfaces()["NetworkInterfaces"]
    assert ([nic["SubnetId"] for nic in interfaces["NetworkInterfaces"]], after) == ([launch_network.subnet], [])


def test_a_placement_group_exists_with_its_tags_until_it_is_empty(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, tags = aws("ec2"), [{"Key": "corral:queue", "Value": "train"}]
    specification = [{"ResourceType": "placement-group", "Tags": tags}]
    ec2.create_placement_group(GroupName="tagged", Strategy="cluster", TagSpecifications=specification)
    shown = ec2.describe_placement_groups(Filters=[{"Name": "tag:corral:queue", "Values": ["train"]}])
    ec2.delete_placement_group(GroupName="tagged")
    after = [group["GroupName"] for group in ec2.describe_placement_groups()["PlacementGroups"]]
    assert ([(g["GroupName"], g["Tags"]) for g in shown["PlacementGroups"]], after) == (
        [("tagged", tags)],
        ["train-az1"],
    )


def test_a_placement_group_in_use_unknown_or_taken_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, node_template(launch_network))
    ec2, codes = aws("ec2"), []
    for act, named in (
        (ec2.delete_placement_group, {"GroupName": "train-az1"}),
        (ec2.delete_placement_group, {"GroupName": "missing"}),
        (ec2.describe_placement_groups, {"GroupNames": ["missing"]}),
        (ec2.create_placement_group, {"GroupName": "train-az1", "Strategy": "spread"}),
        (ec2.create_placement_group, {"GroupName": "other", "Strategy": "close"}),
    ):
        with pytest.raises(ClientError) as refused:
            act(**named)
        codes.append(_code(refused))
    assert codes == [
        "InvalidPlacementGroup.InUse",
        "InvalidPlacementGroup.Unknown",
        "InvalidPlacementGroup.Unknown",
        "InvalidPlacementGroup.Duplicate",
        "InvalidParameterValue",
    ]


def test_a_zone_is_found_by_its_id_with_its_opt_in_status(aws: Clients) -> None:
    (zone,) = aws("ec2").describe_availability_zones(ZoneIds=["use1-az1"])["AvailabilityZones"]
    assert zone == {
        "OptInStatus": "opt-in-not-required",
        "Messages": [],
        "RegionName": "us-east-1",
        "ZoneName": "us-east-1b",
        "ZoneId": "use1-az1",
        "GroupName": "us-east-1-zg-1",
        "NetworkBorderGroup": "us-east-1",
        "ZoneType": "availability-zone",
        "State": "available",
    }


def test_a_local_zone_is_shown_only_with_all_zones(aws: Clients) -> None:
    ec2, local = aws("ec2"), [{"Name": "zone-type", "Values": ["local-zone"]}]
    by_itself = ec2.describe_availability_zones(Filters=local)["AvailabilityZones"]
    (shown,) = ec2.describe_availability_zones(Filters=local, AllAvailabilityZones=True)["AvailabilityZones"]
    assert (by_itself, shown) == (
        [],
        {
            "OptInStatus": "not-opted-in",
            "Messages": [],
            "RegionName": "us-east-1",
            "ZoneName": "us-east-1-mia-1a",
            "ZoneId": "use1-mia1-az1",
            "GroupName": "us-east-1-mia-1",
            "NetworkBorderGroup": "us-east-1-mia-1",
            "ZoneType": "local-zone",
            "ParentZoneName": "us-east-1c",
            "ParentZoneId": "use1-az2",
            "State": "available",
        },
    )


@pytest.mark.parametrize("named", [{"ZoneIds": ["use1-az9"]}, {"ZoneNames": ["us-east-1z"]}])
def test_an_unknown_zone_is_refused(aws: Clients, named: dict[str, list[str]]) -> None:
    with pytest.raises(ClientError) as refused:
        aws("ec2").describe_availability_zones(**named)
    assert _code(refused) == "InvalidParameterValue"


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("opt-in-status", "opt-in-not-required", 6),
        ("opt-in-status", "not-opted-in", 1),
        ("group-name", "us-east-1-zg-1", 6),
        ("parent-zone-id", "use1-az2", 1),
        ("zone-name", "us-east-1a", 1),
        ("state", "available", 7),
    ],
)
def test_zones_are_found_by(aws: Clients, name: str, value: str, found: int) -> None:
    parameters = [{"Name": name, "Values": [value]}]
    zones = aws("ec2").describe_availability_zones(Filters=parameters, AllAvailabilityZones=True)["AvailabilityZones"]
    assert len(zones) == found


def test_a_vpc_shows_its_dns_attributes(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, message = aws("ec2"), []
    for enabled in (False, True):
        ec2.modify_vpc_attribute(VpcId=launch_network.vpc, EnableDnsHostnames={"Value": enabled})
        names = ec2.describe_vpc_attribute(VpcId=launch_network.vpc, Attribute="enableDnsHostnames")[
            "EnableDnsHostnames"
        ]
        support = ec2.describe_vpc_attribute(VpcId=launch_network.vpc, Attribute="enableDnsSupport")["EnableDnsSupport"]
        message.append((names, support))
    assert message == [({"Value": False}, {"Value": True}), ({"Value": True}, {"Value": True})]


def test_an_unknown_vpc_is_named_in_the_refusal(aws: Clients) -> None:
    with pytest.raises(ClientError) as refused:
        aws("ec2").describe_vpcs(VpcIds=["vpc-00000000000000000"])
    assert refused.value.response["Error"] == {
        "Code": "InvalidVpcID.NotFound",
        "Message": "The vpc ID 'vpc-00000000000000000' does not exist",
    }


def test_a_subnet_without_a_route_table_of_its_own_is_in_none(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, of_subnet = aws("ec2"), [{"Name": "association.subnet-id", "Values": [launch_network.subnet]}]
    before = ec2.describe_route_tables(Filters=of_subnet)["RouteTables"]
    table = ec2.create_route_table(VpcId=launch_network.vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=launch_network.subnet)
    after = ec2.describe_route_tables(Filters=of_subnet)["RouteTables"]
    assert (before, [shown["RouteTableId"] for shown in after]) == ([], [table])


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("association.main", "true", 1),
        ("route.gateway-id", "vpce-*", 1),
        ("route.gateway-id", "local", 2),
        ("route.origin", "CreateRoute", 1),
        ("route.state", "blackhole", 0),
        ("association.gateway-id", "igw-*", 0),
        ("route.destination-prefix-list-id", "pl-*", 1),
    ],
)
def test_route_tables_are_found_by(
    aws: Clients, launch_network: LaunchNetwork, name: str, value: str, found: int
) -> None:
    ec2 = aws("ec2")
    table = ec2.create_route_table(VpcId=launch_network.vpc)["RouteTable"]["RouteTableId"]
    ec2.create_vpc_endpoint(VpcId=launch_network.vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table])
    parameters = [{"Name": "vpc-id", "Values": [launch_network.vpc]}, {"Name": name, "Values": [value]}]
    assert len(ec2.describe_route_tables(Filters=parameters)["RouteTables"]) == found


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("service-name", "com.amazonaws.us-east-1.s3", 1),
        ("vpc-endpoint-type", "Interface", 1),
        ("vpc-endpoint-state", "available", 2),
        ("vpc-endpoint-id", "vpce-*", 2),
        ("ip-address-type", "ipv4", 2),
    ],
)
def test_endpoints_are_found_by(aws: Clients, launch_network: LaunchNetwork, name: str, value: str, found: int) -> None:
    ec2 = aws("ec2")
    ec2.create_vpc_endpoint(VpcId=launch_network.vpc, ServiceName="com.amazonaws.us-east-1.s3")
    ec2.create_vpc_endpoint(
        VpcId=launch_network.vpc,
        ServiceName="com.amazonaws.us-east-1.ssm",
        VpcEndpointType="Interface",
        SubnetIds=[launch_network.subnet],
    )
    parameters = [{"Name": "vpc-id", "Values": [launch_network.vpc]}, {"Name": name, "Values": [value]}]
    assert len(ec2.describe_vpc_endpoints(Filters=parameters)["VpcEndpoints"]) == found


def test_only_an_interface_endpoint_has_private_names(aws: Clients, launch_network: LaunchNetwork) -> None:
    made = aws("ec2").create_vpc_endpoint(VpcId=launch_network.vpc, ServiceName="com.amazonaws.us-east-1.s3")
    assert made["VpcEndpoint"]["PrivateDnsEnabled"] is False


def test_an_interface_in_a_subnet_takes_one_of_its_addresses(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    ec2.create_network_interface(SubnetId=launch_network.subnet)
    assert ec2.describe_subnets(SubnetIds=[launch_network.subnet])["Subnets"][0]["AvailableIpAddressCount"] == 250
