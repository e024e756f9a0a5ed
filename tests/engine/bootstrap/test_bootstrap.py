"""Bootstrap of an account: steps that are created, continued, denied."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

import boxes
from boxes import running_box
from corral.box import control
from corral.box.client import BoxStatus
from corral.engine.bootstrap.bootstrap import (
    StepOutcome,
    StepResult,
    bootstrap_steps,
    create_missing,
    inspect_steps,
    missing_permissions,
)
from corral.engine.bootstrap.step import BootstrapTarget
from corral.inventory.untagged import account_of
from corral.plan.iam.deployer_policy import deployer_policies, permission
from corral.plan.iam.head_documents import QUERY

KEYS = [
    *("bucket", "private", "versions", "encryption", "tls", "lifecycle", "key", "rotation"),
    *("spot.amazonaws.com", "fsx.amazonaws.com", "elasticfilesystem.amazonaws.com"),
    "elasticloadbalancing.amazonaws.com",
    *("policy-boundary", "policy-network", "policy-storage", "policy-identity"),
    *("policy-reader", "policy-user", "policy-admin"),
    *("corral-query", "corral-control", "corral-shell", "corral-root-shell", "corral-ssh"),
]
BUCKET_AND_LATER = ["bucket", "private", "versions", "encryption", "tls", "lifecycle"]


class Account:
    """An account in the box. `refuse`: calls that fail, with their error codes."""

    def __init__(self, box: BoxStatus, refuse: dict[str, str] | None = None, region: str = "us-east-1") -> None:
        self._box, self._refuse, self._region = box, refuse or {}, region

    def client(self, service: str, region_name: str | None = None) -> Any:
        """A client, or one that denies some operations."""
        return Refusing(boxes.client(self._box, service, self._region), self._refuse)


class Refusing:
    """A client that denies some operations, as IAM does."""

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


def prepared(account: Account, wanted: BootstrapTarget) -> list[StepResult]:
    return list(
        create_missing(account, wanted, inspect_steps(account, wanted, bootstrap_steps()), pause=lambda seconds: None)
    )


def outcomes(done: list[StepResult]) -> dict[str, str]:
    return {one.step.key: one.outcome.value for one in done}


def wanted(name: str, region: str = "us-east-1") -> BootstrapTarget:
    """One per test; service-linked roles are shared by the whole account."""
    return BootstrapTarget(account="123456789012", region=region, name=name)


def test_the_account_is_the_credentials_own(box: BoxStatus) -> None:
    assert account_of(Account(box)) == "123456789012"


def test_everything_is_created_once(box: BoxStatus) -> None:
    prepared(Account(box), wanted("once"))
    second = prepared(Account(box), wanted("once"))
    assert outcomes(second) == dict.fromkeys(KEYS, "exists")


def test_a_key_that_kms_does_not_find_yet_gets_its_alias_later(box: BoxStatus) -> None:
    control.inject_fault(box.dir, "refuse", call="kms:CreateAlias", code="NotFoundException", hits_left="1")
    assert outcomes(prepared(Account(box), wanted("late")))["key"] == "created"


def test_the_rotation_of_a_key_waits_until_kms_finds_its_alias(box: BoxStatus) -> None:
    late = {"code": "NotFoundException", "hits_left": "2", "message": "Alias alias/slow is not found."}
    steps = [one for one in bootstrap_steps() if one.service == "kms"]
    missing = list(inspect_steps(Account(box), wanted("slow"), steps))
    control.inject_fault(box.dir, "refuse", call="kms:DescribeKey", **late)
    done = list(create_missing(Account(box), wanted("slow"), missing))
    assert outcomes(done) == {"key": "created", "rotation": "created"}


def test_dry_run_creates_nothing(box: BoxStatus) -> None:
    inspect_steps(Account(box), wanted("look"), bootstrap_steps())
    names = [one["Name"] for one in boxes.client(box, "s3").list_buckets()["Buckets"]]
    assert [name for name in names if name.startswith("look-")] == []


def test_bucket_is_private_versioned_encrypted_and_has_a_lifecycle(box: BoxStatus) -> None:
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
        "AWSServiceRoleForElasticLoadBalancing",
    ]


def test_the_role_of_one_service_does_not_stand_in_for_those_of_others(tmp_path: Path) -> None:
    with running_box(tmp_path / "box") as box:
        boxes.client(box, "iam").create_service_linked_role(AWSServiceName="spot.amazonaws.com")
        found = outcomes(list(inspect_steps(Account(box), wanted("roles"), bootstrap_steps())))
    assert [found[key] for key in KEYS if key.endswith(".amazonaws.com")] == ["exists", *["to create"] * 3]


def test_box_rejects_a_second_service_linked_role(box: BoxStatus) -> None:
    prepared(Account(box), wanted("roles"))
    with pytest.raises(ClientError) as refused:
        boxes.client(box, "iam").create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    assert refused.value.response["Error"]["Code"] == "InvalidInput"


def test_bucket_in_another_region_is_reported_with_its_region(box: BoxStatus) -> None:
    prepared(Account(box, region="eu-west-1"), wanted("far", "eu-west-1"))
    found = boxes.client(box, "s3").get_bucket_location(Bucket="far-123456789012-eu-west-1")
    assert found["LocationConstraint"] == "eu-west-1"


def test_an_interrupted_run_is_continued(box: BoxStatus) -> None:
    began = create_missing(Account(box), wanted("torn"), inspect_steps(Account(box), wanted("torn"), bootstrap_steps()))
    for _ in range(3):
        next(began)
    done = outcomes(prepared(Account(box), wanted("torn")))
    assert [done[key] for key in BUCKET_AND_LATER] == ["exists", "exists", "exists", "created", "created", "created"]


def test_key_without_an_alias_from_a_killed_run_is_reused(box: BoxStatus) -> None:
    kms = boxes.client(box, "kms")
    left = kms.create_key(Tags=[{"TagKey": "corral:state", "TagValue": "killed"}])["KeyMetadata"]["KeyId"]
    prepared(Account(box), wanted("killed"))
    assert kms.describe_key(KeyId="alias/killed")["KeyMetadata"]["KeyId"] == left


def plant_key(box: BoxStatus, name: str, **more: Any) -> str:
    """A key of somebody who may create and tag keys, with the tag of that name's. Returns its id."""
    tags = [{"TagKey": "corral:state", "TagValue": name}]
    found: str = boxes.client(box, "kms").create_key(Tags=tags, **more)["KeyMetadata"]["KeyId"]
    return found


