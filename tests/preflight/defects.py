"""Defects of an account, each created in the box through its API and removed again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3

import boxes
from corral.box import control
from corral.box.account import ACCOUNT
from corral.box.client import BoxStatus
from corral.model.bucket_owner import expect_owner

RESERVED = "cr-0fedcba9876543210"
CORPUS, RESULTS = "corral-example-corpus", "corral-example-results"
MIXED_VPC = "vpc-0123456789abcdef0"
IMAGE = "/corral-box/ami"
OF_TRAIN = {"corral:base": "train"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxSession:
    """A session in the box. `keys`: of a role; by default those of the box's own user."""

    box: BoxStatus
    keys: Mapping[str, str] = field(default_factory=dict)

    def client(self, service: str, region: str = "us-east-1") -> Any:
        """A client of the box with these keys."""
        if not self.keys:
            return boxes.client(self.box, service, region)
        client: Any = boto3.Session(**self.keys, region_name=region).client(service, endpoint_url=self.box.url)
        return expect_owner(client, lambda: ACCOUNT) if service == "s3" else client


Defect = Callable[[BoxStatus], AbstractContextManager[BoxSession]]


def quota(code: str, value: float) -> Defect:
    """A quota of this value."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        dir = Path(box.dir)
        (held,) = control.quotas(dir, code=code)["quotas"]
        control.set_quota(dir, code, value)
        yield BoxSession(box=box)
        control.set_quota(dir, code, held["value"])

    return made


def fault(kind: str, **words: str) -> Defect:
    """A fault in the box without an end."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        control.inject_fault(Path(box.dir), kind, **words)
        yield BoxSession(box=box)
        control.clear_faults(Path(box.dir), kind)

    return made


def calls(
    service: str, action: str, request: Mapping[str, Any], back: str, undo: Mapping[str, Any], region: str = "us-east-1"
) -> Defect:
    """An API call, and the one that undoes it."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        client = boxes.client(box, service, region)
        getattr(client, action)(**request)
        yield BoxSession(box=box)
        getattr(client, back)(**undo)

    return made


def reservation(changed: Mapping[str, Any], undo: Mapping[str, Any]) -> Defect:
    """The reservation of `train`, modified."""
    id = {"CapacityReservationId": RESERVED}
    action = "modify_capacity_reservation"
    return calls("ec2", action, {**id, **changed}, action, {**id, **undo})


def ends_soon() -> Defect:
    """The reservation of `train` ends within the day."""
    soon = datetime.now(UTC) + timedelta(hours=3)
    return reservation({"EndDateType": "limited", "EndDate": soon}, {"EndDateType": "unlimited"})


def without_bucket(name: str) -> Defect:
    """A missing bucket."""
    return calls("s3", "delete_bucket", {"Bucket": name}, "create_bucket", {"Bucket": name})


def without_role(name: str, service: str) -> Defect:
    """A missing service-linked role."""
    back = "create_service_linked_role"
    return calls("iam", "delete_service_linked_role", {"RoleName": name}, back, {"AWSServiceName": service})


@contextmanager
def bucket_elsewhere(box: BoxStatus) -> Iterator[BoxSession]:
    """The corpus, which FSx imports, in another region."""
    here, west = boxes.client(box, "s3"), boxes.client(box, "s3", "us-west-2")
    here.delete_bucket(Bucket=CORPUS)
    west.create_bucket(Bucket=CORPUS, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    yield BoxSession(box=box)
    west.delete_bucket(Bucket=CORPUS)
    here.create_bucket(Bucket=CORPUS)


@contextmanager
def image_gone(box: BoxStatus) -> Iterator[BoxSession]:
    """The profile's parameter names a missing image."""
    ssm = boxes.client(box, "ssm")
    held = ssm.get_parameter(Name=IMAGE)["Parameter"]["Value"]
    ssm.put_parameter(Name=IMAGE, Value="ami-0123456789abcdef0", Type="String", Overwrite=True)
    yield BoxSession(box=box)
    ssm.put_parameter(Name=IMAGE, Value=held, Type="String", Overwrite=True)


