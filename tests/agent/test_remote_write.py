"""A real Prometheus with a head's files writes series, the agent signs them, and a server of this test receives them.

botocore says whether a signature is right. Amazon's service was not tried.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from agent.event_loops import serving
from agent.test_prometheus_daemon import FakeHost, Running, free_port, running_prometheus
from agent.waiting import until
from corral.agent.local_http import listen
from corral.agent.metrics.endpoint import Responder, metrics_server
from corral.agent.prometheus import start_prometheus
from corral.agent.remote_write import RemoteWriteError, RemoteWriter, SignedPost
from corral.model.monitoring import MonitoringPlan, RemoteWritePlan
from corral.model.urls import remote_write_url
from corral.render import cluster_files
from http_server import serving_http
from render.plans import dev

WORKSPACE = "ws-0123abcd-12ab-34cd-56ef-0123456789ab"
PATH = f"/workspaces/{WORKSPACE}/api/v1/remote_write"
WRITTEN = RemoteWritePlan(workspace=WORKSPACE, url=remote_write_url(WORKSPACE, "us-east-1"))
PLAN = replace(
    dev(),
    monitoring=MonitoringPlan(prometheus=True, retention_s=1_296_000, retention_gib=10, remote_write=WRITTEN),
)
HELD = Credentials("ASIA0123456789ABCDEF", "TheSecretKey", "TheToken")
SIGNED = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), ")
# As the program that users run: a socket and the user's number are all that it needs.
POST = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket() as connection:
    connection.settimeout(20)
    connection.connect(("127.0.0.1", int(sys.argv[1])))
    head = "POST /remote-write HTTP/1.0\\r\\nHost: localhost\\r\\nContent-Length: 3\\r\\n\\r\\n"
    connection.sendall(head.encode() + b"abc")
    print(connection.recv(4096).decode().split()[1])
"""


@dataclass(frozen=True, kw_only=True)
class Write:
    """A request that arrived; `status`: what it was answered."""

    path: str
    headers: dict[str, str]
    body: bytes
    status: int

    def is_signed_by(self, held: Credentials) -> bool:
        """Whether botocore computes the same signature for region and service with these credentials."""
        found = SIGNED.match(self.headers["authorization"])
        assert found is not None
        key, region, service, names = found.groups()
        assert (key, region, service) == (held.access_key, "us-east-1", "aps")
        assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names.split(";"))
        headers = {name: self.headers[name] for name in names.split(";")}
        request = AWSRequest("POST", f"http://{self.headers['host']}{self.path}", headers, self.body)
        request.context["timestamp"] = self.headers["x-amz-date"]
        signer = SigV4Auth(held, service, region)
        signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        return self.headers["authorization"].endswith(f"Signature={signature}")


@dataclass
class Receiver:
    """What stands for the workspace. `status`: of the next answers."""

    status: int = 200
    writes: list[Write] = field(default_factory=list)
    port: int = 0

    def accepted(self, text: bytes = b"") -> list[Write]:
        return [one for one in self.writes if one.status == 200 and text in one.body]

    def refused(self, text: bytes = b"") -> list[Write]:
        return [one for one in self.writes if one.status != 200 and text in one.body]

    @property
    def plan(self) -> RemoteWritePlan:
        return replace(WRITTEN, url=f"http://127.0.0.1:{self.port}{PATH}")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body, status = self.rfile.read(int(headers["content-length"])), made.status
            made.writes.append(Write(path=self.path, headers=headers, body=body, status=status))
            text = b"" if status == 200 else b"no"
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.send_header("Connection", "close")  # an open one would keep the server's thread
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None: ...

    with serving_http(Handler) as made.port:
        yield made


def writer_to(receiver: Receiver) -> RemoteWriter:
    return RemoteWriter(target=lambda: receiver.plan, post=SignedPost(region="us-east-1", credentials=lambda: HELD))


@contextmanager
def agent(
    writer: RemoteWriter, page: Callable[[], str] = str, user_id: Callable[[str], int] = lambda _: os.getuid()
) -> Iterator[int]:
    """The agent's endpoint, as a head serves it; yields its port."""
    with listen(0) as listener:
        responder = Responder(page, user_id, writer=writer)
        with serving(metrics_server(responder, listener)):
            yield listener.getsockname()[1]