def open_policy() -> str:
    """A key's policy that admits another account."""
    statement = {"Effect": "Allow", "Action": "kms:*", "Resource": "*"}
    who = [f"arn:aws:iam::{account}:root" for account in ("123456789012", "999999999999")]
    return json.dumps({"Version": "2012-10-17", "Statement": [{**statement, "Principal": {"AWS": who}}]})


def state_key(box: BoxStatus, name: str) -> tuple[str, str, str]:
    """The outcome and reason of the step of the key, and the key's id."""
    (found,) = inspect_steps(Account(box), wanted(name), [one for one in bootstrap_steps() if one.key == "key"])
    (done,) = create_missing(Account(box), wanted(name), [found])
    key: str = boxes.client(box, "kms").describe_key(KeyId=f"alias/{name}")["KeyMetadata"]["KeyId"]
    return done.outcome.value, found.reason, key


@pytest.mark.parametrize(
    ("name", "more", "problem"),
    [
        ("opened", {"Policy": open_policy(), "BypassPolicyLockoutSafetyCheck": True}, "has a policy of its own"),
        ("copied", {"MultiRegion": True}, "is of another kind, has imported material or replicas"),
        ("brought", {"Origin": "EXTERNAL"}, "is of another kind, has imported material or replicas"),
    ],
)
def test_a_key_that_others_prepared_is_named_and_not_used(
    box: BoxStatus, name: str, more: dict[str, Any], problem: str
) -> None:
    planted = plant_key(box, name, **more)
    outcome, reason, key = state_key(box, name)
    assert (outcome, reason, key == planted) == (
        "created",
        f"key {planted} {problem}: it has the tag corral:state and is not used; find out who made it",
        False,
    )


