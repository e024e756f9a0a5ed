"""The tagging API: one filter finds what a stack made, in every service that AWS shows there."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from ground import Clients, Ground, launch, node_template

TAGS = [{"Key": "corral:cluster", "Value": "dev"}]


def _tagged(kind: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": TAGS}]


def _make_one_of_each(aws: Clients, ground: Ground) -> None:
    ec2 = aws("ec2")
    ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=_tagged("vpc"))
    ec2.create_subnet(VpcId=ground.vpc, CidrBlock="10.64.9.0/24", TagSpecifications=_tagged("subnet"))
    ec2.create_network_interface(SubnetId=ground.subnet, TagSpecifications=_tagged("network-interface"))
    ec2.create_volume(Size=1, AvailabilityZone="us-east-1a", TagSpecifications=_tagged("volume"))
    ec2.create_placement_group(GroupName="pg", Strategy="cluster", TagSpecifications=_tagged("placement-group"))
    ec2.create_launch_template(
        LaunchTemplateName="node", LaunchTemplateData={"ImageId": "x"}, TagSpecifications=_tagged("launch-template")
    )
    elastic = ec2.allocate_address(Domain="vpc", TagSpecifications=_tagged("elastic-ip"))["AllocationId"]
    ec2.create_nat_gateway(SubnetId=ground.subnet, AllocationId=elastic, TagSpecifications=_tagged("natgateway"))
    ec2.create_vpc_endpoint(
        VpcId=ground.vpc, ServiceName="com.amazonaws.us-east-1.s3", TagSpecifications=_tagged("vpc-endpoint")
    )
    launch(aws, node_template(ground), TagSpecifications=_tagged("instance"))
    aws("s3").create_bucket(Bucket="artefacts")
    aws("s3").put_bucket_tagging(Bucket="artefacts", Tagging={"TagSet": TAGS})
    aws("efs").create_file_system(CreationToken="home", Tags=TAGS)
    aws("fsx").create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=[ground.subnet], Tags=TAGS,
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


def _found(aws: Clients, **asked: Any) -> list[dict[str, Any]]:
    pages = aws("resourcegroupstaggingapi").get_paginator("get_resources").paginate(**asked)
    return [resource for page in pages for resource in page["ResourceTagMappingList"]]


def test_one_tag_finds_everything_that_carries_it(aws: Clients, ground: Ground) -> None:
    _make_one_of_each(aws, ground)
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


def test_pages_have_the_size_that_was_asked_for_and_hold_everything_once(aws: Clients, ground: Ground) -> None:
    _make_one_of_each(aws, ground)
    filters = [{"Key": "corral:cluster"}]
    pages = aws("resourcegroupstaggingapi").get_paginator("get_resources")
    sizes = [len(page["ResourceTagMappingList"]) for page in pages.paginate(TagFilters=filters, ResourcesPerPage=8)]
    assert sizes == [8, 8, 3]


def test_a_type_filter_narrows_the_search(aws: Clients, ground: Ground) -> None:
    _make_one_of_each(aws, ground)
    found = _found(aws, ResourceTypeFilters=["ec2:volume", "s3"], TagFilters=[{"Key": "corral:cluster"}])
    assert _kinds(found) == ["ec2/volume", "s3/artefacts"]


def test_what_has_ended_is_not_found(aws: Clients, ground: Ground) -> None:
    (instance,) = launch(aws, node_template(ground), TagSpecifications=_tagged("instance"))
    aws("ec2").terminate_instances(InstanceIds=[instance["InstanceId"]])
    assert _found(aws, TagFilters=[{"Key": "corral:cluster"}]) == []


@pytest.mark.parametrize("value", ["R&D (ml)", "a,b;c"])
def test_iam_refuses_a_tag_with_signs_that_it_does_not_take(aws: Clients, value: str) -> None:
    with pytest.raises(ClientError, match=r"ValidationError.*tags\.1\.member\.value"):
        aws("iam").create_role(RoleName="head", AssumeRolePolicyDocument="{}", Tags=[{"Key": "team", "Value": value}])


def test_iam_takes_letters_of_any_language_in_a_tag(aws: Clients) -> None:
    aws("iam").create_role(
        RoleName="head",
        AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}',
        Tags=[{"Key": "team", "Value": "Jürgen 東京 _.:/=+-@"}],
    )
    assert aws("iam").list_role_tags(RoleName="head")["Tags"] == [{"Key": "team", "Value": "Jürgen 東京 _.:/=+-@"}]
