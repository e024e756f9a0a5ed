"""`corral bootstrap` as a command, with the box as the account."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from calls import HOME, clean_environment, corral

import boxes
from boxes import running_box
from corral.box.client import BoxStatus

pytestmark = pytest.mark.box
ATTACH = "aws iam attach-user-policy --user-name NAME --policy-arn arn:aws:iam::123456789012:policy"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoxStatus]:
    with running_box(tmp_path_factory.mktemp("bootstrap") / "box") as status:
        yield status


def in_box(box: BoxStatus) -> tuple[str, str]:
    return "--box-dir", str(box.dir)


def test_dry_run_shows_all_steps_and_creates_nothing(box: BoxStatus) -> None:
    done = corral("bootstrap", *in_box(box), "--dry-run")
    names = [one["Name"] for one in boxes.client(box, "s3").list_buckets()["Buckets"]]
    assert (done.returncode, done.stdout.splitlines()[:7], "corral-state-123456789012-us-east-1" in names) == (
        0,
        [
            "to create  bucket corral-state-123456789012-us-east-1",
            "to create    public access blocked",
            "to create    versioning",
            "to create    encryption",
            "to create    TLS required",
            "to create    old versions expire after 90 days",
            "to create  key alias/corral-state",
        ],
        False,
    )


def test_yes_is_required_without_a_terminal(box: BoxStatus) -> None:
    done = corral("bootstrap", *in_box(box), "--name", "unasked", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "corral: cannot ask for confirmation without a terminal",
    )


def test_bootstrap_creates_the_backend_and_prints_the_settings(box: BoxStatus) -> None:
    done = corral("bootstrap", *in_box(box), "--yes", "--name", "lab")
    assert (done.returncode, done.stdout.splitlines()[0], done.stdout.splitlines()[-17:]) == (
        0,
        "created    bucket lab-123456789012-us-east-1",
        [
            "Set in your shell or your CI:",
            "  export PULUMI_BACKEND_URL='s3://lab-123456789012-us-east-1?region=us-east-1'",
            "Add to the top of stacks/base/Pulumi.ENV.yaml and stacks/cluster/Pulumi.ENV.yaml:",
            "  secretsprovider: awskms://alias/lab?region=us-east-1",
            "`corral up` then encrypts the stacks' secrets with this key and needs no passphrase. Pulumi adds a line",
            "`encryptedkey:` to each file: commit it.",
            "To let a user without administrator rights run corral in us-east-1, attach all policies:",
            f"  {ATTACH}/lab-deploy-us-east-1-network",
            f"  {ATTACH}/lab-deploy-us-east-1-storage",
            f"  {ATTACH}/lab-deploy-us-east-1-identity",
            "To let a user read the status of clusters, or also open shells, or also be root there, attach one of:",
            f"  {ATTACH}/lab-reader-us-east-1",
            f"  {ATTACH}/lab-user-us-east-1",
            f"  {ATTACH}/lab-admin-us-east-1",
            "A shell needs the name of its user on the head as the tag SSMSessionRunAs of the IAM user or role:",
            "  aws iam tag-user --user-name NAME --tags Key=SSMSessionRunAs,Value=USER",
            "For a role: `aws iam attach-role-policy --role-name NAME --policy-arn ...`, and `aws iam tag-role`.",
        ],
    )


def test_second_run_needs_no_yes_and_creates_nothing(box: BoxStatus) -> None:
    corral("bootstrap", *in_box(box), "--yes", "--name", "twice")
    done = corral("bootstrap", *in_box(box), "--name", "twice", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["schema"], {one["outcome"] for one in found["steps"]}) == (
        0,
        "corral.bootstrap/2",
        {"exists"},
    )


def test_document_has_the_settings(box: BoxStatus) -> None:
    found = json.loads(corral("bootstrap", *in_box(box), "--dry-run", "--json", "--region", "eu-west-1").stdout)
    assert (found["backend_url"], found["secrets_provider"], found["policies"], found["access"]["reader"]) == (
        "s3://corral-state-123456789012-eu-west-1?region=eu-west-1",
        "awskms://alias/corral-state?region=eu-west-1",
        [
            "arn:aws:iam::123456789012:policy/corral-deploy-eu-west-1-network",
            "arn:aws:iam::123456789012:policy/corral-deploy-eu-west-1-storage",
            "arn:aws:iam::123456789012:policy/corral-deploy-eu-west-1-identity",
        ],
        "arn:aws:iam::123456789012:policy/corral-reader-eu-west-1",
    )


IDENTITY = """<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
<Arn>arn:aws:iam::123456789012:user/ann</Arn><UserId>A</UserId><Account>123456789012</Account>
</GetCallerIdentityResult></GetCallerIdentityResponse>"""
DENIED = "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized</Message></Error></ErrorResponse>"


class NothingAllowed(BaseHTTPRequestHandler):
    """Answers as AWS does without permissions: the caller's identity, and AccessDenied for everything else."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if b"GetCallerIdentity" in body:
            self.write(200, IDENTITY)
        elif self.headers.get("X-Amz-Target"):
            self.write(400, json.dumps({"__type": "AccessDeniedException", "Message": "not authorized"}))
        else:
            self.write(403, DENIED)

    def write(self, status: int, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_HEAD(self) -> None:
        self.send_response(403)
        self.end_headers()

    do_GET = do_POST = do_PUT = answer

    def log_message(self, format: str, *arguments: Any) -> None:
        return


def test_all_missing_permissions_are_reported_at_once() -> None:
    with HTTPServer(("127.0.0.1", 0), NothingAllowed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        keys = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S", "AWS_REGION": "us-east-1"}
        url = f"http://127.0.0.1:{server.server_port}"
        done = corral("bootstrap", "--yes", environment=clean_environment(HOME, AWS_ENDPOINT_URL=url, **keys))
        server.shutdown()
    assert (done.returncode, done.stderr) == (
        3,
        "corral: the credentials lack iam:GetPolicy, iam:ListRoles, kms:DescribeKey, s3:GetBucketPolicy,"
        " s3:GetBucketPublicAccessBlock, s3:GetBucketVersioning, s3:GetEncryptionConfiguration,"
        " s3:GetLifecycleConfiguration, s3:ListBucket, ssm:GetDocument - request them, or have an administrator run"
        " this command; if they are an administrator's, another account owns the bucket: choose another name with"
        " --name\n",
    )


def test_policies_are_printed_for_an_account_without_calls() -> None:
    found = json.loads(
        corral("bootstrap", "--print-policy", "--account", "111122223333", "--region", "eu-west-1").stdout
    )
    assert list(found) == [
        "guards-boundary-eu-west-1",
        "corral-deploy-eu-west-1-network",
        "corral-deploy-eu-west-1-storage",
        "corral-deploy-eu-west-1-identity",
        "corral-reader-eu-west-1",
        "corral-user-eu-west-1",
        "corral-admin-eu-west-1",
    ]


@pytest.mark.parametrize("account", ["12", "1234567890123", "11112222333x", "1111-2222-3333", ""])
def test_invalid_account_is_wrong_input(account: str) -> None:
    done = corral("bootstrap", "--print-policy", f"--account={account}", "--region", "eu-west-1")
    assert (done.returncode, done.stderr) == (2, f"corral: --account {account}: an account number has 12 digits\n")


@pytest.mark.parametrize("name", ["Corral", "a b", "-x", "x" * 40])
def test_invalid_bucket_name_is_wrong_input(name: str) -> None:
    done = corral("bootstrap", f"--name={name}", "--region", "us-east-1", "--dry-run")
    assert (done.returncode, done.stderr.startswith(f"corral: --name {name}: invalid prefix")) == (2, True)


def test_unknown_region_is_reported_with_a_suggestion() -> None:
    done = corral("bootstrap", "--region", "us-est-1")
    assert (done.returncode, done.stderr) == (
        2,
        "corral: 'us-est-1' is not in the catalog - did you mean 'us-east-1' or 'us-west-1'?\n",
    )


def test_missing_credentials_are_reported(tmp_path: Path) -> None:
    done = corral("bootstrap", "--region", "us-east-1", environment=clean_environment(tmp_path))
    assert (done.returncode, done.stderr.partition(" - ")[0]) == (3, "corral: no AWS credentials were found")


def test_missing_region_is_reported() -> None:
    done = corral("bootstrap", environment=clean_environment(HOME))
    assert (done.returncode, done.stderr) == (
        2,
        "corral: no AWS region is configured - add --region or set AWS_REGION\n",
    )
