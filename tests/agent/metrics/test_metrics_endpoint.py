"""The head's metrics on loopback: who reads them, from real connections of real users."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.event_loops import awaited, serving
from corral.agent.errors import AgentError
from corral.agent.local_http import LocalRequest, LocalServer, listen
from corral.agent.metrics.endpoint import Responder

PAGE = "corral_jobs 1\n"
# A socket is all that it needs: the interpreter's library may be in a directory that only root reads.
FETCH = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
with socket.socket() as connection:
    connection.connect(("127.0.0.1", int(sys.argv[1])))
    connection.sendall(b"GET /metrics HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n")
    while piece := connection.recv(4096):
        sys.stdout.write(piece.decode())
"""


def user_id(name: str) -> int:
    return {"prometheus": 2117}[name]


def nobody(name: str) -> int:
    raise KeyError(name)


@contextmanager
def metrics(responder: Responder) -> Iterator[int]:
    """A block during which these metrics are served; yields their port."""
    with listen(0) as listener, serving(LocalServer(responder, listener)):
        yield listener.getsockname()[1]


def fetched(port: int, uid: int) -> tuple[str, str]:
    """The status and the body of what a process of this user gets."""
    command = [sys.executable, "-I", "-c", FETCH, str(port), str(uid)]
    head, _, body = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.partition(
        "\n\n"
    )
    return head.split()[1], body


@pytest.mark.parametrize("uid", [pytest.param(0, id="root"), pytest.param(2117, id="prometheus")])
def test_root_and_prometheus_read_the_metrics(uid: int) -> None:
    with metrics(Responder(lambda: PAGE, user_id)) as port:
        assert fetched(port, uid) == ("200", PAGE)


@pytest.mark.parametrize("uid", [pytest.param(20417, id="a person"), pytest.param(65534, id="nobody")])
def test_no_other_user_does(uid: int) -> None:
    with metrics(Responder(lambda: PAGE, user_id)) as port:
        assert fetched(port, uid) == ("403", "metrics are for root and prometheus: they show what all users do\n")


def response(responder: Responder, path: str = "/metrics", host: str = "127.0.0.1:251", user: int = 0) -> int:
    return awaited(_status(responder, LocalRequest(path=path, host=host, user=user)))


async def _status(responder: Responder, request: LocalRequest) -> int:
    return (await responder(request)).status


def test_a_machine_without_prometheus_serves_root_alone() -> None:
    assert response(Responder(lambda: PAGE, nobody), user=2117) == 403


@pytest.mark.parametrize("host", ["rebound.example:251", "localhost.example:251", "127.0.0.1.example", ""])
def test_a_web_page_that_has_the_name_of_this_machine_is_refused(host: str) -> None:
    assert response(Responder(lambda: PAGE, user_id), host=host) == 403


def test_another_path_is_not_found() -> None:
    assert response(Responder(lambda: PAGE, user_id), path="/") == 404


def test_metrics_that_cannot_be_read_are_an_error_that_prometheus_shows() -> None:
    def broken() -> str:
        raise AgentError("the state volume is gone")

    assert response(Responder(broken, user_id)) == 503
