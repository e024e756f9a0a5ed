"""The tagging API: a filter finds a stack's resources of all supported services."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork, launch, node_template

from corral.box import control
from corral.box.client import BoxStatus

TAGS = [{"Key": "corral:cluster", "Value": "dev"}]


def _tagged(kind: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": TAGS}]


def _make_one_of_each(aws: Clients, launch_network: LaunchNetwork) -> None:
    ec2 = aws("ec2")
    ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=_tagged("vpc"))
    ec2.create_subnet(VpcId=launch_network.vpc, CidrBlock="10.64.9.0/24", TagSpecifications=_tagged("subnet"))
    ec2.create_network_interface(SubnetId=launch_network.subnet, TagSpecifications=_tagged("network-interface"))
    ec2.create_volume(Size=1, AvailabilityZone="us-east-1a", TagSpecifications=_tagged("volume"))
    ec2.create_placement_group(GroupName="pg", Strategy="cluster", TagSpecifications=_tagged("placement-group"))
    ec2.create_launch_template(
        LaunchTemplateName="node", LaunchTemplateData={"ImageId": "x"}, TagSpecifications=_tagged("launch-template")
    )
    elastic = ec2.allocate_address(Domain="vpc", TagSpecifications=_tagged("elastic-ip"))["AllocationId"]
    ec2.create_nat_gateway(
        SubnetId=launch_network.subnet, AllocationId=elastic, TagSpecifications=_tagged("natgateway")
    )
    ec2.create_vpc_endpoint(
        VpcId=launch_network.vpc, ServiceName="com.amazonaws.us-east-1.s3", TagSpecifications=_tagged("vpc-endpoint")
    )
    launch(aws, node_template(launch_network), TagSpecifications=_tagged("instance"))
    aws("s3").create_bucket(Bucket="artefacts")
    aws("s3").put_bucket_tagging(Bucket="artefacts", Tagging={"TagSet": TAGS})
    aws("efs").create_file_system(CreationToken="home", Tags=TAGS)
    aws("fsx").create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=[launch_network.subnet], Tags=TAGS,
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )  # fmt: skip
    aws("kms").create_key(Tags=[{"TagKey": "corral:cluster", "TagValue": "dev"}])
    aws("secretsmanager").create_secret(Name="munge", Tags=TAGS)
    aws("ssm").put_parameter(Name="/corral/dev", Value="x", Type="String", Tags=TAGS)
    aws("logs").create_log_group(logGroupName="/corral/dev", tags={"corral:cluster": "dev"})
    aws("sns").create_topic(Name="alarms", Tags=TAGS)
    aws("iam").create_instance_profile(InstanceProfileName="head", Tags=TAGS)


def _kinds(resources: list[dict[str, Any]]) -> list[str]:
    """Service and kind of each resource, from its ARN."""
    parts = [resource["ResourceARN"].split(":", 5) for resource in resources]
    return sorted(f"{part[2]}/{part[5].split('/')[0].split(':')[0]}" for part in parts)


def test_a_deleted_resource_stays_listed_with_a_fault(box: BoxStatus, aws: Clients) -> None:
    control.inject_fault(box.dir, "stale-tags")
    vpc = aws("ec2").create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=_tagged("vpc"))["Vpc"]["VpcId"]
    _found(aws)
    aws("ec2").delete_vpc(VpcId=vpc)
    assert [one["ResourceARN"].rpartition("/")[2] for one in _found(aws)] == [vpc]


def _found(aws: Clients, **parameters: Any) -> list[dict[str, Any]]:
    pages = aws("resourcegroupstaggingapi").get_paginator("get_resources").paginate(**parameters)
    return [resource for page in pages for resource in page["ResourceTagMappingList"]]


def test_a_tag_finds_every_resource_that_has_it(aws: Clients, launch_network: LaunchNetwork) -> None:
    _make_one_of_each(aws, launch_network)
    found = _found(aws, TagFilters=[{"Key": "corral:cluster", "Values": ["dev"]}])
    assert _kinds(found) == [
        "ec2/elastic-ip",
        "ec2/instance",
        "ec2/launch-template",
        "ec2/natgateway",
        "ec2/network-interface",
        "ec2/placement-group",
        "ec2/subnet",
        "ec2/volume",
        "ec2/vpc",
        "ec2/vpc-endpoint",
        "elasticfilesystem/file-system",
        "fsx/file-system",
        "iam/instance-profile",
        "kms/key",
        "logs/log-group",
        "s3/artefacts",
        "secretsmanager/secret",
        "sns/alarms",
        "ssm/parameter",
    ]


def test_pages_have_the_requested_size_and_hold_everything_once(aws: Clients, launch_network: LaunchNetwork) -> None:
    _make_one_of_each(aws, launch_network)
    filters = [{"Key": "corral:cluster"}]
    pages = aws("resourcegroupstaggingapi").get_paginator("get_resources")
    sizes = [len(page["ResourceTagMappingList"]) for page in pages.paginate(TagFilters=filters, ResourcesPerPage=8)]
    assert sizes == [8, 8, 3]


def test_a_type_filter_narrows_the_search(aws: Clients, launch_network: LaunchNetwork) -> None:
    _make_one_of_each(aws, launch_network)
    found = _found(aws, ResourceTypeFilters=["ec2:volume", "s3"], TagFilters=[{"Key": "corral:cluster"}])
    assert _kinds(found) == ["ec2/volume", "s3/artefacts"]


def test_terminated_and_deleted_resources_are_not_found(aws: Clients, launch_network: LaunchNetwork) -> None:
    (instance,) = launch(aws, node_template(launch_network), TagSpecifications=_tagged("instance"))
    aws("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert _found(aws, TagFilters=[{"Key": "corral:cluster"}]) == []


@pytest.mark.parametrize("value", ["R&D (ml)", "a,b;c"])
def test_iam_refuses_a_tag_with_invalid_characters(aws: Clients, value: str) -> None:
    with pytest.raises(ClientError, match=r"ValidationError.*tags\.1\.member\.value"):
        aws("iam").create_role(RoleName="head", AssumeRolePolicyDocument="{}", Tags=[{"Key": "team", "Value": value}])


def test_iam_accepts_letters_of_any_language_in_a_tag(aws: Clients) -> None:
    aws("iam").create_role(
        RoleName="head",
        AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}',
        Tags=[{"Key": "team", "Value": "Jürgen 東京 _.:/=+-@"}],
    )
    assert aws("iam").list_role_tags(RoleName="head")["Tags"] == [{"Key": "team", "Value": "Jürgen 東京 _.:/=+-@"}]
