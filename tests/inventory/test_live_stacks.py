"""Live stacks, read from the files of a state backend."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from corral.inventory.live_stacks import UnreadableBackend, read_live_stacks
from corral.inventory.orphans import LiveStacks
from corral.inventory.scan import open_session

VPC = {"urn": "u1", "custom": True, "type": "aws:ec2/vpc:Vpc", "id": "vpc-1"}
KEY = {"urn": "u2", "custom": True, "type": "aws:kms/key:Key", "id": "k", "protect": True}
STACK = {"urn": "u3", "custom": False, "type": "pulumi:pulumi:Stack"}
PROVIDER = {"urn": "u4", "custom": True, "type": "pulumi:providers:aws", "id": "p"}
COMPONENT = {"urn": "u5", "custom": False, "type": "corral:aws:Network"}


def write(root: Path, project: str, name: str, latest: Any, *, ending: str = ".json") -> None:
    folder = root / ".pulumi" / "stacks" / project
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"version": 3, "checkpoint": {"stack": name, "latest": latest}}).encode()
    (folder / f"{name}{ending}").write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)


def alive(root: Path) -> LiveStacks:
    return read_live_stacks(f"file://{root}", session=None)


def test_a_stack_with_a_resource_is_live(tmp_path: Path) -> None:
    write(tmp_path, "corral-base", "dev", {"resources": [STACK, PROVIDER, COMPONENT, VPC]})
    assert alive(tmp_path) == LiveStacks(bases=frozenset({"dev"}), clusters=frozenset())


def test_queues_of_a_cluster_are_those_that_its_outputs_name(tmp_path: Path) -> None:
    write(tmp_path, "corral-cluster", "dev", {"resources": [{**STACK, "outputs": {"queues": ["train"]}}, VPC]})
    assert alive(tmp_path).queues == {"dev": frozenset({"train"})}


def test_queues_of_a_cluster_that_is_not_wholly_up_are_not_known(tmp_path: Path) -> None:
    write(tmp_path, "corral-cluster", "dev", {"resources": [STACK, VPC]})
    assert alive(tmp_path).queues == {}


def test_a_stack_with_only_retained_data_is_not_live(tmp_path: Path) -> None:
    write(tmp_path, "corral-base", "dev", {"resources": [STACK, PROVIDER, COMPONENT, KEY]})
    assert alive(tmp_path) == LiveStacks(bases=frozenset(), clusters=frozenset())


def test_a_destroyed_stack_is_not_live(tmp_path: Path) -> None:
    write(tmp_path, "corral-cluster", "dev", None)
    assert alive(tmp_path) == LiveStacks(bases=frozenset(), clusters=frozenset())


def test_an_interrupted_stack_is_live_before_its_first_resource(tmp_path: Path) -> None:
    pending = [{"resource": VPC, "type": "creating"}]
    write(tmp_path, "corral-cluster", "dev", {"resources": [], "pending_operations": pending})
    assert alive(tmp_path) == LiveStacks(bases=frozenset(), clusters=frozenset({"dev"}))


def test_compressed_state_is_read(tmp_path: Path) -> None:
    write(tmp_path, "corral-cluster", "big", {"resources": [VPC]}, ending=".json.gz")
    assert alive(tmp_path) == LiveStacks(bases=frozenset(), clusters=frozenset({"big"}))


def test_backups_and_other_projects_do_not_count(tmp_path: Path) -> None:
    write(tmp_path, "corral-cluster", "old", {"resources": [VPC]}, ending=".json.bak")
    write(tmp_path, "another", "dev", {"resources": [VPC]})
    assert alive(tmp_path) == LiveStacks(bases=frozenset(), clusters=frozenset())


def test_missing_backend_is_never_taken_for_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(UnreadableBackend, match="does not exist - check PULUMI_BACKEND_URL"):
        alive(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ("{}", "is damaged: it holds no checkpoint"),
        ("[]", "is damaged: it holds no checkpoint"),
    ],
)
def test_broken_state_is_never_taken_for_a_dead_stack(text: str, reason: str, tmp_path: Path) -> None:
    write(tmp_path, "corral-base", "dev", None)
    (tmp_path / ".pulumi/stacks/corral-base/dev.json").write_text(text)
    with pytest.raises(UnreadableBackend, match=f"the state of corral-base/dev {reason}"):
        alive(tmp_path)


def test_backend_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(UnreadableBackend, match=r"cannot list live stacks in https://api\.example\.org"):
        read_live_stacks("https://api.example.org", session=None)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A session whose account has a bucket `states`."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        monkeypatch.setattr("corral.inventory.scan.account_of", lambda _: "123456789012")
        session = open_session("us-east-1")
        session.client("s3").create_bucket(Bucket="states")
        yield session


def put(session: Any, key: str, latest: Any) -> None:
    document = {"version": 3, "checkpoint": {"latest": latest}}
    session.client("s3").put_object(Bucket="states", Key=key, Body=json.dumps(document).encode())


def test_states_in_a_bucket_are_read(bucket: Any) -> None:
    put(bucket, ".pulumi/stacks/corral-cluster/dev.json", {"resources": [VPC]})
    put(bucket, ".pulumi/stacks/corral-cluster/dev.json.bak", {"resources": [VPC]})
    put(bucket, ".pulumi/stacks/corral-base/dev.json", {"resources": [STACK, KEY]})
    found = read_live_stacks("s3://states?region=us-east-1&awssdk=v2", bucket)
    assert found == LiveStacks(bases=frozenset(), clusters=frozenset({"dev"}))


def test_states_below_a_folder_of_a_bucket_are_read(bucket: Any) -> None:
    put(bucket, "team/a/.pulumi/stacks/corral-base/dev.json", {"resources": [VPC]})
    put(bucket, ".pulumi/stacks/corral-base/other.json", {"resources": [VPC]})
    assert read_live_stacks("s3://states/team/a", bucket) == LiveStacks(bases=frozenset({"dev"}), clusters=frozenset())


def test_missing_bucket_of_states_is_never_taken_for_an_empty_one(bucket: Any) -> None:
    with pytest.raises(UnreadableBackend, match=r"the state backend s3://nowhere cannot be read: .*NoSuchBucket"):
        read_live_stacks("s3://nowhere", bucket)
