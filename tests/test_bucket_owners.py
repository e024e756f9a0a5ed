"""How corral's clients of S3 name the owner of a bucket, and how calls without one are found (bucket_owners.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import pytest
from moto import mock_aws

from bucket_owners import UNOWNED, unowned
from corral.agent.accounting.backup import BucketBackupStore
from corral.agent.s3 import bucket_client
from corral.box.provider.aws_clients import USER_AGENT
from corral.engine.pulumi.engine_account import Account
from corral.inventory.scan import open_session
from corral.model.bucket_owner import ANY_OWNER

ACCOUNT = "123456789012"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
MACHINE = {"service": "s3", "action": "GetObject", "caller": "ASIA1", "instance": "i-1"}
COMMAND = {"service": "s3", "action": "GetObject", "caller": "AKIA1", "user_agent": "Boto3/1.43.2 md/Botocore#1.43.2"}


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account with a bucket."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for module in ("scan", "untagged"):  # a box's STS, which another test may have put in place, knows no such key
        monkeypatch.setattr(f"corral.inventory.{module}.account_of", lambda _: ACCOUNT)
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="kept")
        yield


def owner_in(s3: Any, **parameters: str) -> str | None:
    """The owner that a call of this client expects."""
    sent: list[Mapping[str, str]] = []
    s3.meta.events.register("before-call.s3", lambda params, **_: sent.append(params["headers"]))
    s3.list_objects_v2(Bucket="kept", **parameters)
    return sent[-1].get("x-amz-expected-bucket-owner")


@pytest.mark.parametrize(
    "client",
    [
        lambda: bucket_client("us-east-1", ACCOUNT),
        lambda: open_session("us-east-1").client("s3"),
        lambda: Account(KEYS, "us-east-1").client("s3"),
    ],
    ids=["agent", "inventory", "engine"],
)
def test_a_client_expects_the_account_as_owner(client: Callable[[], Any]) -> None:
    assert owner_in(client()) == ACCOUNT


def test_a_call_about_any_accounts_bucket_expects_no_owner() -> None:
    assert owner_in(bucket_client("us-east-1", ACCOUNT), ExpectedBucketOwner=ANY_OWNER) is None


def test_a_call_that_has_no_owner_is_left_as_it_is() -> None:
    assert [one["Name"] for one in bucket_client("us-east-1", ACCOUNT).list_buckets()["Buckets"]] == ["kept"]


def test_a_call_of_corral_without_an_owner_is_found(tmp_path: Any) -> None:
    BucketBackupStore(boto3.client("s3", region_name="us-east-1"), "kept", "dev").fetch(tmp_path / "backup")
    found = list(UNOWNED)
    UNOWNED.clear()
    assert found == ["corral.agent.accounting.backup calls ListObjectsV2 of any account's bucket kept"]


def test_a_download_in_a_thread_without_an_owner_is_found(tmp_path: Any) -> None:
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.put_object(Bucket="kept", Key="a", Body=b"1")
    s3.download_file("kept", "a", str(tmp_path / "a"))
    found = sorted(set(UNOWNED))
    UNOWNED.clear()
    assert found == [
        "s3transfer calls GetObject of any account's bucket kept",
        "s3transfer calls HeadObject of any account's bucket kept",
    ]


def test_a_call_of_a_machine_without_an_owner_is_found() -> None:
    assert unowned([json.dumps(MACHINE)]) == ["a machine calls GetObject of any account's bucket"]


def test_a_call_of_a_command_without_an_owner_is_found() -> None:
    assert unowned([json.dumps(COMMAND)]) == ["a command calls GetObject of any account's bucket"]


def test_a_call_of_a_test_has_the_user_agent_of_tests() -> None:
    sent: list[str] = []
    s3 = boto3.client("s3", region_name="us-east-1")
    s3.meta.events.register("before-call.s3", lambda params, **_: sent.append(params["headers"]["User-Agent"]))
    s3.list_buckets()
    assert [unowned([json.dumps({**COMMAND, "user_agent": one})]) for one in sent] == [[]]


@pytest.mark.parametrize(
    "call",
    [
        {**MACHINE, "expected_owner": ACCOUNT},
        {**COMMAND, "expected_owner": ACCOUNT},
        {**MACHINE, "action": "ListBuckets"},
        {**COMMAND, "action": "HeadBucket"},
        {**COMMAND, "user_agent": f"{COMMAND['user_agent']} {USER_AGENT}"},
        {**COMMAND, "user_agent": "m/E aws-sdk-go-v2/1.42.0 os/linux lang/go#1.26"},
        {**COMMAND, "caller": "ASIA1"},
    ],
    ids=["a machine with one", "a command with one", "no bucket", "any owner", "the provider", "the engine", "a job"],
)
def test_other_calls_of_the_log_are_left_out(call: Mapping[str, str]) -> None:
    assert unowned([json.dumps(call)]) == []