def test_a_key_with_grants_is_not_used(box: BoxStatus) -> None:
    planted = plant_key(box, "granted")
    boxes.client(box, "kms").create_grant(
        KeyId=planted, GranteePrincipal="arn:aws:iam::999999999999:root", Operations=["Decrypt"]
    )
    _, reason, key = state_key(box, "granted")
    assert (reason.partition(":")[0], key == planted) == (f"key {planted} has grants", False)


def test_two_concurrent_runs_create_everything_once(box: BoxStatus) -> None:
    both: list[list[StepResult]] = []
    runs = [threading.Thread(target=lambda: both.append(prepared(Account(box), wanted("pair")))) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    aliases = boxes.client(box, "kms").list_aliases()["Aliases"]
    assert (
        [sum(not one.exists for one in done) for done in both],
        sum(one["AliasName"] == "alias/pair" for one in aliases),
    ) == ([0, 0], 1)


def test_two_concurrent_runs_use_one_key(box: BoxStatus) -> None:
    account, name = Account(box), wanted("race")
    mine, theirs = inspect_steps(account, name, bootstrap_steps()), inspect_steps(account, name, bootstrap_steps())
    list(create_missing(account, name, mine))
    late = outcomes(list(create_missing(account, name, theirs)))
    assert (late["bucket"], late["key"], late["spot.amazonaws.com"]) in {
        ("exists", "exists", "exists"),
        ("created", "exists", "exists"),  # us-east-1 returns success for a second creation
    }


def test_denied_steps_are_reported_with_their_permission_and_others_run(box: BoxStatus) -> None:
    refuse = {
        "PutBucketLifecycleConfiguration": "AccessDenied",
        "EnableKeyRotation": "AccessDeniedException",
        "GetBucketVersioning": "AccessDenied",
    }
    done = prepared(Account(box, refuse), wanted("partly"))
    assert (missing_permissions(done), outcomes(done)["tls"], outcomes(done)["key"]) == (
        ("kms:EnableKeyRotation", "s3:GetBucketVersioning", "s3:PutLifecycleConfiguration"),
        "created",
        "created",
    )


def test_steps_after_a_denied_step_are_skipped(box: BoxStatus) -> None:
    done = outcomes(prepared(Account(box, {"CreateBucket": "AccessDenied"}), wanted("bucketless")))
    assert [done[key] for key in BUCKET_AND_LATER] == ["denied", *["skipped"] * 5]


def test_a_bucket_of_another_account_is_not_used(tmp_path: Path) -> None:
    with running_box(tmp_path / "box") as box:
        taken = boxes.take_bucket(box.dir, "taken-123456789012-us-east-1")
        bucket, *later = prepared(Account(taken), wanted("taken"))[: len(BUCKET_AND_LATER)]
    assert (bucket.outcome, bucket.reason, {one.outcome for one in later}) == (
        StepOutcome.FAILED,
        "belongs to another account than 123456789012: do not use it - choose another name with --name",
        {StepOutcome.SKIPPED},
    )


def test_conflicting_change_is_retried(box: BoxStatus) -> None:
    busy = {"PutBucketVersioning": "OperationAborted"}
    account, name = Account(box, busy), wanted("busy")
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        busy.clear()

    done = outcomes(list(create_missing(account, name, inspect_steps(account, name, bootstrap_steps()), pause=pause)))
    assert (done["versions"], paused) == ("created", [1.0])


def test_key_scheduled_for_deletion_is_reported(box: BoxStatus) -> None:
    prepared(Account(box), wanted("doomed"))
    kms = boxes.client(box, "kms")
    key = kms.describe_key(KeyId="alias/doomed")["KeyMetadata"]["KeyId"]
    kms.schedule_key_deletion(KeyId=key)
    found = {one.step.key: one for one in inspect_steps(Account(box), wanted("doomed"), bootstrap_steps())}["key"]
    assert (found.outcome, found.reason) == (
        StepOutcome.FAILED,
        f"{key} is scheduled for deletion; `aws kms cancel-key-deletion --key-id ...` cancels that",
    )


def test_rules_and_statements_of_others_are_kept(box: BoxStatus) -> None:
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
    """The versions of a policy, and the default one."""
    found = boxes.client(box, "iam").list_policy_versions(PolicyArn=arn)["Versions"]
    (default,) = [one["VersionId"] for one in found if one["IsDefaultVersion"]]
    return sorted(one["VersionId"] for one in found), default


def test_deploy_policies_are_created_and_not_attached(box: BoxStatus) -> None:
    prepared(Account(box), wanted("owned"))
    found = boxes.client(box, "iam").list_policies(Scope="Local")["Policies"]
    mine = {one["PolicyName"]: one["AttachmentCount"] for one in found if one["PolicyName"].startswith("owned-")}
    assert mine == {
        "owned-admin-us-east-1": 0,
        "owned-deploy-us-east-1-identity": 0,
        "owned-deploy-us-east-1-network": 0,
        "owned-deploy-us-east-1-storage": 0,
        "owned-reader-us-east-1": 0,
        "owned-user-us-east-1": 0,
    }


def test_policy_has_the_printed_text_and_the_tag(box: BoxStatus) -> None:
    prepared(Account(box), wanted("lab"))
    iam, arn = boxes.client(box, "iam"), f"{ARN}/lab-deploy-us-east-1-storage"
    text = iam.get_policy_version(PolicyArn=arn, VersionId="v1")["PolicyVersion"]["Document"]
    printed = deployer_policies(
        account="123456789012", region="us-east-1", alias="alias/lab", bucket="lab-123456789012-us-east-1"
    )
    assert (text, iam.list_policy_tags(PolicyArn=arn)["Tags"]) == (
        printed[1].document,
        [{"Key": "corral:state", "Value": "lab"}],
    )


def test_the_boundary_of_roles_is_at_corrals_path_for_every_state_backend(box: BoxStatus) -> None:
    for name in ("owned", "lab"):
        prepared(Account(box), wanted(name))
    found = boxes.client(box, "iam").list_policies(Scope="Local", PathPrefix="/corral/")["Policies"]
    arns = [one["Arn"] for one in found if one["Arn"].endswith("us-east-1")]
    assert arns == ["arn:aws:iam::123456789012:policy/corral/guards-boundary-us-east-1"]


def test_changed_policy_is_reported_before_it_is_updated(box: BoxStatus) -> None:
    boxes.client(box, "iam").create_policy(PolicyName="dated-deploy-us-east-1-network", PolicyDocument=OLD)
    found = {one.step.key: one for one in inspect_steps(Account(box), wanted("dated"), bootstrap_steps())}[
        "policy-network"
    ]
    assert (found.outcome, found.reason) == (
        StepOutcome.MISSING,
        "its version v1 differs and stays as an older version",
    )


def test_changed_policy_becomes_one_new_version(box: BoxStatus) -> None:
    boxes.client(box, "iam").create_policy(PolicyName="again-deploy-us-east-1-network", PolicyDocument=OLD)
    made = [outcomes(prepared(Account(box), wanted("again")))["policy-network"] for _ in range(2)]
    assert (made, versions(box, f"{ARN}/again-deploy-us-east-1-network")) == (
        ["created", "exists"],
        (["v1", "v2"], "v2"),
    )


def full(box: BoxStatus, name: str) -> str:
    """A policy of this name with the maximum number of versions; the first is the default."""
    iam = boxes.client(box, "iam")
    arn: str = iam.create_policy(PolicyName=name, PolicyDocument=OLD)["Policy"]["Arn"]
    for _ in range(4):
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=OLD)
    return arn


