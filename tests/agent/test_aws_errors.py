"""A call of the agent to AWS whose answer breaks off is that module's own error, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from agent.event_loops import awaited
from corral.agent.accounting.backup import BackupError, BucketBackupStore
from corral.agent.accounting.history_upload import BucketHistoryStore, HistoryError
from corral.agent.boot.munge_key import SecretError, make_munge_key
from corral.agent.config_store import StoreError
from corral.agent.credentials import CredentialsError, role
from corral.agent.dns import DnsError, Zone
from corral.agent.errors import AgentError
from corral.agent.s3 import BucketStore, bucket_client
from corral.model.deployed import BootFacts
from corral.model.history import FORMAT, StoredHistory
from half_answers import HALF_A_BODY, half_answers

ACCOUNT = "123456789012"


def client(service: str, url: str) -> Any:
    return boto3.client(service, endpoint_url=url, config=Config(retries={"max_attempts": 0}))


def read_secret(url: str, _: Path) -> object:
    return make_munge_key(client("secretsmanager", url), "corral/dev/munge")


def fetch_backup(_: str, directory: Path) -> object:
    return BucketBackupStore(bucket_client("us-east-1", ACCOUNT), "base", "dev").fetch(directory / "backup.sql.gz")


def store_history(_: str, __: Path) -> object:
    history = StoredHistory(
        format=FORMAT, cluster="dev", began=1, stored_at=2, head_since=None, events=(), runs=(), problem=""
    )
    return BucketHistoryStore(bucket_client("us-east-1", ACCOUNT), "base").store(history)


def assume_job_role(url: str, _: Path) -> object:
    return awaited(role(client("sts", url), "arn:aws:iam::123456789012:role/dev-job").of("ada"))


def prune_zone(url: str, _: Path) -> object:
    return Zone(client("route53", url), "Z1", "dev.corral").prune(dict)


def read_file(_: str, __: Path) -> object:
    return BucketStore(
        BootFacts(
            cluster="dev", region="us-east-1", bucket="base", prefix="dev", bundle_key="", bundle_sha256="",
            library_key="", library_sha256="", public_key="",
        ),
        ACCOUNT,
    ).read("deployed.json")  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (read_secret, SecretError, "cannot read corral/dev/munge: "),
        (store_history, HistoryError, "cannot write s3://base/"),
        (fetch_backup, BackupError, "cannot read s3://base/"),
        (assume_job_role, CredentialsError, "cannot assume the job role arn:aws:iam::123456789012:role/dev-job: "),
        (prune_zone, DnsError, "cannot update the names in zone Z1: "),
        (read_file, StoreError, "cannot read s3://base/dev/deployed.json: "),
    ],
)
def test_half_an_answer_is_the_error_of_its_module(
    call: Callable[[str, Path], object],
    error: type[AgentError],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with half_answers(HALF_A_BODY) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(error) as raised:
            call(url, tmp_path)
    assert str(raised.value).startswith(text)
