"""The metadata service, version 2: a server on loopback that refuses whoever has no token."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from corral.agent.imds_client import MetadataError, account_number, instance_tag, read
from corral.agent.node_identity import NodeIdentity, read_identity

KNOWN = {
    "/latest/meta-data/tags/instance/corral:queue": "train",
    "/latest/meta-data/tags/instance/corral:nodes": "train-[1-2,7]",
    "/latest/meta-data/ami-launch-index": "2",
    "/latest/dynamic/instance-identity/document": '{"accountId": "123456789012", "region": "us-east-1"}',
}
BUSY: list[str] = []  # each once


class Service(BaseHTTPRequestHandler):
    """Answers as EC2 does for the third instance of a launch of nodes."""

    def do_PUT(self) -> None:
        self._answer(200 if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] == "60" else 400, "secret")

    def do_GET(self) -> None:
        if self.path in BUSY:
            BUSY.remove(self.path)
            self._answer(503, "")
        elif self.headers["X-aws-ec2-metadata-token"] != "secret":
            self._answer(401, "")
        elif self.path in KNOWN:
            self._answer(200, KNOWN[self.path])
        else:
            self._answer(404, "")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test says what went wrong."""

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def service() -> Iterator[str]:
    """The address of the service."""
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_account_is_that_of_the_identity_document(service: str) -> None:
    assert account_number(service) == "123456789012"


def test_a_tag_is_read_with_a_token(service: str) -> None:
    assert instance_tag("corral:queue", service) == "train"


def test_a_missing_tag_is_none(service: str) -> None:
    assert instance_tag("corral:pool", service) is None


def test_other_facts_are_read_by_their_name(service: str) -> None:
    assert read("ami-launch-index", service) == "2"


def test_a_missing_fact_is_none(service: str) -> None:
    assert read("spot/instance-action", service) is None


def test_a_busy_service_is_retried(service: str) -> None:
    BUSY.append("/latest/meta-data/ami-launch-index")
    assert read("ami-launch-index", service, pauses_s=(0.0,)) == "2"


def test_a_service_that_stays_busy_is_an_error(service: str) -> None:
    BUSY.extend(["/latest/meta-data/ami-launch-index"] * 2)
    with pytest.raises(MetadataError, match="answered 503 to GET"):
        read("ami-launch-index", service, pauses_s=(0.0,))


def test_no_opener_of_urllib_is_built(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python 3.12 on each reads all certificates of the system: seconds on an emulated machine, at every poll."""
    monkeypatch.delattr("urllib.request.OpenerDirector")
    assert read("ami-launch-index", service) == "2"


def test_a_machine_knows_which_node_it_is(service: str) -> None:
    assert read_identity(service) == NodeIdentity(node="train-7", queue="train")


def test_a_machine_without_the_service_gets_a_sentence() -> None:
    with pytest.raises(MetadataError, match=r"did not answer PUT http://127\.0\.0\.1:9/latest/api/token"):
        instance_tag("corral:queue", "http://127.0.0.1:9", pauses_s=())
