"""Reading resources, cleaning up, and deleting retained data, in a box with one resource of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from account_fixture import furnish
from botocore.exceptions import ClientError

from boxes import running_box
from corral.box import client, control
from corral.inventory.cleanup_report import DeclaredNames, find_in_region
from corral.inventory.deletion import delete_resources
from corral.inventory.orphans import LiveStacks, find_orphans
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.retained_data import RetainedData, delete_retained, list_retained
from corral.inventory.scan import Session, open_session, read_resources

pytestmark = pytest.mark.box
NOBODY = LiveStacks(bases=frozenset(), clusters=frozenset())
KINDS = [
    "instance",
    "lustre file system",
    "load balancer",
    "target group",
    "NAT gateway",
    "VPC endpoint",
    "network interface",
    "volume",
    "public address",
    "launch template",
    "placement group",
    "security group",
    "security group",
    "subnet",
    "route table",
    "internet gateway",
    "VPC",
    "DNS zone",
    "alarm",
    "topic",
    "log group",
    "parameter",
    "secret",
    "instance profile",
    "role",
    "policy",
    "budget",
    "key alias",
    "signing key",
    "files of a cluster",
    "home file system",
    "bucket",
    "key",
]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[client.BoxStatus]:
    with running_box(tmp_path_factory.mktemp("box")) as status:
        yield status


@pytest.fixture(scope="module")
def session(box: client.BoxStatus) -> Iterator[Session]:
    """A session in the box."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in client.environment(box.dir).items():
            patch.setenv(name, value)
        yield open_session("us-east-1")


@pytest.fixture(scope="module")
def full(box: client.BoxStatus, session: Session) -> Session:
    """The furnished account, for reading: its tests come before those that take it apart."""
    furnish(session)
    return session


@pytest.fixture
def doomed(box: client.BoxStatus, session: Session) -> Session:
    """The furnished account, to be taken apart."""
    client.reset(box.dir)
    furnish(session)
    return session


def orphans(session: Session) -> list[AwsResource]:
    return [one.resource for one in find_orphans(read_resources(session), NOBODY)]


def test_one_resource_of_every_kind_is_read(full: Session) -> None:
    assert [resource.kind.value for resource in read_resources(full)] == KINDS


def test_a_cleanup_refuses_retained_data(full: Session) -> None:
    retained = [resource for resource in read_resources(full) if resource.keep]
    with pytest.raises(ValueError, match=r"home file system fs-.* holds retained data or cannot be deleted"):
        delete_resources(full, retained, pause=lambda: None)


def test_retained_data_is_listed_with_size_and_monthly_cost(full: Session) -> None:
    retained = list_retained(full, "dev").own
    assert [(one.kind.value, one.name, one.size, round(one.usd_per_month or 0, 2)) for one in retained] == [
        ("home file system", "corral-dev-home", "0.0 GiB", 0.0),
        ("bucket", "corral-dev-artefacts", "0.0 GiB", 0.0),
        ("key", "corral-dev-key", "", 1.0),
    ]


def test_bucket_is_as_large_as_all_its_versions(full: Session) -> None:
    sizes = {one.kind: one.size_gib for one in list_retained(full, "dev").own}
    assert sizes[ResourceKind.BUCKET] == 3072 / 2**30


def test_nothing_is_kept_by_a_base_of_another_name(full: Session) -> None:
    assert list_retained(full, "other") == RetainedData(own=())


def kept_kinds(session: Session, backend: Path) -> list[ResourceKind]:
    """The retained data that a cleanup finds, with the states in this directory."""
    known = DeclaredNames(bases=frozenset({"dev"}), clusters=frozenset({"dev"}))
    return [
        resource.kind for resource in find_in_region(session, f"file://{backend}", known, only_declared=False).retained
    ]


def test_a_cleanup_lists_the_retained_data_of_a_deleted_base(full: Session, tmp_path: Path) -> None:
    assert kept_kinds(full, tmp_path) == [ResourceKind.HOME, ResourceKind.BUCKET, ResourceKind.KEY]


def test_a_cleanup_does_not_list_the_data_of_a_deployed_base(full: Session, tmp_path: Path) -> None:
    state = tmp_path / ".pulumi/stacks/corral-base/dev.json"
    state.parent.mkdir(parents=True)
    vpc = {"urn": "u1", "custom": True, "type": "aws:ec2/vpc:Vpc", "id": "vpc-1"}
    state.write_text(json.dumps({"checkpoint": {"latest": {"resources": [vpc]}}}))
    assert kept_kinds(full, tmp_path) == []