@contextmanager
def prometheus(root: Path, agent_port: int) -> Iterator[Running]:
    """A real Prometheus with the files of a head, below another root and with other ports."""
    (root / "etc/munge").mkdir(parents=True)
    (root / "etc/munge/munge.key").write_bytes(b"k" * 128)
    start_prometheus(PLAN, FakeHost(), root)  # type: ignore[arg-type]  # the rest of a host is not used
    directory = root / "etc/corral/prometheus"
    here = {
        "/etc/corral": str(root / "etc/corral"),
        "127.0.0.1:251": f"127.0.0.1:{agent_port}",
        "interval: 30s": "interval: 1s",
    }
    for name in ("prometheus.yml", "alerts.yml"):
        text = cluster_files(PLAN)[f"monitoring/{name}"]
        for head, instead in here.items():
            text = text.replace(head, instead)
        (directory / name).write_text(text)
    (directory / "nodes.json").write_text("[]")
    with running_prometheus(root, PLAN.monitoring, free_port()) as running:
        yield running


def test_series_of_a_real_prometheus_arrive_signed_and_those_of_an_outage_later(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corral.agent.prometheus.PROMETHEUS_USER", "root")
    page = ['corral_gpus{queue="train"} 7\n']
    with agent(writer_to(receiver), lambda: page[0]) as port, prometheus(tmp_path, port):
        until(lambda: receiver.accepted(b"corral_gpus"))
        receiver.status = 503
        page[0] = 'corral_gpus{queue="xq7-while-it-was-away"} 1\n'
        until(lambda: receiver.refused(b"xq7-while-it-was-away"))
        page[0] = 'corral_gpus{queue="train"} 7\n'
        receiver.status = 200
        until(lambda: receiver.accepted(b"xq7-while-it-was-away"))
    first = receiver.accepted(b"corral_gpus")[0]
    assert (first.path, first.headers["x-amz-security-token"]) == (PATH, "TheToken")
    assert b"us-east-1" in first.body  # external labels: which cluster of which region
    assert all(one.is_signed_by(HELD) for one in receiver.writes)
    assert not first.is_signed_by(Credentials(HELD.access_key, "AnotherKey", HELD.token))


@pytest.mark.parametrize(("uid", "status", "arrived"), [(2117, "200", 1), (20417, "403", 0), (65534, "403", 0)])
def test_only_prometheus_writes_series(uid: int, status: str, arrived: int, receiver: Receiver) -> None:
    with agent(writer_to(receiver), user_id=lambda _: 2117) as port:
        command = [sys.executable, "-I", "-c", POST, str(port), str(uid)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.strip(), len(receiver.writes)) == (status, arrived)


def test_what_others_post_is_not_read(receiver: Receiver) -> None:
    """The answer comes before the body: each connection of a user could hold a megabyte of the agent's memory."""
    program = POST.replace("Content-Length: 3", "Content-Length: 1000000")
    with agent(writer_to(receiver), user_id=lambda _: 2117) as port:
        command = [sys.executable, "-I", "-c", program, str(port), "20417"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "403\n"


@pytest.mark.parametrize(
    ("status", "text"), [(200, f"{WORKSPACE}: "), (400, f"{WORKSPACE}: no"), (429, f"{WORKSPACE}: no")]
)
def test_prometheus_gets_the_answer_of_the_workspace(status: int, text: str, receiver: Receiver) -> None:
    receiver.status = status
    assert writer_to(receiver).respond(b"series") == (status, text)


def test_a_status_that_has_no_name_is_a_failure_of_the_workspace(receiver: Receiver) -> None:
    receiver.status = 599
    assert writer_to(receiver).respond(b"series")[0] == 502


def test_series_for_a_workspace_that_does_not_answer_are_repeated() -> None:
    nobody = Receiver(port=free_port())
    status, text = writer_to(nobody).respond(b"series")
    assert (status, text.startswith(f"cannot write to http://127.0.0.1:{nobody.port}/workspaces/ws-")) == (503, True)


def test_series_are_repeated_while_the_head_has_no_credentials(receiver: Receiver) -> None:
    post = SignedPost(region="us-east-1", credentials=lambda: None)
    writer = RemoteWriter(target=lambda: receiver.plan, post=post)
    assert (writer.respond(b"series"), receiver.writes) == ((503, "the head has no credentials"), [])


def test_a_cluster_that_writes_nowhere_takes_no_series() -> None:
    def post(url: str, series: bytes) -> tuple[int, str]:
        raise RemoteWriteError(url)

    assert RemoteWriter(target=lambda: None, post=post).respond(b"series") == (
        404,
        "this cluster has no monitoring.remote_write",
    )
