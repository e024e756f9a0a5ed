"""The bucket as a store, against moto."""

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from box.vpc_fixtures import Clients
from corral.agent.config_store import StoreError
from corral.agent.s3 import BucketStore
from corral.box import client
from corral.box.account import ACCOUNT
from corral.box.client import BoxStatus
from render.plans import boot_facts


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketStore]:
    """The store of cluster `dev` in a bucket of S3."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=boot_facts().bucket)
        for key in ("clusters/dev/slurm/slurm.conf", "clusters/dev/cluster.json"):
            client.put_object(Bucket=boot_facts().bucket, Key=key, Body=key.encode())
        yield BucketStore(boot_facts(), ACCOUNT)


def test_an_object_is_read_by_its_name(store: BucketStore) -> None:
    assert store.read("cluster.json") == b"clusters/dev/cluster.json"


def test_a_missing_object_is_named(store: BucketStore) -> None:
    with pytest.raises(StoreError, match="cannot read s3://corral-dev-123456789012-us-east-1/clusters/dev/x: "):
        store.read("x")


def test_a_bucket_of_another_account_is_not_read(aws: Clients, box: BoxStatus, monkeypatch: pytest.MonkeyPatch) -> None:
    aws("s3").create_bucket(Bucket=boot_facts().bucket)
    for name, value in client.environment(box.dir).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match="AccessDenied"):
        BucketStore(boot_facts(), "999999999999").read("cluster.json")
