"""The password for ECR: the job role's, whatever the user's own settings are, printed alone, or one sentence."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from box.vpc_fixtures import Clients
from corral.agent.__main__ import main
from corral.agent.config.file_placements import PROGRAMS
from corral.agent.ecr_password import RegistryError, ecr_password, password_in
from corral.model.cluster import ClusterPlan, JobsPlan, RepositoryPlan
from corral.model.serialization import to_json
from corral.render import deployed_json
from http_server import serving_http
from render.plans import deployed, dev

PULLS = replace(dev(), jobs=JobsPlan(registries=(RepositoryPlan(account=None, name="team/train"),)))


def token(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("held", "password"), [("QVdTOmFiYw==", "abc"), (token("AWS:eyJ/+=:x"), "eyJ/+=:x")], ids=["short", "with a colon"]
)
def test_a_token_contains_the_password(held: str, password: str) -> None:
    assert password_in(held) == password


@pytest.mark.parametrize("held", ["", "AWS:abc", token("AWS"), token("AWS:"), token("EC2:abc"), token("AWS:é")])
def test_a_token_that_is_something_else_is_not_shown(held: str) -> None:
    with pytest.raises(RegistryError, match=r"^ECR's token is not a user's name and a password$"):
        password_in(held)


@dataclass(kw_only=True)
class Aws:
    """A machine's credentials and ECR, at one address. `refusal`: what ECR answers instead of a token."""

    port: int = 0
    refusal: str = ""
    keys: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def ecr() -> Iterator[Aws]:
    held = Aws()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys = {"AccessKeyId": "ASIAJOB", "SecretAccessKey": "s", "Token": "t"}
            self.answer(200, {**keys, "Expiration": "2099-01-01T00:00:00Z"})

        def do_POST(self) -> None:
            held.keys.append(self.headers["Authorization"].partition("Credential=")[2].partition("/")[0])
            if held.refusal:
                self.answer(400, {"__type": "AccessDeniedException", "message": held.refusal})
            else:
                self.answer(200, {"authorizationData": [{"authorizationToken": token("AWS:secret")}]})

        def answer(self, status: int, document: Any) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None: ...

    with serving_http(Handler) as held.port:
        yield held


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a user who has set nothing."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)


def run(monkeypatch: pytest.MonkeyPatch, aws: Aws, directory: Path, plan: ClusterPlan = PULLS) -> int:
    """The exit code of the command on a machine of this cluster."""
    (directory / "cluster.json").write_text(to_json(plan))
    (directory / "deployed.json").write_text(deployed_json(deployed()))
    monkeypatch.setattr("corral.model.job_role.URI", f"{aws.url}/credentials")
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
    return main(["ecr-password", "--records", str(directory)])


def test_the_password_alone_is_printed(
    ecr: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (run(monkeypatch, ecr, tmp_path), *capsys.readouterr()) == (0, "secret\n", "")


def test_the_job_role_logs_in_and_not_the_keys_of_the_user(
    ecr: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOWN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "own")
    assert (run(monkeypatch, ecr, tmp_path), ecr.keys) == (0, ["ASIAJOB"])


def test_a_profile_of_the_user_is_not_read() -> None:
    first, last = PROGRAMS["ecr-password"].splitlines()
    assert (first, last.rpartition(" ")[2]) == ("unset AWS_PROFILE AWS_DEFAULT_PROFILE", "ecr-password")


def test_a_cluster_without_registries_names_the_field(
    ecr: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    assert (run(monkeypatch, ecr, tmp_path, dev()), capsys.readouterr().out) == (1, "")
    assert caplog.messages == [
        "ecr-password: jobs of this cluster may not log in to ECR:"
        " add the repository to jobs.registries in the environment's file"
    ]


def test_what_ecr_refuses_is_one_sentence(
    ecr: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    ecr.refusal = "ada may not"
    assert (run(monkeypatch, ecr, tmp_path), capsys.readouterr().out) == (1, "")
    assert caplog.messages == [
        "ecr-password: cannot get a password from ECR: An error occurred (AccessDeniedException) when calling the"
        " GetAuthorizationToken operation: ada may not"
    ]


def test_a_machine_whose_endpoint_is_away_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    away = Aws(port=1)  # nobody listens there
    assert (run(monkeypatch, away, tmp_path), capsys.readouterr().out) == (1, "")
    (message,) = caplog.messages
    assert message.startswith(f"ecr-password: cannot get the job role's credentials from {away.url}/credentials: ")


def test_the_boxs_ecr_gives_a_password(aws: Clients) -> None:
    assert ecr_password(aws("ecr")).endswith("-auth-token")
