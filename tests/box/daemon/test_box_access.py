"""Only the box's user and its machines may talk to it: no other local user, no web page.

The attackers are programs that we did not write: curl as another user, and chromium with a page of another origin.
"""

from __future__ import annotations

import http.client
import json
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients

import boxes
from corral.box import client
from corral.box.client import BoxStatus
from corral.box.daemon.request_guard import reason_to_refuse
from corral.box.secret import HEADER, BoxSecret, read_secret
from corral.box.state.directory import StateDirectory

SECRET = BoxSecret("5e" * 32)
SCOPE = "AWS4-HMAC-SHA256 Credential={}/20261124/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
ACTION = "Action=RunInstances&ImageId=ami-1&MinCount=1&MaxCount=1&Version=2016-11-15"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def answered(box: BoxStatus, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str, dict[str, str]]:
    """Status, body and headers of an answer to a request with these headers; `_` stands for `-`."""
    connection = http.client.HTTPConnection("127.0.0.1", box.port or 0)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return found


def secret_of(box: BoxStatus) -> str:
    return read_secret(StateDirectory(box.dir)).value


def test_the_secret_is_for_its_owner_only(box: BoxStatus) -> None:
    assert stat.S_IMODE(StateDirectory(box.dir).secret.stat().st_mode) == 0o600


def test_two_boxes_have_different_keys(box: BoxStatus, tmp_path: Path) -> None:
    with boxes.running_box(tmp_path) as other:
        keys = {boxes.owner_keys(one)["aws_access_key_id"] for one in (box, other)}
    assert len(keys) == 2


def test_a_box_that_starts_again_has_the_same_keys(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        with boxes.running_box(tmp_path):
            keys.append(client.environment(tmp_path)["AWS_ACCESS_KEY_ID"])
    assert keys[0] == keys[1]


@pytest.mark.parametrize("secret", ["", "5e" * 32])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", path) for path in ("stop", "reset", "fault/kill", "quota")),
        *(("GET", path) for path in ("health", "inventory", "machines", "session", "calls", "faults", "quotas")),
    ],
)
def test_a_control_request_without_the_secret_is_refused(box: BoxStatus, method: str, path: str, secret: str) -> None:
    status, text, _ = answered(box, method, f"/_box/{path}", **{HEADER: secret})
    assert (status, json.loads(text)["problem"]) == (
        403,
        "a control request needs the box's secret in the header X-Corral-Box",
    )


def test_a_call_with_a_guessed_key_is_refused_as_by_ec2(box: BoxStatus) -> None:
    scope = SCOPE.format("AKIACORRALBOX0000000", "ec2")
    status, text, _ = answered(box, "POST", "/", ACTION, Authorization=scope, **FORM)
    assert (status, "<Code>AuthFailure</Code>" in text) == (401, True)


@pytest.mark.parametrize(
    ("service", "code"),
    [
        ("ec2", "AuthFailure"),
        ("s3", "InvalidAccessKeyId"),
        ("iam", "InvalidClientTokenId"),
        ("sts", "InvalidClientTokenId"),
    ],
)
def test_a_client_with_an_unknown_key_gets_the_error_of_the_service(box: BoxStatus, service: str, code: str) -> None:
    keys = {"aws_access_key_id": "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key": "x"}
    unknown: Any = boto3.client(service, endpoint_url=box.url, region_name="us-east-1", **keys)  # type: ignore[call-overload]
    call = {"ec2": "describe_vpcs", "s3": "list_buckets", "iam": "list_roles", "sts": "get_caller_identity"}[service]
    with pytest.raises(ClientError) as refused:
        getattr(unknown, call)()
    assert refused.value.response["Error"]["Code"] == code


def test_a_call_without_a_key_is_refused(box: BoxStatus) -> None:
    status, text, _ = answered(box, "POST", "/", ACTION, **FORM)
    assert (status, "MissingAuthenticationToken" in text) == (403, True)


