"""Whether what has a base's keep tag is the base's own: against the box, by its key's alias."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import boxes
from corral.inventory.kept_proof import kept_problem, unproven

pytestmark = pytest.mark.box
ACCOUNT, REGION = "123456789012", "us-east-1"
NAME = f"corral-dev-{ACCOUNT}-{REGION}"


class Account:
    """The clients of a box, as the inventory takes them, and the keys of a base and of somebody else."""

    region_name = REGION

    def __init__(self, box: Any) -> None:
        self.client = partial(boxes.client, box)
        kms = self.client("kms")
        self.own, self.other = (kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2))
        kms.create_alias(AliasName="alias/corral-dev", TargetKeyId=self.own)
        ec2 = self.client("ec2")
        self.vpc, self.other_vpc = (ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"] for _ in range(2))
        self.subnet, self.other_subnet = (
            ec2.create_subnet(VpcId=vpc, CidrBlock="10.1.0.0/24")["Subnet"]["SubnetId"]
            for vpc in (self.vpc, self.other_vpc)
        )

    def home(self, key: str, keep: str = "home") -> str:
        """The ARN of a file system encrypted with this key."""
        tags = [{"Key": "corral:base", "Value": "dev"}, {"Key": "corral:keep", "Value": keep}]
        efs = self.client("efs")
        made = efs.create_file_system(CreationToken=f"{keep}-{key}", Encrypted=True, KmsKeyId=key, Tags=tags)
        return str(made["FileSystemArn"])

    def lustre(self, key: str, subnet: str) -> str:
        """The ARN of a file system encrypted with this key, in this subnet."""
        made = self.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            SubnetIds=[subnet],
            KmsKeyId=key,
            LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
            Tags=[{"Key": "corral:base", "Value": "dev"}],
        )
        return str(made["FileSystem"]["ResourceARN"])

    def bucket(self, name: str, key: str) -> str:
        """The ARN of a bucket whose objects are encrypted with this key."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=name)
        rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}
        s3.put_bucket_encryption(Bucket=name, ServerSideEncryptionConfiguration={"Rules": [rule]})
        return f"arn:aws:s3:::{name}"


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with boxes.running_box(tmp_path / "box") as box:
        yield Account(box)


def test_what_the_bases_key_encrypts_is_its_own_and_other_is_not(account: Account) -> None:
    subnets = {account.own: account.subnet, account.other: account.other_subnet}
    made = [(key, [account.home(key), account.lustre(key, subnets[key]), key]) for key in (account.own, account.other)]
    found = {key: [kept_problem(account, "dev", arn) for arn in arns] for key, arns in made}
    differs = f"it is encrypted with {account.other}, not with {account.own}"
    assert found == {
        account.own: [None, None, None],
        account.other: [differs, differs, f"alias/corral-dev names {account.own}"],
    }


def test_the_bucket_has_the_bases_name_and_key(account: Account) -> None:
    arns = [account.bucket(NAME, account.own), account.bucket("planted", account.own)]
    assert [kept_problem(account, "dev", arn) for arn in arns] == [None, f"the base's bucket is {NAME}"]


def test_a_network_is_the_one_of_a_file_system_with_the_bases_key(account: Account) -> None:
    account.lustre(account.own, account.subnet)
    account.lustre(account.other, account.other_subnet)
    arns = [f"arn:aws:ec2:{REGION}:{ACCOUNT}:subnet/{subnet}" for subnet in (account.subnet, account.other_subnet)]
    assert [kept_problem(account, "dev", arn) for arn in arns] == [
        None,
        f"no file system with the base's key is in {account.other_vpc}",
    ]


def test_without_the_alias_nothing_is_proven_but_what_the_state_has(account: Account) -> None:
    known, planted = account.home(account.own), account.home(account.own, keep="other")
    account.client("kms").delete_alias(AliasName="alias/corral-dev")
    found = unproven(account, "dev", frozenset({known.rpartition("/")[2]}))
    assert list(found) == [(planted, "alias/corral-dev names no key")]