def kept_key(*, state: str) -> Defect:
    """A retained key of the base of `train`, in this state."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        kms = boxes.client(box, "kms")
        tags = {**OF_TRAIN, "corral:keep": "key"}
        id = kms.create_key(Tags=[{"TagKey": key, "TagValue": value} for key, value in tags.items()])
        key = {"KeyId": id["KeyMetadata"]["KeyId"]}
        if state == "Disabled":
            kms.disable_key(**key)
        elif state == "PendingDeletion":
            kms.schedule_key_deletion(**key)
        else:
            nobody = json.dumps({"Version": "2012-10-17", "Statement": []})
            kms.put_key_policy(**key, PolicyName="default", Policy=nobody)
        yield BoxSession(box=box)
        if state == "PendingDeletion":  # in which a key keeps its tags
            kms.cancel_key_deletion(**key)
        kms.untag_resource(**key, TagKeys=list(tags))

    return made


@contextmanager
def bucket_behind_a_key(box: BoxStatus) -> Iterator[BoxSession]:
    """The bucket of results is encrypted by another key, whose policy leaves access to IAM."""
    s3 = boxes.client(box, "s3")
    key = boxes.client(box, "kms").create_key()["KeyMetadata"]["Arn"]
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
    s3.put_bucket_encryption(Bucket=RESULTS, ServerSideEncryptionConfiguration={"Rules": [rule]})
    yield BoxSession(box=box)
    s3.delete_bucket_encryption(Bucket=RESULTS)


@contextmanager
def group_without_its_rule(box: BoxStatus) -> Iterator[BoxSession]:
    """The group of the cluster's machines without the rule that allows traffic from itself."""
    ec2 = boxes.client(box, "ec2")
    tags = [{"Key": "corral:cluster", "Value": "train"}, *_pairs(OF_TRAIN)]
    group = ec2.create_security_group(
        GroupName="machines",
        Description="machines",
        VpcId=ec2.describe_vpcs()["Vpcs"][0]["VpcId"],
        TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
    )["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=itself)
    yield BoxSession(box=box)
    ec2.delete_security_group(GroupId=group)


@contextmanager
def _subnet(box: BoxStatus, *, of_train: bool) -> Iterator[str]:
    """A subnet in the first zone of `train`, in its base's VPC or in another one."""
    ec2 = boxes.client(box, "ec2")
    tags = [{"ResourceType": "vpc", "Tags": _pairs(OF_TRAIN if of_train else {"Name": "theirs"})}]
    vpc = ec2.create_vpc(CidrBlock="10.80.0.0/16", TagSpecifications=tags)["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.80.32.0/19", AvailabilityZoneId="use1-az1")["Subnet"]["SubnetId"]
    yield made
    ec2.delete_subnet(SubnetId=made)
    ec2.delete_vpc(VpcId=vpc)


@contextmanager
def home_in_another_vpc(box: BoxStatus) -> Iterator[BoxSession]:
    """The home of the base of `train` has a mount target in another VPC."""
    efs = boxes.client(box, "efs")
    with _subnet(box, of_train=False) as subnet:
        tags = _pairs(OF_TRAIN)
        id = efs.create_file_system(CreationToken="corral-train-home", Tags=tags)["FileSystemId"]
        target = efs.create_mount_target(FileSystemId=id, SubnetId=subnet)["MountTargetId"]
        yield BoxSession(box=box)
        efs.delete_mount_target(MountTargetId=target)
        efs.delete_file_system(FileSystemId=id)


@contextmanager
def lustre_of_another_size(box: BoxStatus) -> Iterator[BoxSession]:
    """The retained Lustre of the base of `train` has twice the declared size."""
    fsx = boxes.client(box, "fsx")
    with _subnet(box, of_train=True) as subnet:
        id = fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=38400,
            SubnetIds=[subnet],
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
            Tags=_pairs({**OF_TRAIN, "corral:keep": "lustre-fs-data"}),
        )["FileSystem"]["FileSystemId"]
        yield BoxSession(box=box)
        fsx.delete_file_system(FileSystemId=id)
        while any(one["FileSystemId"] == id for one in fsx.describe_file_systems()["FileSystems"]):
            time.sleep(0.1)  # its interface blocks deletion of the subnet


