"""States in an S3 bucket with secrets under a KMS key, with the real engine: both are the box's, the URLs are AWS's.

The stacks are small ones, as these tests are about where their state is. Each test needs only that the first admin has
brought `dev` up.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import boxes
from boxes import running_box, settle_tags
from cli_session import copy_project
from corral.box import client
from corral.box.client import BoxStatus
from deployer_role import DEPLOYER, create_deployer
from forked_corral import run_corral

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]
BUCKET = "corral-state-123456789012-us-east-1"
URL = f"s3://{BUCKET}?region=us-east-1"
PROVIDER = "awskms://alias/corral-state?region=us-east-1"
OF_THE_BOX = ("CORRAL_BOX_DIR", "CORRAL_STACKS", "PULUMI_CONFIG_PASSPHRASE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """Somebody with a checkout, a home and a shell of their own, who works on the account that the box is."""

    box: BoxStatus
    directory: Path
    settings: dict[str, str] = field(default_factory=dict)
    role: str | None = None

    @property
    def project(self) -> Path:
        return self.directory / "project"

    def corral(self, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """The command, run to its end, on the account and not on `--box`."""
        of_box = client.environment(self.box.dir, self.role)
        of_account = {name: value for name, value in of_box.items() if name not in OF_THE_BOX}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PULUMI_", "AWS_"))}
        own = {"CORRAL_STATE_DIR": str(self.directory / "state"), "PULUMI_BACKEND_URL": URL, "NO_COLOR": "1"}
        environ = {**kept, **of_account, **own, **self.settings, **settings}
        return run_corral(*arguments, cwd=self.project, env=environ)

    def numbers(self) -> dict[str, tuple[int, int]]:
        """What an up does: made, and left as it is, by stack."""
        done = self.corral("up", "dev", "--yes", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return {name: (found[name]["created"], found[name]["same"]) for name in ("base", "cluster")}

    def encrypt(self) -> None:
        """The secrets of `dev` are to be under the key that `corral bootstrap` has made."""
        for stack in ("base", "cluster"):
            path = self.project / "stacks" / stack / "Pulumi.dev.yaml"
            path.write_text(f"secretsprovider: {PROVIDER}\n{path.read_text()}")

    def edit(self, stack: str, old: str, new: str, file: str = "Pulumi.dev.yaml") -> None:
        path = self.project / "stacks" / stack / file
        path.write_text(path.read_text().replace(old, new))


def end(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    """The exit code, and the first line of what corral says last."""
    printed = [line for line in done.stderr.splitlines() if line.startswith("corral: ")]
    assert "Traceback" not in done.stderr
    return done.returncode, printed[-1].removeprefix("corral: ") if printed else ""


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    """The first admin, who prepared the account and brought `dev` up."""
    directory = tmp_path_factory.mktemp("admins")
    with running_box(directory / "box") as box:
        admin = Admin(box=box, directory=directory / "one")
        copy_project(admin.project, small=True)
        admin.edit("base", "range(4)", "range(1)", "__main__.py")
        assert admin.corral("bootstrap", "--yes").returncode == 0
        s3(admin).create_bucket(Bucket="corral-example-corpus")  # the data that `dev` refers to
        admin.encrypt()
        assert admin.numbers() == {"base": (6, 0), "cluster": (8, 0)}
        yield admin


@pytest.fixture
def other(admin: Admin, tmp_path: Path) -> Admin:
    """Another admin: the same files, as git brings them, in another directory and another home."""
    shutil.copytree(admin.project, tmp_path / "project")
    return Admin(box=admin.box, directory=tmp_path)


def drop_lines(file: Path, *beginnings: str) -> None:
    file.write_text(
        "".join(one for one in file.read_text().splitlines(keepends=True) if not one.startswith(beginnings))
    )


def s3(admin: Admin) -> Any:
    return boxes.client(admin.box, "s3")


@contextmanager
def lock(admin: Admin, pid: int, host: str) -> Iterator[str]:
    """Pulumi's lock of the base is in the bucket, as an engine of this process puts it there; its key."""
    key = ".pulumi/locks/organization/corral-base/dev/0000.json"
    record = {"pid": pid, "username": "ann", "hostname": host, "timestamp": datetime.now(UTC).isoformat()}
    s3(admin).put_object(Bucket=BUCKET, Key=key, Body=json.dumps(record).encode())
    try:
        yield key
    finally:
        s3(admin).delete_object(Bucket=BUCKET, Key=key)


