"""The munge key in the box's Secrets Manager: created once, awaited, never logged."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from box.vpc_fixtures import Clients
from corral.agent.boot.munge_key import SecretError, await_munge_key, make_munge_key


@pytest.fixture
def secrets(aws: Clients) -> Any:
    """A Secrets Manager with the secret `munge`, as `pulumi up` leaves it: without a value."""
    aws("secretsmanager").create_secret(Name="munge")
    return aws("secretsmanager")


def client(**settings: Any) -> Any:
    """A client without AWS."""
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    config = Config(retries={"max_attempts": 0})
    return boto3.client("secretsmanager", region_name="us-east-1", config=config, **keys | settings)


def never(_: float) -> None:
    raise AssertionError("it slept")


def test_the_first_head_creates_a_key_of_1024_bits(secrets: Any) -> None:
    assert len(make_munge_key(secrets, "munge")) == 128


def test_a_later_head_has_the_same_key(secrets: Any) -> None:
    first, second = (make_munge_key(secrets, "munge") for _ in range(2))
    assert first == second


def test_two_clusters_have_two_keys(secrets: Any) -> None:
    secrets.create_secret(Name="other")
    assert make_munge_key(secrets, "munge") != make_munge_key(secrets, "other")


def test_a_node_has_the_key_of_the_head_at_once(secrets: Any) -> None:
    made = make_munge_key(secrets, "munge")
    assert await_munge_key(secrets, "munge", never) == made


def test_a_node_that_is_faster_than_its_head_waits(secrets: Any) -> None:
    slept: list[float] = []

    def sleep(duration_s: float) -> None:
        slept.append(duration_s)
        if len(slept) == 3:
            secrets.put_secret_value(SecretId="munge", SecretBinary=b"key")

    assert (await_munge_key(secrets, "munge", sleep), slept) == (b"key", [2.0, 2.0, 2.0])


def test_a_node_without_a_head_fails_after_ten_minutes(secrets: Any) -> None:
    slept: list[float] = []
    with pytest.raises(SecretError, match=r"^munge has no munge key after 600 s - check that the head has booted$"):
        await_munge_key(secrets, "munge", slept.append)
    assert sum(slept) == 600


def test_the_key_is_never_logged(secrets: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        key = make_munge_key(secrets, "munge")
    assert [message for message in caplog.messages if repr(key)[2:10] in message or key.hex()[:8] in message] == []


def test_a_secret_that_holds_text_is_no_key(secrets: Any) -> None:
    secrets.put_secret_value(SecretId="munge", SecretString="hunter2")
    with pytest.raises(SecretError, match=r"^munge contains text, not a munge key - find out who wrote it$"):
        await_munge_key(secrets, "munge", never)


@pytest.mark.parametrize("read_key", [make_munge_key, lambda client, secret: await_munge_key(client, secret, never)])
def test_a_refusal_is_no_empty_secret(read_key: Callable[[Any, str], bytes]) -> None:
    made = client()
    stub = Stubber(made)
    stub.add_client_error("get_secret_value", "AccessDeniedException", "Not you.")
    stub.activate()
    with pytest.raises(SecretError, match=r"^cannot read munge: .*\(AccessDeniedException\).*: Not you\.$"):
        read_key(made, "munge")


def test_a_head_that_may_not_write_the_key_logs_an_error() -> None:
    made = client()
    stub = Stubber(made)
    stub.add_client_error("get_secret_value", "ResourceNotFoundException", "Empty.")
    stub.add_client_error("put_secret_value", "AccessDeniedException", "Not you.")
    stub.activate()
    with pytest.raises(SecretError, match=r"^cannot write munge: .*\(AccessDeniedException\).*: Not you\.$"):
        make_munge_key(made, "munge")


def test_a_service_that_cannot_be_reached_is_one_sentence() -> None:
    with pytest.raises(SecretError, match=r"^cannot read munge: Could not connect to the endpoint URL"):
        make_munge_key(client(endpoint_url="http://127.0.0.1:9"), "munge")
