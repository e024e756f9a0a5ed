"""Responses that are not from AWS, and timeouts of silent endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from corral.inventory.endpoint_check import QUICK, TRIES, NotAws, not_aws, watched
from corral.inventory.scan import open_session
from corral.model.bucket_owner import ANY_OWNER

PORTAL = b"<!DOCTYPE html>\n<html><body>Sign in to HotelWifi</body></html>"


@contextmanager
def serving(body: bytes | None) -> Iterator[tuple[str, list[str]]]:
    """The URL of a server that answers all with this, or is silent at None; and the requests that it got."""
    seen: list[str] = []
    over = Event()

    class Answering(BaseHTTPRequestHandler):
        def answer(self) -> None:
            seen.append(self.command)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if body is None:
                over.wait(30)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer

        def log_message(self, format: str, *arguments: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        over.set()
        server.shutdown()


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")


@pytest.mark.parametrize(
    ("service", "action"),
    [
        ("sts", "get_caller_identity"),
        ("ec2", "describe_vpcs"),
        ("s3", "list_buckets"),
        ("pricing", "describe_services"),
        ("efs", "describe_file_systems"),
    ],
)
def test_a_portal_page_is_an_error_with_the_address(service: str, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(PORTAL) as (url, _):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        expected = (
            f"{url} is not AWS: it answers with a page for browsers (200) - check for a proxy or portal in between"
        )
        with pytest.raises(NotAws, match=re.escape(expected)):
            getattr(open_session("us-east-1").client(service), action)()


@pytest.mark.parametrize(
    ("protocol", "body", "status", "expected"),
    [
        ("json", b'{"PriceList": []}', 200, None),
        ("json", b"", 200, None),
        ("json", b"null", 200, None),  # a box's answer where there is nothing to say
        ("json", b"sign in", 200, "it answers with something else than JSON (200)"),
        ("query", b'<?xml version="1.0"?>\n<GetCallerIdentityResponse/>', 200, None),
        ("rest-xml", b"\n<HTML><head>", 403, "it answers with a page for browsers (403)"),
        ("ec2", b"<html><body>503 Service Unavailable</body></html>", 503, None),  # of AWS's own load balancers
    ],
)
def test_what_may_be_an_answer_of_aws(protocol: str, body: bytes, status: int, expected: str | None) -> None:
    assert not_aws(protocol, {"body": body, "status_code": status}) == expected


def test_a_page_in_a_bucket_is_a_file_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(PORTAL) as (url, _):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        s3 = open_session("us-east-1").client("s3")
        found = s3.get_object(Bucket="corpus", Key="index.html", ExpectedBucketOwner=ANY_OWNER)
        assert found["Body"].read() == PORTAL


def test_a_silent_endpoint_is_tried_twice() -> None:
    with serving(None) as (url, seen):
        quick = Config(connect_timeout=1, read_timeout=0.2)
        client = boto3.client("sts", region_name="us-east-1", endpoint_url=url, config=quick)
        with pytest.raises(ReadTimeoutError):
            watched(client, quick=True).get_caller_identity()
    assert seen == ["POST", "POST"]


def test_the_quick_wait_for_less_than_a_minute() -> None:
    assert TRIES * (QUICK.connect_timeout + QUICK.read_timeout) == 50
