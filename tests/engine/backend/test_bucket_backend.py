"""Backend URLs, and stack files compared with the secrets provider of their state. No network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from corral.engine.backend.bucket_backend import BackendBucket, parse_bucket_url
from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.environment import backend_url, require_same_secrets

KEY = "awskms://alias/corral-state?region=us-east-1"


def test_a_url_names_bucket_prefix_region_and_endpoint() -> None:
    assert parse_bucket_url(
        "s3://states/team/a?region=eu-west-1&endpoint=http://127.0.0.1:9&profile=ops"
    ) == BackendBucket(name="states", prefix="team/a", region="eu-west-1", endpoint="http://127.0.0.1:9", profile="ops")


def test_another_kind_of_backend_has_no_bucket() -> None:
    assert parse_bucket_url("file:///var/states") is None


def test_unknown_backend_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as refused:
        backend_url({"PULUMI_BACKEND_URL": "s4://states"}, tmp_path)
    assert (refused.value.sentence, refused.value.code) == (
        "PULUMI_BACKEND_URL is 's4://states', which is not a state backend of Pulumi",
        2,
    )


def test_hosted_backend_is_valid_if_configured(tmp_path: Path) -> None:
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
def test_file_that_matches_its_state_is_ok(tmp_path: Path, encrypted: str | None, text: str) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    require_same_secrets(state(encrypted), tmp_path / "Pulumi.dev.yaml")


def test_missing_stack_matches_every_file(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(f"secretsprovider: {KEY}\n")
    require_same_secrets(None, tmp_path / "Pulumi.dev.yaml")


def test_file_without_the_secrets_provider_is_reported_with_the_line_to_add(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text("config: {}\n")
    with pytest.raises(EngineError) as refused:
        require_same_secrets(state(KEY), file)
    assert (refused.value.sentence, refused.value.hints, refused.value.code) == (
        f"the secrets of this stack are encrypted with {KEY}, but {file} does not name it",
        (f"add the line  secretsprovider: {KEY}",),
        2,
    )


def test_file_with_a_key_for_a_passphrase_stack_is_reported_with_the_fix(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(f"secretsprovider: {KEY}\n")
    with pytest.raises(EngineError) as refused:
        require_same_secrets(state(None), file)
    assert (refused.value.sentence, refused.value.hints[0]) == (
        f"{file} names the secrets provider {KEY}, but the stack uses a passphrase",
        f"to change the provider: pulumi -C {tmp_path} stack change-secrets-provider --stack dev '{KEY}'",
    )