def test_the_states_lie_in_the_bucket(admin: Admin) -> None:
    found = s3(admin).list_objects_v2(Bucket=BUCKET, Prefix=".pulumi/stacks/")["Contents"]
    assert [one["Key"] for one in found if one["Key"].endswith(".json")] == [
        ".pulumi/stacks/corral-base/dev.json",
        ".pulumi/stacks/corral-cluster/dev.json",
    ]


def test_no_lock_is_left(admin: Admin) -> None:
    assert "Contents" not in s3(admin).list_objects_v2(Bucket=BUCKET, Prefix=".pulumi/locks/")


def test_the_secrets_are_encrypted_with_the_key(admin: Admin) -> None:
    body = s3(admin).get_object(Bucket=BUCKET, Key=".pulumi/stacks/corral-base/dev.json")["Body"].read()
    used = json.loads(body)["checkpoint"]["latest"]["secrets_providers"]
    assert (used["type"], used["state"]["url"]) == ("cloud", PROVIDER)


def test_cleanup_knows_the_stacks_of_the_bucket(admin: Admin) -> None:
    found = json.loads(admin.corral("cleanup", "--json").stdout)["regions"][0]
    assert (found["backend"], found["orphans"]) == (URL, [])


def test_a_deployer_keeps_states_in_the_bucket_and_secrets_under_the_key(tmp_path: Path) -> None:
    with running_box(tmp_path / "box") as box:
        deployer = Admin(box=box, directory=tmp_path / "one", role=DEPLOYER)
        copy_project(deployer.project, small=False)
        assert replace(deployer, role=None).corral("bootstrap", "--yes").returncode == 0
        create_deployer(boxes.client(box, "iam"))
        s3(deployer).create_bucket(Bucket="corral-example-corpus")
        deployer.encrypt()
        made = deployer.corral("up", "dev", "--yes")
        deployer = replace(deployer, box=settle_tags(box))  # a deployer deletes the signing key by its tag
        gone = deployer.corral("down", "dev", "--yes", "--with-base")
    assert (end(made), end(gone)) == ((0, ""), (0, ""))


def test_another_checkout_finds_nothing_to_do_even_without_the_encrypted_key(other: Admin) -> None:
    for stack in ("base", "cluster"):
        drop_lines(other.project / "stacks" / stack / "Pulumi.dev.yaml", "encryptedkey")
    assert other.numbers() == {"base": (0, 6), "cluster": (0, 8)}


def test_an_admin_at_work_is_named_to_the_other(other: Admin) -> None:
    with lock(other, os.getpid(), socket.gethostname()):
        code, printed = end(other.corral("up", "dev", "--yes"))
    who = f"process {os.getpid()} of ann on {socket.gethostname()}"
    assert (code, printed.partition(", since")[0]) == (1, f"base dev: Pulumi is working on this stack ({who}")


def test_a_lock_from_another_host_is_left_and_the_way_out_is_reported(admin: Admin) -> None:
    with lock(admin, 4242, "another-host") as key:
        done = admin.corral("up", "dev", "--yes")
        held = s3(admin).list_objects_v2(Bucket=BUCKET, Prefix=key)["KeyCount"]
    assert (done.returncode, held, "if the process is gone: pulumi" in done.stderr) == (1, 1, True)


