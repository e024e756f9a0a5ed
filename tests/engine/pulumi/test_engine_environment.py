"""The engine's environment: never Pulumi Cloud by accident, never a real account's settings in the box."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.binary import PulumiBinary
from corral.engine.pulumi.environment import backend_url, engine_environment, require_secrets
from forked_plugins import use_real_python

BINARY = PulumiBinary(
    path=Path("/opt/pulumi/pulumi"), version=(3, 259, 0), search=(Path("/opt/host"), Path("/opt/pulumi"))
)


@pytest.fixture(autouse=True)
def real_python(monkeypatch: pytest.MonkeyPatch) -> None:
    use_real_python(monkeypatch)


def test_missing_backend_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as refused:
        backend_url({"HOME": str(tmp_path)}, tmp_path)
    assert refused.value.hints[0] == ("e.g. export PULUMI_BACKEND_URL='s3://my-state-bucket?region=us-east-1'")
    assert refused.value.code == 2


def test_the_project_may_name_the_backend(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster/Pulumi.yaml").write_text("name: corral-cluster\nbackend: {url: 's3://states'}\n")
    assert backend_url({"HOME": str(tmp_path)}, tmp_path) == "s3://states"


@pytest.mark.parametrize("current", ["file:///var/states", "s3://states"])
def test_login_to_a_self_managed_backend_is_used(tmp_path: Path, current: str) -> None:
    (tmp_path / "credentials.json").write_text(json.dumps({"current": current}))
    assert backend_url({"PULUMI_HOME": str(tmp_path)}, tmp_path) == current


def test_login_to_pulumi_cloud_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text(json.dumps({"current": "https://api.pulumi.com"}))
    with pytest.raises(EngineError):
        backend_url({"PULUMI_HOME": str(tmp_path)}, tmp_path)


def test_box_variables_replace_those_of_a_real_account(tmp_path: Path) -> None:
    real = {"AWS_PROFILE": "work", "AWS_SESSION_TOKEN": "t", "AWS_REGION": "eu-west-1", "PATH": "/bin"}
    box = {"AWS_REGION": "us-east-1", "PULUMI_BACKEND_URL": "file:///box/pulumi", "PATH": "/box/bin:/bin"}
    made = engine_environment(real, BINARY, tmp_path, box)
    python = str(Path(sys.executable).parent)
    assert made == {
        "AWS_REGION": "us-east-1",
        "PULUMI_BACKEND_URL": "file:///box/pulumi",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_AUTOMATION_API": "true",
        "PYTHONUNBUFFERED": "1",
        "CORRAL_PYTHON": sys.executable,
        "PATH": f"/opt/host:/opt/pulumi:{python}:/box/bin:/bin",
    }


def test_secrets_need_a_passphrase_or_a_key(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text("config: {}\n")
    with pytest.raises(EngineError, match="no secrets provider is configured"):
        require_secrets({}, file)


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({"PULUMI_CONFIG_PASSPHRASE": ""}, "config: {}\n"),
        ({"PULUMI_CONFIG_PASSPHRASE_FILE": "/f"}, "config: {}\n"),
        ({}, "secretsprovider: awskms://alias/corral?region=us-east-1\n"),
    ],
)
def test_passphrase_or_key_is_ok(tmp_path: Path, environ: dict[str, str], text: str) -> None:
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(text)
    require_secrets(environ, file)
