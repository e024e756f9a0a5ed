"""What a backend's URL says, and a stack's file against the state that it belongs to. Nothing is asked here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.engine.bucket_backend import Bucket, bucket_of
from corral.engine.environment import backend_url, require_same_secrets
from corral.engine.errors import EngineError

KEY = "awskms://alias/corral-state?region=us-east-1"


def test_a_url_names_bucket_prefix_region_and_endpoint() -> None:
    assert bucket_of("s3://states/team/a?region=eu-west-1&endpoint=http://127.0.0.1:9&profile=ops") == Bucket(
        name="states", prefix="team/a", region="eu-west-1", endpoint="http://127.0.0.1:9", profile="ops"
    )


def test_another_kind_of_backend_has_no_bucket() -> None:
    assert bucket_of("file:///var/states") is None


def test_a_backend_that_pulumi_does_not_know_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as refused:
        backend_url({"PULUMI_BACKEND_URL": "s4://states"}, tmp_path)
    assert (refused.value.sentence, refused.value.code) == (
        "PULUMI_BACKEND_URL is 's4://states', which is no place for states that Pulumi knows",
        2,
    )


def test_a_hosted_backend_counts_where_it_is_named(tmp_path: Path) -> None:
    url = "https://api.pulumi.com"
    assert backend_url({"PULUMI_BACKEND_URL": url}, tmp_path) == url


def state(provider: str | None) -> dict[str, Any]:
    """An exported state whose secrets are encrypted with this key, or with a passphrase."""
    passphrase = {"type": "passphrase", "state": {"salt": "v1:abc"}}
    cloud = {"type": "cloud", "state": {"url": provider, "encryptedkey": "abc"}}
    return {"deployment": {"secrets_providers": cloud if provider else passphrase}}


@pytest.mark.parametrize(
    ("encrypted", "text"),
    [
        (None, "config: {}\n"),
        (None, "encryptionsalt: v1:abc\n"),
        (KEY, f"secretsprovider: {KEY}\nencryptedkey: abc\n"),
        (KEY, f"secretsprovider: {KEY}\n"),
    ],
)
def test_a_file_that_agrees_with_its_state_is_fine(tmp_path: Path, encrypted: str | None, text: str) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    require_same_secrets(state(encrypted), tmp_path / "Pulumi.dev.yaml")


def test_a_stack_that_is_not_there_agrees_with_every_file(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(f"secretsprovider: {KEY}\n")
    require_same_secrets(None, tmp_path / "Pulumi.dev.yaml")


def test_a_file_that_lost_its_line_is_told_with_it(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text("config: {}\n")
    with pytest.raises(EngineError) as refused:
        require_same_secrets(state(KEY), file)
    assert (refused.value.sentence, refused.value.hints, refused.value.code) == (
        f"the secrets of this stack's state are encrypted with {KEY}, of which {file} says nothing",
        (f"add the line  secretsprovider: {KEY}",),
        2,
    )


def test_a_file_that_names_a_key_while_a_passphrase_is_used_is_told_how_to_change(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(f"secretsprovider: {KEY}\n")
    with pytest.raises(EngineError) as refused:
        require_same_secrets(state(None), file)
    assert (refused.value.sentence, refused.value.hints[0]) == (
        f"{file} says that the secrets are encrypted with {KEY}, but it is a passphrase",
        f"to change it: pulumi -C {tmp_path} stack change-secrets-provider --stack dev '{KEY}'",
    )