def test_a_lock_of_a_process_of_this_host_that_is_gone_is_removed(admin: Admin) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with lock(admin, ended.pid, socket.gethostname()):
        done = admin.corral("up", "dev", "--yes")
    printed = f"base dev: removing the lock of a killed Pulumi (process {ended.pid})"
    assert (done.returncode, printed in done.stdout) == (0, True)


def test_a_renamed_environment_is_another_one_and_its_old_name_is_unknown(other: Admin) -> None:
    for stack in ("base", "cluster"):
        folder = other.project / "stacks" / stack
        (folder / "Pulumi.dev.yaml").rename(folder / "Pulumi.prod.yaml")
    other.edit("cluster", "base: dev", "base: prod", "Pulumi.prod.yaml")
    done = other.corral("up", "prod", "--preview", "--json")
    assert (done.returncode, json.loads(done.stdout)["base"]["created"]) == (0, 6)
    code, printed = end(other.corral("down", "dev", "--yes"))
    assert (code, printed.startswith("unknown environment 'dev'")) == (2, True)


def test_a_bucket_that_does_not_exist_is_reported(admin: Admin) -> None:
    done = admin.corral("up", "dev", "--yes", PULUMI_BACKEND_URL="s3://not-there-1?region=us-east-1")
    assert end(done) == (3, "the state bucket not-there-1 does not exist")


def test_a_url_without_a_bucket_is_wrong_input(admin: Admin) -> None:
    done = admin.corral("up", "dev", "--yes", PULUMI_BACKEND_URL="s3://")
    assert end(done) == (2, "PULUMI_BACKEND_URL is 's3://', without a bucket's name")


def test_a_bucket_that_does_not_answer_is_reported(admin: Admin) -> None:
    done = admin.corral("up", "dev", "--yes", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert (end(done)[0], end(done)[1].partition(":")[0]) == (3, f"the state bucket {BUCKET} at http")


class Refusing(BaseHTTPRequestHandler):
    """Answers every call of S3 as it does when it refuses, with this error code; STS names the account."""

    code = ""

    def do_POST(self) -> None:
        account = "<Account>123456789012</Account>"
        self.answer(200, f"<Answer><GetCallerIdentityResult>{account}</GetCallerIdentityResult></Answer>")

    def do_GET(self) -> None:
        self.answer(403, f"<Error><Code>{self.code}</Code><Message>no</Message></Error>")

    def answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        return


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("ExpiredToken", "the AWS credentials have expired"),
        ("InvalidAccessKeyId", "AWS does not accept these credentials (InvalidAccessKeyId)"),
        (
            "AccessDenied",
            f"these credentials may not list the state bucket {BUCKET} (s3:ListBucket), or it does not belong to"
            " account 123456789012",
        ),
    ],
)
def test_credentials_that_s3_refuses_are_reported(admin: Admin, code: str, sentence: str) -> None:
    with HTTPServer(("127.0.0.1", 0), type("One", (Refusing,), {"code": code})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = admin.corral("up", "dev", "--yes", AWS_ENDPOINT_URL=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert end(done) == (3, sentence)


def test_a_passphrase_serves_as_well_and_a_wrong_one_is_reported(other: Admin) -> None:
    words = Admin(box=other.box, directory=other.directory, settings={"PULUMI_CONFIG_PASSPHRASE": "right"})
    for stack in ("base", "cluster"):
        file = words.project / "stacks" / stack / "Pulumi.dev.yaml"
        drop_lines(file, "secretsprovider", "encryptedkey")
        file.rename(file.with_name("Pulumi.words.yaml"))
    words.edit("cluster", "base: dev", "base: words", "Pulumi.words.yaml")
    right = words.corral("up", "words", "--yes")
    wrong = words.corral("up", "words", "--yes", PULUMI_CONFIG_PASSPHRASE="wrong")
    assert (right.returncode, end(wrong)) == (
        0,
        (2, "base words: the passphrase of the stack's secrets is missing or wrong"),
    )