def organization(**statement: Any) -> Defect:
    """A service control policy denies this, on all resources unless it names some."""
    return fault(
        "service-control-policy", name="guard", policy=_document({"Effect": "Deny", "Resource": "*", **statement})
    )


def within_a_boundary(denied: str) -> Defect:
    """The caller is a role with all permissions, and a permissions boundary that lacks this one."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        iam = boxes.client(box, "iam")
        most = _document({"Effect": "Allow", "NotAction": denied, "Resource": "*"})
        arn = iam.create_policy(PolicyName="ceiling", PolicyDocument=most)["Policy"]["Arn"]
        with as_role()(box) as session:
            iam.put_role_permissions_boundary(RoleName="deployer", PermissionsBoundary=arn)
            yield session
            iam.delete_role_permissions_boundary(RoleName="deployer")
        iam.delete_policy(PolicyArn=arn)

    return made


def without_role_or_permission(name: str, service: str) -> Defect:
    """A missing service-linked role, which the caller may not create."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        roles = f"arn:aws:iam::*:role/aws-service-role/{service}/*"
        less = as_role("iam:CreateServiceLinkedRole", resource=roles)
        with without_role(name, service)(box), less(box) as session:
            yield session

    return made


def as_role(*denied: str, resource: str = "*") -> Defect:
    """The caller is a role with all permissions except these."""

    @contextmanager
    def made(box: BoxStatus) -> Iterator[BoxSession]:
        iam, role = boxes.client(box, "iam"), "deployer"
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
        arn = iam.create_role(RoleName=role, AssumeRolePolicyDocument=_document(trust))["Role"]["Arn"]
        allow = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        deny = [{"Effect": "Deny", "Action": list(denied), "Resource": resource}] if denied else []
        with ExitStack() as undo:
            undo.callback(iam.delete_role, RoleName=role)
            iam.put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=_document(allow, *deny))
            undo.callback(iam.delete_role_policy, RoleName=role, PolicyName="own")
            held = boxes.client(box, "sts").assume_role(RoleArn=arn, RoleSessionName="ann")["Credentials"]
            keys = {
                "aws_access_key_id": held["AccessKeyId"],
                "aws_secret_access_key": held["SecretAccessKey"],
                "aws_session_token": held["SessionToken"],
            }
            yield BoxSession(box=box, keys=keys)

    return made


@contextmanager
def address_taken(box: BoxStatus) -> Iterator[BoxSession]:
    """An interface has the address of the head of `mixed`."""
    ec2 = boxes.client(box, "ec2", "us-west-2")
    made = ec2.create_network_interface(SubnetId="subnet-0123456789abcdef0", PrivateIpAddress="10.20.32.10")
    yield BoxSession(box=box)
    ec2.delete_network_interface(NetworkInterfaceId=made["NetworkInterface"]["NetworkInterfaceId"])


@contextmanager
def vpc_without_a_way_out(box: BoxStatus) -> Iterator[BoxSession]:
    """The main route table of the VPC of `mixed` has no route through NAT."""
    ec2 = boxes.client(box, "ec2", "us-west-2")
    main = [{"Name": "vpc-id", "Values": [MIXED_VPC]}, {"Name": "association.main", "Values": ["true"]}]
    (table,) = ec2.describe_route_tables(Filters=main)["RouteTables"]
    (way,) = (one for one in table["Routes"] if "NatGatewayId" in one)
    route = {"RouteTableId": table["RouteTableId"], "DestinationCidrBlock": "0.0.0.0/0"}
    ec2.delete_route(**route)
    yield BoxSession(box=box)
    ec2.create_route(**route, NatGatewayId=way["NatGatewayId"])


def vpc_without_names() -> Defect:
    """DNS host names are off in the VPC of `mixed`."""
    off, on = ({"VpcId": MIXED_VPC, "EnableDnsHostnames": {"Value": value}} for value in (False, True))
    return calls("ec2", "modify_vpc_attribute", off, "modify_vpc_attribute", on, "us-west-2")


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})
