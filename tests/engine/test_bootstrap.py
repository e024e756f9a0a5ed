"""Preparing an account: what is made, continued, refused."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

import boxes
from boxes import running_box
from corral.box.control import BoxStatus
from corral.engine.bootstrap import Done, Outcome, identity, look, make, missing_permissions
from corral.engine.bootstrap_steps import Wanted, steps
from corral.plan.deployer import deployer_policies, permission

KEYS = [
    *("bucket", "private", "versions", "encryption", "tls", "lifecycle", "key", "rotation"),
    *("spot.amazonaws.com", "fsx.amazonaws.com", "elasticfilesystem.amazonaws.com"),
    *("policy-network", "policy-storage", "policy-identity"),
]
BUCKET_AND_LATER = ["bucket", "private", "versions", "encryption", "tls", "lifecycle"]


class Account:
    """An account in the box. Calls that are named in `refuse` end with the error code given there."""

    def __init__(self, box: BoxStatus, refuse: dict[str, str] | None = None, region: str = "us-east-1") -> None:
        self._box, self._refuse, self._region = box, refuse or {}, region

    def client(self, service: str, region_name: str | None = None) -> Any:
        """A client, or one that refuses."""
        return Refusing(boxes.client(self._box, service, self._region), self._refuse)


class Refusing:
    """A client that refuses some operations, as IAM does."""

    def __init__(self, client: Any, refuse: dict[str, str]) -> None:
        self._client, self._refuse = client, refuse

    def __getattr__(self, name: str) -> Any:
        operation = self._client.meta.method_to_api_mapping.get(name)
        if operation in self._refuse:
            return self._refused(operation)
        return getattr(self._client, name)

    def _refused(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            error = {"Error": {"Code": self._refuse[operation], "Message": "not authorized"}}
            raise ClientError(error, operation)  # type: ignore[arg-type]

        return call


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with running_box(tmp_path_factory.mktemp("bootstrap") / "box") as status:
        yield status


def prepared(account: Account, wanted: Wanted) -> list[Done]:
    return list(make(account, wanted, look(account, wanted, steps()), pause=lambda seconds: None))


def outcomes(done: list[Done]) -> dict[str, str]:
    return {one.step.key: one.outcome.value for one in done}


def wanted(name: str, region: str = "us-east-1") -> Wanted:
    """One of its own for each test; the roles of services are shared by the whole account."""
    return Wanted(account="123456789012", region=region, name=name)


def test_the_account_is_the_credentials_own(box: BoxStatus) -> None:
    assert identity(Account(box)) == "123456789012"


def test_everything_is_made_once(box: BoxStatus) -> None:
    prepared(Account(box), wanted("once"))
    second = prepared(Account(box), wanted("once"))
    assert outcomes(second) == dict.fromkeys(KEYS, "was there")


def test_a_look_makes_nothing(box: BoxStatus) -> None:
    look(Account(box), wanted("look"), steps())
    names = [one["Name"] for one in boxes.client(box, "s3").list_buckets()["Buckets"]]
    assert [name for name in names if name.startswith("look-")] == []


def test_the_bucket_is_private_versioned_encrypted_and_tidied(box: BoxStatus) -> None:
    prepared(Account(box), wanted("shape"))
    s3, name = boxes.client(box, "s3"), "shape-123456789012-us-east-1"
    lifecycle = s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"][0]
    encryption = s3.get_bucket_encryption(Bucket=name)["ServerSideEncryptionConfiguration"]["Rules"][0]
    policy = json.loads(s3.get_bucket_policy(Bucket=name)["Policy"])["Statement"][0]
    assert {
        "public": set(s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"].values()),
        "versions": s3.get_bucket_versioning(Bucket=name)["Status"],
        "encryption": encryption["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"],
        "denied": (policy["Effect"], policy["Condition"]),
        "old versions": lifecycle["NoncurrentVersionExpiration"],
    } == {
        "public": {True},
        "versions": "Enabled",
        "encryption": "AES256",
        "denied": ("Deny", {"Bool": {"aws:SecureTransport": "false"}}),
        "old versions": {"NoncurrentDays": 90},
    }


def test_the_key_has_its_alias_and_rotates(box: BoxStatus) -> None:
    prepared(Account(box), wanted("keyed"))
    kms = boxes.client(box, "kms")
    key = kms.describe_key(KeyId="alias/keyed")["KeyMetadata"]["KeyId"]
    assert kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"] is True


def test_the_roles_of_services_have_the_names_that_aws_gives(box: BoxStatus) -> None:
    prepared(Account(box), wanted("roles"))
    found = boxes.client(box, "iam").list_roles(PathPrefix="/aws-service-role/")["Roles"]
    assert sorted(one["RoleName"] for one in found) == [
        "AWSServiceRoleForAmazonElasticFileSystem",
        "AWSServiceRoleForAmazonFSx",
        "AWSServiceRoleForEC2Spot",
    ]


def test_a_second_role_of_a_service_is_refused_by_the_box(box: BoxStatus) -> None:
    prepared(Account(box), wanted("roles"))
    with pytest.raises(ClientError) as refused:
        boxes.client(box, "iam").create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    assert refused.value.response["Error"]["Code"] == "InvalidInput"


def test_a_bucket_elsewhere_names_its_region(box: BoxStatus) -> None:
    prepared(Account(box, region="eu-west-1"), wanted("far", "eu-west-1"))
    found = boxes.client(box, "s3").get_bucket_location(Bucket="far-123456789012-eu-west-1")
    assert found["LocationConstraint"] == "eu-west-1"


def test_an_interrupted_run_is_continued(box: BoxStatus) -> None:
    began = make(Account(box), wanted("torn"), look(Account(box), wanted("torn"), steps()))
    for _ in range(3):
        next(began)
    done = outcomes(prepared(Account(box), wanted("torn")))
    assert [done[key] for key in BUCKET_AND_LATER] == ["was there", "was there", "was there", "made", "made", "made"]


def test_a_key_that_a_killed_run_left_nameless_is_taken_up(box: BoxStatus) -> None:
    kms = boxes.client(box, "kms")
    left = kms.create_key(Tags=[{"TagKey": "corral:state", "TagValue": "killed"}])["KeyMetadata"]["KeyId"]
    prepared(Account(box), wanted("killed"))
    assert kms.describe_key(KeyId="alias/killed")["KeyMetadata"]["KeyId"] == left


def test_two_at_once_end_in_one_account(box: BoxStatus) -> None:
    both: list[list[Done]] = []
    runs = [threading.Thread(target=lambda: both.append(prepared(Account(box), wanted("pair")))) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    aliases = boxes.client(box, "kms").list_aliases()["Aliases"]
    assert (
        [sum(not one.is_good for one in done) for done in both],
        sum(one["AliasName"] == "alias/pair" for one in aliases),
    ) == ([0, 0], 1)


def test_two_who_both_looked_before_either_made_use_one_key(box: BoxStatus) -> None:
    account, name = Account(box), wanted("race")
    mine, theirs = look(account, name, steps()), look(account, name, steps())
    list(make(account, name, mine))
    late = outcomes(list(make(account, name, theirs)))
    assert (late["bucket"], late["key"], late["spot.amazonaws.com"]) in {
        ("was there", "was there", "was there"),
        ("made", "was there", "was there"),  # us-east-1 answers a second creation as it answered the first
    }


def test_all_refused_steps_are_told_with_their_permission_and_the_others_are_taken(box: BoxStatus) -> None:
    refuse = {
        "PutBucketLifecycleConfiguration": "AccessDenied",
        "EnableKeyRotation": "AccessDeniedException",
        "GetBucketVersioning": "AccessDenied",
    }
    done = prepared(Account(box, refuse), wanted("partly"))
    assert (missing_permissions(done), outcomes(done)["tls"], outcomes(done)["key"]) == (
        ("kms:EnableKeyRotation", "s3:GetBucketVersioning", "s3:PutLifecycleConfiguration"),
        "made",
        "made",
    )


def test_what_needs_a_refused_step_is_not_tried(box: BoxStatus) -> None:
    done = outcomes(prepared(Account(box, {"CreateBucket": "AccessDenied"}), wanted("bucketless")))
    assert [done[key] for key in BUCKET_AND_LATER] == ["refused", *["not tried"] * 5]


def test_a_change_that_collides_with_another_is_tried_again(box: BoxStatus) -> None:
    busy = {"PutBucketVersioning": "OperationAborted"}
    account, name = Account(box, busy), wanted("busy")
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        busy.clear()

    done = outcomes(list(make(account, name, look(account, name, steps()), pause=pause)))
    assert (done["versions"], paused) == ("made", [1.0])


def test_a_key_that_is_to_be_deleted_is_told(box: BoxStatus) -> None:
    prepared(Account(box), wanted("doomed"))
    kms = boxes.client(box, "kms")
    key = kms.describe_key(KeyId="alias/doomed")["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key)
    found = {one.step.key: one for one in look(Account(box), wanted("doomed"), steps())}["key"]
    assert (found.outcome, found.why) == (
        Outcome.FAILED,
        f"{key} is to be deleted; `aws kms cancel-key-deletion --key-id ...` saves it",
    )


def test_rules_and_statements_of_others_stay(box: BoxStatus) -> None:
    s3, name = boxes.client(box, "s3"), "kept-123456789012-us-east-1"
    s3.create_bucket(Bucket=name)
    other = {"ID": "mine", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}}
    s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": [other]})
    prepared(Account(box), wanted("kept"))
    rules = s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]
    assert [rule["ID"] for rule in rules] == ["mine", "corral-old-states"]


ARN = "arn:aws:iam::123456789012:policy"
OLD = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": "*"}]}
)


def versions(box: BoxStatus, arn: str) -> tuple[list[str], str]:
    """The versions that a policy has, and the one that counts."""
    found = boxes.client(box, "iam").list_policy_versions(PolicyArn=arn)["Versions"]
    (default,) = [one["VersionId"] for one in found if one["IsDefaultVersion"]]
    return sorted(one["VersionId"] for one in found), default


def test_a_deployers_policies_are_made_and_attached_to_nobody(box: BoxStatus) -> None:
    prepared(Account(box), wanted("owned"))
    found = boxes.client(box, "iam").list_policies(Scope="Local")["Policies"]
    mine = {one["PolicyName"]: one["AttachmentCount"] for one in found if one["PolicyName"].startswith("owned-")}
    assert mine == {
        "owned-deploy-us-east-1-identity": 0,
        "owned-deploy-us-east-1-network": 0,
        "owned-deploy-us-east-1-storage": 0,
    }


def test_a_policy_says_what_is_printed_and_carries_the_tag_of_the_key(box: BoxStatus) -> None:
    prepared(Account(box), wanted("said"))
    iam, arn = boxes.client(box, "iam"), f"{ARN}/said-deploy-us-east-1-storage"
    text = iam.get_policy_version(PolicyArn=arn, VersionId="v1")["PolicyVersion"]["Document"]
    printed = deployer_policies(
        account="123456789012", region="us-east-1", alias="alias/said", bucket="said-123456789012-us-east-1"
    )
    assert (text, iam.list_policy_tags(PolicyArn=arn)["Tags"]) == (
        printed[1].document,
        [{"Key": "corral:state", "Value": "said"}],
    )


def test_a_policy_with_another_text_is_told_before_it_is_changed(box: BoxStatus) -> None:
    boxes.client(box, "iam").create_policy(PolicyName="dated-deploy-us-east-1-network", PolicyDocument=OLD)
    found = {one.step.key: one for one in look(Account(box), wanted("dated"), steps())}["policy-network"]
    assert (found.outcome, found.why) == (
        Outcome.MISSING,
        "its version v1 says something else, and stays as an older one",
    )


def test_another_text_becomes_a_new_version_once(box: BoxStatus) -> None:
    boxes.client(box, "iam").create_policy(PolicyName="again-deploy-us-east-1-network", PolicyDocument=OLD)
    made = [outcomes(prepared(Account(box), wanted("again")))["policy-network"] for _ in range(2)]
    assert (made, versions(box, f"{ARN}/again-deploy-us-east-1-network")) == (
        ["made", "was there"],
        (["v1", "v2"], "v2"),
    )


def full(box: BoxStatus, name: str) -> str:
    """A policy of this name with as many versions as AWS keeps, of which the first counts."""
    iam = boxes.client(box, "iam")
    arn: str = iam.create_policy(PolicyName=name, PolicyDocument=OLD)["Policy"]["Arn"]
    for _ in range(4):
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=OLD)
    return arn


def test_of_five_versions_the_oldest_that_does_not_count_goes(box: BoxStatus) -> None:
    arn = full(box, "five-deploy-us-east-1-identity")
    prepared(Account(box), wanted("five"))
    assert versions(box, arn) == (["v1", "v3", "v4", "v5", "v6"], "v6")


def test_two_who_both_saw_an_old_text_make_one_version(box: BoxStatus) -> None:
    boxes.client(box, "iam").create_policy(PolicyName="both-deploy-us-east-1-network", PolicyDocument=OLD)
    account, name = Account(box), wanted("both")
    mine, theirs = look(account, name, steps()), look(account, name, steps())
    list(make(account, name, mine))
    late = outcomes(list(make(account, name, theirs)))
    assert (late["policy-network"], versions(box, f"{ARN}/both-deploy-us-east-1-network")) == (
        "was there",
        (["v1", "v2"], "v2"),
    )


def test_a_policy_that_may_not_be_made_is_told_with_its_permission(box: BoxStatus) -> None:
    done = prepared(Account(box, {"CreatePolicy": "AccessDenied"}), wanted("unmade"))
    assert missing_permissions(done) == ("iam:CreatePolicy",)


def test_every_call_of_a_preparation_is_on_the_page(box: BoxStatus) -> None:
    page = (Path(__file__).parents[2] / "docs" / "bootstrap.md").read_text()
    listed = set(re.findall(r"\b(?:s3|kms|tag|iam|sts):[A-Z]\w+", page.partition("Who prepares")[2].partition("##")[0]))
    full(box, "paged-deploy-us-east-1-network")
    log = Path(box.dir) / "calls.jsonl"
    before = len(log.read_text().splitlines())
    identity(Account(box))
    prepared(Account(box, region="eu-north-1"), wanted("paged", "eu-north-1"))
    prepared(Account(box), wanted("paged"))
    calls = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert sorted({permission(call["service"], call["action"]) for call in calls} - listed) == []