def test_a_request_of_a_web_page_is_refused_even_with_the_secret(box: BoxStatus) -> None:
    headers = {HEADER: secret_of(box), "Origin": f"http://127.0.0.1:{box.port}"}
    status, text, _ = answered(box, "POST", "/_box/reset", **headers)
    assert (status, json.loads(text)["problem"]) == (403, "the box answers no web pages")


def test_no_answer_lets_a_web_page_read_it(aws: Clients, box: BoxStatus) -> None:
    aws("s3").create_bucket(Bucket="read-me")
    keys = boxes.owner_keys(box)
    scope = SCOPE.format(keys["aws_access_key_id"], "s3")
    _, _, headers = answered(box, "GET", "/read-me", Authorization=scope)
    assert [name for name in headers if name.lower().startswith("access-control-")] == []


def test_a_name_that_was_rebound_to_loopback_is_refused(box: BoxStatus) -> None:
    headers = {HEADER: secret_of(box), "Host": f"rebound.example:{box.port}"}
    status, text, _ = answered(box, "GET", "/_box/inventory", **headers)
    assert (status, json.loads(text)["problem"]) == (
        403,
        f"the box is not 'rebound.example:{box.port}' - use the endpoint that `corral box env` prints",
    )


def environ(path: str = "/", **more: str) -> dict[str, str]:
    return {"PATH_INFO": path, "HTTP_HOST": "127.0.0.1:4566", **more}


@pytest.mark.parametrize(
    "host", ["127.0.0.1:4566", "123456789012.127.0.0.1:4566", "corral-dev-artefacts.127.0.0.1:4566"]
)
def test_a_host_of_the_box_is_answered(host: str) -> None:
    assert reason_to_refuse(environ(HTTP_HOST=host), 4566, SECRET) is None


@pytest.mark.parametrize(
    "host", ["", "127.0.0.1", "127.0.0.1:80", "localhost:4566", "10.0.0.1:4566", "evil127.0.0.1:4566", "[::1]:4566"]
)
def test_another_host_is_refused(host: str) -> None:
    assert (reason_to_refuse(environ(HTTP_HOST=host), 4566, SECRET) or "").startswith(f"the box is not {host!r}")


def test_a_machine_reaches_the_box_by_the_address_of_its_router() -> None:
    called = {"HTTP_HOST": "10.64.0.1", "corral.called": "10.64.0.1"}
    assert reason_to_refuse(environ(**called), 4566, SECRET) is None


def test_a_machine_does_not_control_the_box_even_with_the_secret() -> None:
    called = {"HTTP_HOST": "10.64.0.1", "corral.called": "10.64.0.1", "HTTP_X_CORRAL_BOX": SECRET.value}
    assert reason_to_refuse(environ("/_box/stop", **called), 4566, SECRET) == "machines do not control the box"


def test_the_controls_of_moto_are_not_served() -> None:
    assert reason_to_refuse(environ("/moto-api/reset"), 4566, SECRET) == "the box does not serve /moto-api"


def test_a_navigation_of_another_site_is_refused() -> None:
    assert reason_to_refuse(environ(HTTP_SEC_FETCH_SITE="cross-site"), 4566, SECRET) == "the box answers no web pages"


