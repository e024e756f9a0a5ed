"""Reading, sweeping and deleting kept data, against a box that holds one thing of every kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from furnished import furnish

from boxes import running_box
from corral.box import control
from corral.inventory.account import Session, open_session, read_things
from corral.inventory.deletion import delete_things
from corral.inventory.findings import Known, find
from corral.inventory.kept import delete_kept, kept_things
from corral.inventory.leftovers import Alive, find_leftovers
from corral.inventory.things import Kind, Thing

pytestmark = pytest.mark.box
NOBODY = Alive(bases=frozenset(), clusters=frozenset())
KINDS = [
    "instance",
    "lustre file system",
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
    "files of a cluster",
    "home file system",
    "bucket",
    "key",
]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[control.BoxStatus]:
    with running_box(tmp_path_factory.mktemp("box")) as status:
        yield status


@pytest.fixture(scope="module")
def session(box: control.BoxStatus) -> Iterator[Session]:
    """A session in the box."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in control.environment(box.dir).items():
            patch.setenv(name, value)
        yield open_session("us-east-1")


@pytest.fixture(scope="module")
def full(box: control.BoxStatus, session: Session) -> Session:
    """The furnished account, for reading: its tests come before those that take it apart."""
    furnish(session)
    return session


@pytest.fixture
def doomed(box: control.BoxStatus, session: Session) -> Session:
    """The furnished account, to be taken apart."""
    control.reset(box.dir)
    furnish(session)
    return session


def leftovers(session: Session) -> list[Thing]:
    return [one.thing for one in find_leftovers(read_things(session), NOBODY)]


def test_one_thing_of_every_kind_is_read(full: Session) -> None:
    assert [thing.kind.value for thing in read_things(full)] == KINDS


def test_kept_data_cannot_be_swept(full: Session) -> None:
    kept = [thing for thing in read_things(full) if thing.keep]
    with pytest.raises(ValueError, match=r"home file system fs-.* is not for sweeping"):
        delete_things(full, kept, pause=lambda: None)


def test_kept_things_are_told_with_size_and_monthly_cost(full: Session) -> None:
    kept = kept_things(full, "dev")
    assert [(one.kind.value, one.name, one.size, round(one.usd_per_month or 0, 2)) for one in kept] == [
        ("home file system", "corral-dev-home", "0.0 GiB", 0.0),
        ("bucket", "corral-dev-artefacts", "0.0 GiB", 0.0),
        ("key", "corral-dev-key", "", 1.0),
    ]


def test_bucket_is_as_large_as_all_its_versions(full: Session) -> None:
    sizes = {one.kind: one.size_gib for one in kept_things(full, "dev")}
    assert sizes[Kind.BUCKET] == 3072 / 2**30


def test_nothing_is_kept_by_a_base_of_another_name(full: Session) -> None:
    assert kept_things(full, "other") == ()


def kept_kinds(session: Session, backend: Path) -> list[Kind]:
    """What a sweep says is kept, by the states in this directory."""
    known = Known(bases=frozenset({"dev"}), clusters=frozenset({"dev"}))
    return [thing.kind for thing in find(session, f"file://{backend}", known, only_known=False).kept]


def test_a_sweep_tells_what_a_base_that_is_down_keeps(full: Session, tmp_path: Path) -> None:
    assert kept_kinds(full, tmp_path) == [Kind.HOME, Kind.BUCKET, Kind.KEY]


def test_a_sweep_does_not_tell_the_data_of_a_base_that_is_up(full: Session, tmp_path: Path) -> None:
    state = tmp_path / ".pulumi/stacks/corral-base/dev.json"
    state.parent.mkdir(parents=True)
    vpc = {"urn": "u1", "custom": True, "type": "aws:ec2/vpc:Vpc", "id": "vpc-1"}
    state.write_text(json.dumps({"checkpoint": {"latest": {"resources": [vpc]}}}))
    assert kept_kinds(full, tmp_path) == []


def test_sweep_leaves_nothing_but_kept_data_and_can_be_repeated(doomed: Session) -> None:
    things = leftovers(doomed)
    first, second = (delete_things(doomed, things, pause=lambda: None) for _ in range(2))
    left = [thing.kind for thing in read_things(doomed)]
    refused = [one for one in (*first, *second) if one.refusal]
    assert (left, refused) == ([Kind.HOME, Kind.BUCKET, Kind.KEY], [])


def test_deleting_kept_data_leaves_a_key_that_waits_and_can_be_saved(doomed: Session) -> None:
    key = next(one.id for one in kept_things(doomed, "dev") if one.kind is Kind.KEY)
    deleted = [one.kind for one in delete_kept(doomed, "dev", pause=lambda: None)]
    state = doomed.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"]
    assert (deleted, kept_things(doomed, "dev"), state) == ([Kind.HOME, Kind.BUCKET, Kind.KEY], (), "PendingDeletion")
