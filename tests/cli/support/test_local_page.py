"""The server of a page: who gets an answer, and what a browser is allowed to do with it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from corral.cli.support.local_page import PageResponse, PageServer, json_response


def respond(path: str) -> PageResponse | None:
    return json_response({"path": path}) if path in ("", "cluster.json") else None


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(respond) as one:
        threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
        yield one
        one.shutdown()


def request(server: PageServer, path: str, *, method: str = "GET", host: str | None = None, **headers: str) -> Any:
    """The response and its body. `host`: the Host header, by default that of a browser; empty for none."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=host is not None)
    if host:
        connection.putheader("Host", host)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_whole_address_is_answered(server: PageServer) -> None:
    response, body = request(server, f"/{server.token}/cluster.json")
    assert (response.status, body) == (200, b'{"path": "cluster.json"}')


@pytest.mark.parametrize(
    "path", ["/", "/cluster.json", "//", "/x/", "/{token}", "/{short}/", "/{token}x/", "/x/../{token}/"]
)
def test_without_the_whole_token_nothing_is_there(server: PageServer, path: str) -> None:
    found = request(server, path.format(token=server.token, short=server.token[:-1]))[0]
    assert found.status == 404


def test_an_unknown_path_below_the_token_is_not_there(server: PageServer) -> None:
    assert request(server, f"/{server.token}/../../etc/passwd")[0].status == 404


def test_a_token_in_other_characters_is_refused(server: PageServer) -> None:
    assert request(server, "/%C3%A9t%C3%A9/")[0].status == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_the_host_header_of_another_site_is_refused_even_with_the_token(server: PageServer, host: str) -> None:
    response, body = request(server, f"/{server.token}/", host=host.format(port=server.server_port))
    assert (response.status, b"path" in body) == (403, False)


def test_localhost_is_a_name_of_the_page(server: PageServer) -> None:
    assert request(server, f"/{server.token}/", host=f"localhost:{server.server_port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_not_allowed(server: PageServer, method: str) -> None:
    response, _ = request(server, f"/{server.token}/", method=method)
    assert (response.status, response.getheader("Allow")) == (405, "GET, HEAD")


def test_head_has_no_body(server: PageServer) -> None:
    response, body = request(server, f"/{server.token}/", method="HEAD")
    assert (response.status, response.getheader("Content-Length"), body) == (200, "12", b"")


@pytest.mark.parametrize("path", ["/{token}/", "/"])
def test_every_response_forbids_what_is_not_the_pages_own(server: PageServer, path: str) -> None:
    response, _ = request(server, path.format(token=server.token))
    assert response.getheader("Content-Security-Policy") == (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none';"
        " form-action 'none'; frame-ancestors 'none'"
    )
    names = ("X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Resource-Policy", "Cache-Control")
    assert [response.getheader(name) for name in names] == ["nosniff", "no-referrer", "same-origin", "no-store"]


def test_no_response_allows_other_origins(server: PageServer) -> None:
    response, _ = request(server, f"/{server.token}/", Origin="https://evil.example")
    assert response.getheader("Access-Control-Allow-Origin") is None


def test_the_port_is_of_loopback_alone(server: PageServer) -> None:
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_each_page_has_a_token_of_its_own() -> None:
    with PageServer(respond) as one, PageServer(respond) as other:
        assert (one.token == other.token, len(one.token)) == (False, 43)


def test_a_taken_port_is_an_error(server: PageServer) -> None:
    with pytest.raises(OSError, match="Address already in use"):
        PageServer(respond, server.server_port)