def session_keys(aws: Clients, role: str) -> dict[str, str]:
    """The credentials of a session of a new role."""
    statement = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    arn = aws("iam").create_role(RoleName=role, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    found: dict[str, str] = aws("sts").assume_role(RoleArn=arn, RoleSessionName="one")["Credentials"]
    return found


def test_a_key_of_sts_derives_from_the_secret(aws: Clients, box: BoxStatus) -> None:
    given = session_keys(aws, "assumed")
    expected = read_secret(StateDirectory(box.dir)).access_key("ASIA", "session", given["SessionToken"])
    assert given["AccessKeyId"] == expected


def test_a_session_of_sts_is_known(aws: Clients, box: BoxStatus) -> None:
    given = session_keys(aws, "known")
    session: Any = boto3.client(
        "sts",
        endpoint_url=box.url,
        region_name="us-east-1",
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
    assert session.get_caller_identity()["Arn"] == "arn:aws:sts::123456789012:assumed-role/known/one"


def test_a_deleted_key_of_a_user_is_refused(aws: Clients, box: BoxStatus) -> None:
    iam = aws("iam")
    iam.create_user(UserName="former")
    key = iam.create_access_key(UserName="former")["AccessKey"]
    keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    user: Any = boto3.client("s3", endpoint_url=box.url, region_name="us-east-1", **keys)  # type: ignore[call-overload]
    user.list_buckets()
    iam.delete_access_key(UserName="former", AccessKeyId=key["AccessKeyId"])
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        user.list_buckets()


PAGE = """<!doctype html><title>waiting</title><script>
const box = "http://127.0.0.1:PORT";
const form = new URLSearchParams("Action=CreateVpc&CidrBlock=10.99.0.0/16&Version=2016-11-15");
const attempts = [
    fetch(box + "/_box/stop", {method: "POST", mode: "no-cors"}),
    fetch(box + "/_box/stop", {method: "POST", headers: {"X-Corral-Box": ""}}),
    fetch(box + "/_box/inventory").then(answer => answer.text()),
    fetch(box + "/", {method: "POST", mode: "no-cors", body: form}),
];
Promise.allSettled(attempts).then(all => { document.title = "done " + all.map(one => one.status).join(" "); });
</script>"""


@contextmanager
def serving(page: str) -> Iterator[str]:
    """The URL of a page on another port: another origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.browser
def test_a_page_in_a_browser_changes_and_reads_nothing(tmp_path: Path) -> None:
    with boxes.running_box(tmp_path / "box") as box, serving(PAGE.replace("PORT", str(box.port))) as url:
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/browser"]
        shown = subprocess.run(
            [*command, "--virtual-time-budget=8000", "--dump-dom", url], capture_output=True, text=True, check=True
        ).stdout
        title = shown.partition("<title>")[2].partition("</title>")[0]
        # A request in no-cors mode "succeeds" without an answer to read; those that need a preflight or an answer fail.
        assert title == "done fulfilled rejected rejected fulfilled"
        assert client.status(box.dir).state == "running"
        vpcs = boxes.client(box, "ec2").describe_vpcs()["Vpcs"]
        assert [one for one in vpcs if one["CidrBlock"] == "10.99.0.0/16"] == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (ACTION, {**FORM, "X-Amz-Target": "x.DescribeVpcs"}),
        (ACTION.replace("&", "\n"), {"Content-Type": "text/plain", "X-Amz-Target": "x.DescribeVpcs"}),
        ("", {"Action": "RunInstances", "X-Amz-Target": "x.DescribeVpcs"}),
    ],
    ids=["form and header", "other content", "a header called Action"],
)
def test_a_call_that_names_two_actions_does_neither(box: BoxStatus, body: str, headers: dict[str, str]) -> None:
    """Judged by one of them, it would do the other."""
    key = boxes.owner_keys(box)["aws_access_key_id"]
    status, text, _ = answered(box, "POST", "/", body, **headers, Authorization=SCOPE.format(key, "ec2"))
    assert (status, "RunInstances" in text and "two actions" in text) == (400, True), text


def test_a_call_of_s3_is_what_its_path_names_whatever_a_header_names(box: BoxStatus) -> None:
    key = boxes.owner_keys(box)["aws_access_key_id"]
    headers = {"Authorization": SCOPE.format(key, "s3"), "X-Amz-Target": "x.ListBuckets"}
    assert answered(box, "PUT", "/named-by-its-path", **headers)[0] == 200
    assert json.loads((box.dir / "calls.jsonl").read_text().splitlines()[-1])["action"] == "CreateBucket"
