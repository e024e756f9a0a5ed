"""Service-linked roles, which services create at their first use with the caller's permission."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from test_access import client, role_arn

from box.vpc_fixtures import Clients, LaunchNetwork
from corral.box import control
from corral.box.account import ACCOUNT
from corral.box.client import BoxStatus
from corral.plan.iam.iam_policies import trust_roles

SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}


def caller(box: BoxStatus, aws: Clients) -> Clients:
    """Makes clients of a role that may do all but create service-linked roles."""
    iam = aws("iam")
    iam.create_role(RoleName="ci", AssumeRolePolicyDocument=json.dumps(trust_roles([f"arn:aws:iam::{ACCOUNT}:root"])))
    statements = [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "iam:CreateServiceLinkedRole", "Resource": "*"},
    ]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName="ci", PolicyName="own", PolicyDocument=document)
    held = aws("sts").assume_role(RoleArn=role_arn("ci"), RoleSessionName="up")["Credentials"]
    return lambda service, region="us-east-1": client(box, service, held["AccessKeyId"], region)


def first_uses(aws: Clients, network: LaunchNetwork) -> dict[str, Any]:
    """By service: a call whose service needs its role."""
    home = aws("efs").create_file_system(CreationToken="home")["FileSystemId"]
    machine = {"ImageId": network.image, "SubnetId": network.subnet, "InstanceType": "m7i.large"}
    lustre = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [network.subnet],
        "SecurityGroupIds": [network.group],
        "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
    }
    return {
        "spot": lambda clients: clients("ec2").run_instances(MinCount=1, MaxCount=1, **machine, **SPOT),
        "fsx": lambda clients: clients("fsx").create_file_system(**lustre),
        "elasticfilesystem": lambda clients: clients("efs").create_mount_target(
            FileSystemId=home, SubnetId=network.subnet
        ),
    }


def linked(aws: Clients) -> list[str]:
    return [one["RoleName"] for one in aws("iam").list_roles(PathPrefix="/aws-service-role/")["Roles"]]


@pytest.mark.parametrize(
    ("service", "role"),
    [
        ("spot", "AWSServiceRoleForEC2Spot"),
        ("fsx", "AWSServiceRoleForAmazonFSx"),
        ("elasticfilesystem", "AWSServiceRoleForAmazonElasticFileSystem"),
    ],
)
def test_the_first_use_of_a_service_creates_its_role(
    aws: Clients, launch_network: LaunchNetwork, service: str, role: str
) -> None:
    first_uses(aws, launch_network)[service](aws)
    assert linked(aws) == [role]


@pytest.mark.parametrize(
    ("service", "code", "text"),
    [
        (
            "spot",
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
        ),
        (
            "fsx",
            "AccessDeniedException",
            "User: arn:aws:sts::123456789012:assumed-role/ci/up is not authorized to perform:"
            " iam:CreateServiceLinkedRole on resource: arn:aws:iam::123456789012:role/aws-service-role/"
            "fsx.amazonaws.com/AWSServiceRoleForAmazonFSx with an explicit deny in an identity-based policy",
        ),
        (
            "elasticfilesystem",
            "AccessDeniedException",
            "User is not authorized to perform that action on the specified resource",
        ),
    ],
)
def test_a_caller_that_may_not_create_the_role_is_refused(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork, service: str, code: str, text: str
) -> None:
    use = first_uses(aws, launch_network)[service]
    with pytest.raises(ClientError) as raised:
        use(caller(box, aws))
    error = raised.value.response["Error"]
    assert (error["Code"], error["Message"], linked(aws)) == (code, text, [])


@pytest.mark.parametrize("service", ["spot", "fsx", "elasticfilesystem"])
def test_a_role_that_exists_needs_no_permission(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork, service: str
) -> None:
    use = first_uses(aws, launch_network)[service]
    aws("iam").create_service_linked_role(AWSServiceName=f"{service}.amazonaws.com")
    assert use(caller(box, aws))["ResponseMetadata"]["HTTPStatusCode"] in (200, 201)


def test_a_launch_on_demand_needs_no_role(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    machine = {"ImageId": launch_network.image, "SubnetId": launch_network.subnet, "InstanceType": "m7i.large"}
    caller(box, aws)("ec2").run_instances(MinCount=1, MaxCount=1, **machine)
    assert linked(aws) == []


def test_a_link_to_s3_needs_permission_for_its_role(
    box: BoxStatus, aws: Clients, launch_network: LaunchNetwork
) -> None:
    made = first_uses(aws, launch_network)["fsx"](aws)["FileSystem"]["FileSystemId"]
    aws("s3").create_bucket(Bucket="corpus")
    link = {"FileSystemId": made, "FileSystemPath": "/data", "DataRepositoryPath": "s3://corpus"}
    with pytest.raises(ClientError) as raised:
        caller(box, aws)("fsx").create_data_repository_association(**link)
    error = raised.value.response["Error"]
    assert (error["Code"], error["Message"].partition(".")[0]) == (
        "BadRequest",
        "Amazon FSx is unable to create Service-Linked-Role to access the S3 bucket",
    )


def test_an_organization_denies_the_owner_a_role(box: BoxStatus, aws: Clients, launch_network: LaunchNetwork) -> None:
    use = first_uses(aws, launch_network)["spot"]
    denied = {"Effect": "Deny", "Action": "iam:CreateServiceLinkedRole", "Resource": "*"}
    control.inject_fault(box.dir, "service-control-policy", name="guard", policy=json.dumps({"Statement": [denied]}))
    with pytest.raises(ClientError) as raised:
        use(aws)
    assert raised.value.response["Error"]["Code"] == "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