def test_oldest_non_default_version_of_five_is_deleted(box: BoxStatus) -> None:
    arn = full(box, "five-deploy-us-east-1-identity")
    prepared(Account(box), wanted("five"))
    assert versions(box, arn) == (["v1", "v3", "v4", "v5", "v6"], "v6")


def test_two_concurrent_updates_create_one_version(box: BoxStatus) -> None:
    boxes.client(box, "iam").create_policy(PolicyName="both-deploy-us-east-1-network", PolicyDocument=OLD)
    account, name = Account(box), wanted("both")
    mine, theirs = inspect_steps(account, name, bootstrap_steps()), inspect_steps(account, name, bootstrap_steps())
    list(create_missing(account, name, mine))
    late = outcomes(list(create_missing(account, name, theirs)))
    assert (late["policy-network"], versions(box, f"{ARN}/both-deploy-us-east-1-network")) == (
        "exists",
        (["v1", "v2"], "v2"),
    )


@pytest.fixture
def other_document(box: BoxStatus) -> Iterator[Any]:
    """A client of Systems Manager in a region whose document corral-query is another one."""
    ssm = boxes.client(box, "ssm", "eu-central-1")
    other = json.dumps({"schemaVersion": "2.2", "description": "other", "mainSteps": []})
    ssm.create_document(Name="corral-query", DocumentType="Command", Content=other)
    yield ssm
    ssm.delete_document(Name="corral-query")


