"""RunInstances from a launch template."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork, described, interfaces, launch, node_template

from corral.box import control
from corral.box.client import BoxStatus


def test_a_launch_template_returns_all_of_its_data(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, data = aws("ec2"), node_template(launch_network)
    ec2.create_launch_template(LaunchTemplateName="node", LaunchTemplateData=data)
    back = ec2.describe_launch_template_versions(LaunchTemplateName="node")["LaunchTemplateVersions"][0]
    assert back["LaunchTemplateData"] == data


def test_an_instance_has_exactly_the_interfaces_of_its_template(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, node_template(launch_network))
    shown = described(aws, instance["InstanceId"])["NetworkInterfaces"]
    table = [
        (
            nic["Attachment"]["NetworkCardIndex"],
            nic["Attachment"]["DeviceIndex"],
            nic["InterfaceType"],
            nic.get("PrivateIpAddress"),
            nic["Attachment"]["DeleteOnTermination"],
            nic["SubnetId"] == launch_network.subnet,
            [group["GroupId"] for group in nic["Groups"]] == [launch_network.group],
        )
        for nic in shown
    ]
    assert table == [
        (0, 0, "interface", "10.64.1.4", True, True, True),
        (0, 1, "efa-only", None, True, True, True),
        (1, 0, "efa-only", None, True, True, True),
        (2, 0, "efa-only", None, True, True, True),
        (3, 0, "efa-only", None, True, True, True),
    ]


def test_an_instance_is_in_the_zone_group_and_market_of_its_template(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    (instance,) = launch(aws, node_template(launch_network))
    shown = described(aws, instance["InstanceId"])
    assert (shown["Placement"], shown["InstanceLifecycle"], shown["SpotInstanceRequestId"][:4]) == (
        {"AvailabilityZone": "us-east-1b", "GroupName": "train-az1", "Tenancy": "default"},
        "spot",
        "sir-",
    )


def test_an_instance_of_the_on_demand_market_has_no_lifecycle(aws: Clients, launch_network: LaunchNetwork) -> None:
    data = {**node_template(launch_network), "InstanceMarketOptions": {"MarketType": "on-demand"}}
    (instance,) = launch(aws, data)
    assert described(aws, instance["InstanceId"]).get("InstanceLifecycle") is None


def test_an_instance_has_the_settings_of_its_template(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, node_template(launch_network))
    shown, ec2 = described(aws, instance["InstanceId"]), aws("ec2")
    behaviour = ec2.describe_instance_attribute(
        InstanceId=instance["InstanceId"], Attribute="instanceInitiatedShutdownBehavior"
    )
    user_data = ec2.describe_instance_attribute(InstanceId=instance["InstanceId"], Attribute="userData")
    assert (
        shown["IamInstanceProfile"]["Arn"],
        shown["MetadataOptions"],
        shown["Monitoring"],
        behaviour["InstanceInitiatedShutdownBehavior"],
        user_data["UserData"],
    ) == (
        "arn:aws:iam::123456789012:instance-profile/compute",
        {
            "State": "applied",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
            "HttpEndpoint": "enabled",
            "HttpProtocolIpv6": "disabled",
            "InstanceMetadataTags": "enabled",
        },
        {"State": "enabled"},
        {"Value": "terminate"},
        {"Value": "IyEvYmluL3NoCg=="},
    )


def test_tags_of_template_and_request_are_merged(aws: Clients, launch_network: LaunchNetwork) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "corral:nodes", "Value": "train-[1-2]"}]}]
    instance = launch(aws, node_template(launch_network), 2, TagSpecifications=tags)[0]
    shown = {tag["Key"]: tag["Value"] for tag in described(aws, instance["InstanceId"])["Tags"]}
    version = shown.pop("aws:ec2launchtemplate:version")
    assert (shown.pop("aws:ec2launchtemplate:id")[:3], version, shown) == (
        "lt-",
        "1",
        {"corral:queue": "train", "corral:nodes": "train-[1-2]"},
    )


def test_tags_of_a_request_can_replace_those_of_its_template(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    control.inject_fault(box.dir, "request-tags-only")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "corral:nodes", "Value": "train-[1-2]"}]}]
    instance = launch(aws, node_template(launch_network), 2, TagSpecifications=tags)[0]
    keys = [tag["Key"] for tag in described(aws, instance["InstanceId"])["Tags"]]
    assert sorted(keys) == ["aws:ec2launchtemplate:id", "aws:ec2launchtemplate:version", "corral:nodes"]


@pytest.mark.parametrize("key", ["corral/nodes", "two words", "..", "_index"])
def test_a_tag_key_that_metadata_cannot_show_is_refused(aws: Clients, launch_network: LaunchNetwork, key: str) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": key, "Value": "train-1"}]}]
    with pytest.raises(ClientError) as refused:
        launch(aws, node_template(launch_network), TagSpecifications=tags)
    assert refused.value.response["Error"] == {
        "Code": "InvalidParameterValue",
        "Message": f"'{key}' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{{1,255}}), and"
        " must not be a reserved name ('.', '..', '_index')",
    }


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ({"Key": "k" * 129, "Value": "v"}, "Tag key exceeds the maximum length of 128 characters"),
        ({"Key": "k", "Value": "v" * 257}, "Tag value exceeds the maximum length of 256 characters"),
    ],
    ids=["key", "value"],
)
def test_a_tag_beyond_the_maximum_length_is_refused(
    aws: Clients, launch_network: LaunchNetwork, tag: dict[str, str], message: str
) -> None:
    with pytest.raises(ClientError) as refused:
        aws("ec2").create_tags(Resources=[launch_network.vpc], Tags=[tag])
    assert refused.value.response["Error"] == {"Code": "InvalidParameterValue", "Message": message}


def test_a_long_tag_of_a_template_is_refused_at_the_launch(aws: Clients, launch_network: LaunchNetwork) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "corral:nodes", "Value": "v" * 257}]}]
    with pytest.raises(ClientError, match="Tag value exceeds the maximum length of 256 characters"):
        launch(aws, {**node_template(launch_network), "TagSpecifications": tags})


def test_a_tag_may_have_any_key_unless_metadata_shows_tags(aws: Clients, launch_network: LaunchNetwork) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "corral/nodes", "Value": "train-1"}]}]
    data = {**node_template(launch_network), "MetadataOptions": {"InstanceMetadataTags": "disabled"}}
    assert len(launch(aws, data, TagSpecifications=tags)) == 1


def test_volumes_have_the_size_and_tags_of_the_template(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, node_template(launch_network))
    volumes = aws("ec2").describe_volumes()["Volumes"]
    assert [(volume["Size"], volume["VolumeType"], volume["Tags"]) for volume in volumes] == [
        (100, "gp3", [{"Key": "corral:queue", "Value": "train"}])
    ]


def test_the_instances_of_one_call_are_numbered_in_one_reservation(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, node_template(launch_network), 3)
    reservations = aws("ec2").describe_instances()["Reservations"]
    assert [[i["AmiLaunchIndex"] for i in held["Instances"]] for held in reservations] == [[0, 1, 2]]


def test_max_count_instances_start(aws: Clients, launch_network: LaunchNetwork) -> None:
    started = aws("ec2").run_instances(ImageId=launch_network.image, InstanceType="m7i.large", MinCount=1, MaxCount=3)
    assert len(started["Instances"]) == 3


def test_the_same_client_token_gives_the_same_instances(aws: Clients, launch_network: LaunchNetwork) -> None:
    request = {
        "ImageId": launch_network.image,
        "InstanceType": "m7i.large",
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": "t",
    }
    first, second = (aws("ec2").run_instances(**request)["Instances"][0]["InstanceId"] for _ in range(2))
    assert first == second


def test_pages_of_instances_have_the_requested_size(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, node_template(launch_network), 5)
    pages = aws("ec2").get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 2})
    assert [sum(len(held["Instances"]) for held in page["Reservations"]) for page in pages] == [2, 2, 1]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"placement-group-name": "train-az1"}, 1),
        ({"instance-lifecycle": "spot"}, 1),
        ({"client-token": "none"}, 0),
        ({"tag:corral:queue": "train"}, 1),
        ({"instance-state-name": "terminated"}, 0),
    ],
)
def test_instances_are_found_by(
    aws: Clients, launch_network: LaunchNetwork, filters: dict[str, str], found: int
) -> None:
    launch(aws, node_template(launch_network))
    parameters = [{"Name": name, "Values": [value]} for name, value in filters.items()]
    assert len(aws("ec2").describe_instances(Filters=parameters)["Reservations"]) == found


def test_a_new_version_extends_its_source_and_applies_once_it_is_the_default(
    aws: Clients, launch_network: LaunchNetwork
) -> None:
    ec2 = aws("ec2")
    ec2.create_launch_template(
        LaunchTemplateName="node", LaunchTemplateData={"ImageId": launch_network.image, "InstanceType": "m7i.large"}
    )
    ec2.create_launch_template_version(
        LaunchTemplateName="node", SourceVersion="1", LaunchTemplateData={"InstanceType": "m7i.xlarge"}
    )
    ec2.modify_launch_template(LaunchTemplateName="node", DefaultVersion="2")
    started = ec2.run_instances(LaunchTemplate={"LaunchTemplateName": "node"}, MinCount=1, MaxCount=1)["Instances"][0]
    assert (started["InstanceType"], started["ImageId"]) == ("m7i.xlarge", launch_network.image)


def test_a_dry_run_starts_nothing(aws: Clients, launch_network: LaunchNetwork) -> None:
    with pytest.raises(ClientError, match="DryRunOperation"):
        launch(aws, node_template(launch_network), DryRun=True)
    assert aws("ec2").describe_instances()["Reservations"] == []


def _refusal(aws: Clients, data: dict[str, Any], **request: Any) -> str:
    with pytest.raises(ClientError) as refused:
        launch(aws, data, **request)
    return str(refused.value.response["Error"]["Code"])


@pytest.mark.parametrize(
    ("request_parameters", "code"),
    [
        ({"SubnetId": "subnet-1"}, "InvalidParameterCombination"),
        ({"SecurityGroupIds": ["sg-1"]}, "InvalidParameterCombination"),
        ({"SecurityGroups": ["default"]}, "InvalidParameterCombination"),
        ({"PrivateIpAddress": "10.64.1.9"}, "InvalidParameterCombination"),
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"ImageId": "ubuntu"}, "InvalidAMIID.Malformed"),
        ({"InstanceType": "p4d.48xlarge"}, "InvalidParameterValue"),
        ({"InstanceType": "m7i.large"}, "InvalidParameterValue"),  # it has no EFA
        ({"InstanceType": "p6-b300.48xlarge"}, "AttachmentLimitExceeded"),  # no EFA on its card 0
        ({"Placement": {"GroupName": "missing"}}, "InvalidPlacementGroup.Unknown"),
        ({"IamInstanceProfile": {"Name": "missing"}}, "InvalidParameterValue"),
        ({"ClientToken": "x" * 65}, "InvalidParameterValue"),
    ],
)
def test_a_request_that_conflicts_with_its_template_is_refused(
    aws: Clients, launch_network: LaunchNetwork, request_parameters: dict[str, Any], code: str
) -> None:
    assert _refusal(aws, node_template(launch_network), **request_parameters) == code


@pytest.mark.parametrize(
    ("index", "changes", "code"),
    [
        (0, {"InterfaceType": "efa-only"}, "InvalidParameterValue"),  # the primary one needs an address
        (0, {"DeviceIndex": 2}, "InvalidParameterValue"),  # no primary one
        (1, {"DeviceIndex": 0}, "InvalidParameterValue"),  # two at one place
        (4, {"NetworkCardIndex": 4}, "InvalidParameterValue"),  # a p4d has cards 0 to 3
        (1, {"Groups": ["sg-00000000000000000"]}, "InvalidGroup.NotFound"),
        (1, {"SubnetId": "subnet-00000000000000000"}, "InvalidSubnetID.NotFound"),
        (0, {"AssociatePublicIpAddress": True}, "InvalidParameterCombination"),
    ],
)
def test_an_interface_is_refused(
    aws: Clients, launch_network: LaunchNetwork, index: int, changes: dict[str, Any], code: str
) -> None:
    nics = interfaces(launch_network)
    nics[index] = {**nics[index], **changes}
    assert _refusal(aws, {**node_template(launch_network), "NetworkInterfaces": nics}) == code


def test_more_efa_interfaces_than_the_type_has_are_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    extra = {**interfaces(launch_network)[4], "DeviceIndex": 1}
    data = {**node_template(launch_network), "NetworkInterfaces": [*interfaces(launch_network), extra]}
    assert _refusal(aws, data) == "AttachmentLimitExceeded"


def test_more_interfaces_than_a_card_has_are_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    first = {**interfaces(launch_network)[0], "InterfaceType": "interface"}
    nics = [{**first, "DeviceIndex": device} for device in range(16)]
    assert _refusal(aws, {**node_template(launch_network), "NetworkInterfaces": nics}) == "AttachmentLimitExceeded"


def test_a_group_of_another_vpc_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    other = ec2.create_vpc(CidrBlock="10.65.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="other", Description="other", VpcId=other)["GroupId"]
    nics = [{**interfaces(launch_network)[0], "Groups": [group]}]
    assert _refusal(aws, {**node_template(launch_network), "NetworkInterfaces": nics}) == "InvalidGroup.NotFound"


def test_a_type_not_offered_in_the_zone_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    subnet = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/24", AvailabilityZoneId="use1-az3")[
        "Subnet"
    ]
    nics = [{**nic, "SubnetId": subnet["SubnetId"]} for nic in interfaces(launch_network)]
    assert _refusal(aws, {**node_template(launch_network), "NetworkInterfaces": nics}) == "Unsupported"


def test_a_cluster_placement_group_does_not_span_zones(aws: Clients, launch_network: LaunchNetwork) -> None:
    launch(aws, node_template(launch_network))
    ec2 = aws("ec2")
    subnet = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/24", AvailabilityZoneId="use1-az2")[
        "Subnet"
    ]
    nics = [{**nic, "SubnetId": subnet["SubnetId"]} for nic in interfaces(launch_network)]
    assert _refusal(aws, {**node_template(launch_network), "NetworkInterfaces": nics}) == "InvalidPlacementGroup.InUse"


def test_an_unknown_template_version_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    ec2.create_launch_template(LaunchTemplateName="node", LaunchTemplateData=node_template(launch_network))
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(LaunchTemplate={"LaunchTemplateName": "node", "Version": "7"}, MinCount=1, MaxCount=1)
    assert refused.value.response["Error"]["Code"] == "InvalidLaunchTemplateId.VersionNotFound"


def test_a_client_token_with_other_parameters_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2, request = aws("ec2"), {"ImageId": launch_network.image, "MinCount": 1, "ClientToken": "token"}
    ec2.run_instances(**request, MaxCount=1, InstanceType="m7i.large")
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(**request, MaxCount=2, InstanceType="m7i.large")
    assert refused.value.response["Error"]["Code"] == "IdempotentParameterMismatch"


def test_a_subnet_without_free_addresses_is_refused(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    subnet = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/28", AvailabilityZoneId="use1-az1")[
        "Subnet"
    ]
    with pytest.raises(ClientError) as refused:
        ec2.run_instances(
            ImageId=launch_network.image,
            InstanceType="m7i.large",
            SubnetId=subnet["SubnetId"],
            MinCount=12,
            MaxCount=12,
        )
    assert refused.value.response["Error"]["Code"] == "InsufficientFreeAddressesInSubnet"


def test_a_refused_launch_leaves_nothing_behind(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    subnet = ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/28", AvailabilityZoneId="use1-az1")[
        "Subnet"
    ]
    with pytest.raises(ClientError):
        ec2.run_instances(
            ImageId=launch_network.image,
            InstanceType="m7i.large",
            SubnetId=subnet["SubnetId"],
            MinCount=12,
            MaxCount=12,
        )
    left = (ec2.describe_instances()["Reservations"], ec2.describe_network_interfaces()["NetworkInterfaces"])
    assert left == ([], [])
