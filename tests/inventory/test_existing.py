"""Whether what the tagging API lists still exists, against the box, whose tagging API lists deleted resources too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import boxes
from corral.box import control
from corral.inventory.existing import exists

KEEP = {"Key": "corral:keep", "Value": "x"}
Make = Callable[[Any], Callable[[], object]]


class Clients:
    """The clients of a box, as the inventory takes them."""

    def __init__(self, box: Any) -> None:
        self.client = partial(boxes.client, box)


def _tagged(kind: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [KEEP]}]


def _vpc(aws: Clients) -> Callable[[], object]:
    ec2 = aws.client("ec2")
    made = ec2.create_vpc(CidrBlock="10.1.0.0/16", TagSpecifications=_tagged("vpc"))["Vpc"]["VpcId"]
    return lambda: ec2.delete_vpc(VpcId=made)


def _subnet(aws: Clients) -> Callable[[], object]:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24", TagSpecifications=_tagged("subnet"))["Subnet"]
    return lambda: ec2.delete_subnet(SubnetId=made["SubnetId"])


def _group(aws: Clients) -> Callable[[], object]:
    ec2 = aws.client("ec2")
    made = ec2.create_security_group(
        GroupName="lustre", Description="Lustre", TagSpecifications=_tagged("security-group")
    )["GroupId"]
    return lambda: ec2.delete_security_group(GroupId=made)


def _bucket(aws: Clients) -> Callable[[], object]:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="kept")
    s3.put_bucket_tagging(Bucket="kept", Tagging={"TagSet": [KEEP]})
    return lambda: s3.delete_bucket(Bucket="kept")


def _key(aws: Clients) -> Callable[[], object]:
    kms = aws.client("kms")
    made = kms.create_key(Tags=[{"TagKey": "corral:keep", "TagValue": "key"}])["KeyMetadata"]["KeyId"]
    return lambda: kms.schedule_key_deletion(KeyId=made)


def _home(aws: Clients) -> Callable[[], object]:
    efs = aws.client("efs")
    made = efs.create_file_system(CreationToken="home", Tags=[KEEP])["FileSystemId"]
    return lambda: efs.delete_file_system(FileSystemId=made)


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with boxes.running_box(tmp_path_factory.mktemp("box") / "state") as status:
        control.inject_fault(Path(status.dir), "stale-tags")
        yield status


def _listed(aws: Clients) -> set[str]:
    pages = (
        aws.client("resourcegroupstaggingapi")
        .get_paginator("get_resources")
        .paginate(TagFilters=[{"Key": "corral:keep"}])
    )
    return {one["ResourceARN"] for page in pages for one in page["ResourceTagMappingList"]}


@pytest.mark.parametrize("make", [_vpc, _subnet, _group, _bucket, _key, _home], ids=lambda make: make.__name__[1:])
def test_a_deleted_resource_that_is_still_listed_does_not_exist(box: Any, make: Make) -> None:
    aws = Clients(box)
    before = _listed(aws)
    delete = make(aws)
    (arn,) = _listed(aws) - before
    existed = exists(aws, arn)
    delete()
    assert (existed, arn in _listed(aws), exists(aws, arn)) == (True, True, False)


def test_a_resource_that_a_base_does_not_retain_counts_as_existing(box: Any) -> None:
    assert exists(Clients(box), "arn:aws:sns:us-east-1:123456789012:alarms")