def prepare_document(box: BoxStatus) -> str:
    """The outcome of the step of corral-query in that region."""
    return outcomes(prepared(Account(box, region="eu-central-1"), wanted("doc", "eu-central-1")))["corral-query"]


def default_of(ssm: Any) -> tuple[str, str]:
    """The default version of corral-query, and its description."""
    found = ssm.get_document(Name="corral-query")
    return found["DocumentVersion"], json.loads(found["Content"])["description"]


READS = "Read a cluster's status, events, job history and what a job has recorded from its head."


def versions_of(ssm: Any) -> list[str]:
    """The versions of corral-query."""
    return [one["DocumentVersion"] for one in ssm.list_document_versions(Name="corral-query")["DocumentVersions"]]


def test_another_document_of_that_name_is_replaced_and_its_version_deleted(box: BoxStatus, other_document: Any) -> None:
    """Who may send a command may name an older version."""
    made = [prepare_document(box) for _ in range(2)]
    assert (made, default_of(other_document), versions_of(other_document)) == (
        ["created", "exists"],
        ("2", READS),
        ["2"],
    )


def test_a_version_that_an_earlier_bootstrap_has_left_is_deleted(box: BoxStatus, other_document: Any) -> None:
    prepare_document(box)
    other = json.dumps({"schemaVersion": "2.2", "description": "another", "mainSteps": []})
    other_document.update_document(Name="corral-query", Content=other, DocumentVersion="$LATEST")
    made = prepare_document(box)
    assert (made, default_of(other_document), versions_of(other_document)) == ("created", ("2", READS), ["2"])


def test_an_older_version_with_the_content_becomes_the_default_again(box: BoxStatus, other_document: Any) -> None:
    text = json.dumps(QUERY.content)  # as an interrupted run leaves it
    version = {"Content": text, "VersionName": sha256(text.encode()).hexdigest()}
    other_document.update_document(Name="corral-query", DocumentVersion="$LATEST", **version)
    made = prepare_document(box)
    assert (made, default_of(other_document), versions_of(other_document)) == ("created", ("2", READS), ["2"])


def test_denied_policy_is_reported_with_its_permission(box: BoxStatus) -> None:
    done = prepared(Account(box, {"CreatePolicy": "AccessDenied"}), wanted("unmade"))
    assert missing_permissions(done) == ("iam:CreatePolicy",)


def test_every_call_of_bootstrap_is_on_the_page(box: BoxStatus) -> None:
    page = (Path(__file__).parents[3] / "docs" / "bootstrap.md").read_text()
    listed = set(
        re.findall(
            r"\b(?:s3|kms|tag|iam|sts|ssm):[A-Z]\w+",
            page.partition("Without administrator rights")[2].partition("##")[0],
        )
    )
    full(box, "paged-deploy-us-east-1-network")
    log = Path(box.dir) / "calls.jsonl"
    before = len(log.read_text().splitlines())
    account_of(Account(box))
    prepared(Account(box, region="eu-north-1"), wanted("paged", "eu-north-1"))
    prepared(Account(box), wanted("paged"))
    calls = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert sorted({permission(call["service"], call["action"]) for call in calls} - listed) == []