def test_a_cleanup_leaves_only_retained_data_and_can_be_repeated(doomed: Session) -> None:
    resources = orphans(doomed)
    first, second = (delete_resources(doomed, resources, pause=lambda: None) for _ in range(2))
    left = [resource.kind for resource in read_resources(doomed)]
    refused = [one for one in (*first, *second) if one.refusal]
    assert (left, refused) == ([ResourceKind.HOME, ResourceKind.BUCKET, ResourceKind.KEY], [])


def test_a_key_that_waits_for_its_deletion_is_no_longer_listed(doomed: Session) -> None:
    delete_retained(doomed, "dev", list_retained(doomed, "dev").own, pause=lambda: None)
    assert [one.id for one in read_resources(doomed) if one.kind is ResourceKind.KEY] == []


def test_deleting_kept_data_leaves_a_key_that_waits_and_can_be_saved(doomed: Session) -> None:
    own = list_retained(doomed, "dev").own
    key = next(one.id for one in own if one.kind is ResourceKind.KEY)
    delete_retained(doomed, "dev", own, pause=lambda: None)
    state = doomed.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
    assert ([one.kind for one in own], list_retained(doomed, "dev"), state) == (
        [ResourceKind.HOME, ResourceKind.BUCKET, ResourceKind.KEY],
        RetainedData(own=()),
        "PendingDeletion",
    )


def plant(session: Session) -> dict[ResourceKind, str]:
    """Gives the tags of the base's data to somebody else's. Returns its ids."""
    efs, s3, kms = session.client("efs"), session.client("s3"), session.client("kms")
    tags = [{"Key": "corral:base", "Value": "dev"}, {"Key": "corral:keep", "Value": "home"}]
    key = kms.create_key(Tags=[{"TagKey": one["Key"], "TagValue": one["Value"]} for one in tags])["KeyMetadata"]
    kms.create_alias(AliasName="alias/payroll", TargetKeyId=key["KeyId"])
    home = efs.create_file_system(CreationToken="payroll", Encrypted=True, KmsKeyId=key["Arn"], Tags=tags)
    s3.create_bucket(Bucket="payroll")
    s3.put_bucket_tagging(Bucket="payroll", Tagging={"TagSet": tags})
    return {ResourceKind.HOME: home["FileSystemId"], ResourceKind.BUCKET: "payroll", ResourceKind.KEY: key["KeyId"]}


def test_what_somebody_tagged_as_the_bases_data_is_named_and_not_its_own(doomed: Session) -> None:
    own, planted = list_retained(doomed, "dev").own, plant(doomed)
    found = list_retained(doomed, "dev")
    names = {one.kind: one.id for one in own}
    keys = {
        kind: f"arn:aws:kms:us-east-1:123456789012:key/{id[ResourceKind.KEY]}"
        for kind, id in (("own", names), ("theirs", planted))
    }
    assert (found.own, {one.kind: (one.id, problem) for one, problem in found.unproven}) == (
        own,
        {
            ResourceKind.HOME: (
                planted[ResourceKind.HOME],
                f"it is encrypted with {keys['theirs']}, not with {keys['own']}",
            ),
            ResourceKind.BUCKET: ("payroll", f"the base's bucket is {names[ResourceKind.BUCKET]}"),
            ResourceKind.KEY: (planted[ResourceKind.KEY], f"alias/corral-dev names {keys['own']}"),
        },
    )


def test_what_is_tagged_after_the_confirmation_is_not_deleted(doomed: Session) -> None:
    confirmed = list_retained(doomed, "dev").own
    planted = plant(doomed)
    delete_retained(doomed, "dev", confirmed, pause=lambda: None)
    left = {one.kind: one.id for one in read_resources(doomed) if one.keep is not None}
    assert left == planted


def test_what_the_bases_state_has_is_its_own_without_its_keys_alias(doomed: Session) -> None:
    own = list_retained(doomed, "dev").own
    doomed.client("kms").delete_alias(AliasName="alias/corral-dev")
    found = list_retained(doomed, "dev", in_state={one.id for one in own if one.kind is not ResourceKind.BUCKET})
    assert ([one.kind for one in found.own], [problem for _, problem in found.unproven]) == (
        [ResourceKind.HOME, ResourceKind.KEY],
        ["alias/corral-dev names no key"],
    )


def test_a_key_whose_deletion_is_refused_keeps_the_alias_that_proves_it(doomed: Session, box: client.BoxStatus) -> None:
    """KMS may not see the tag of a new key for five minutes. The next run finds it again."""
    own = list_retained(doomed, "dev").own
    control.inject_fault(box.dir, "refuse", call="kms:TagResource", code="AccessDeniedException", hits_left="1")
    with pytest.raises(ClientError):
        delete_retained(doomed, "dev", own, pause=lambda: None)
    assert [one.kind for one in list_retained(doomed, "dev").own] == [ResourceKind.KEY]
