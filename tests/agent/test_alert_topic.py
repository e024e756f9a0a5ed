"""Messages for the topic: what the agent takes from whom. `test_alert_delivery` has the real Alertmanager."""

from __future__ import annotations

import socket
import xml.etree.ElementTree as Tree
from urllib.parse import urlencode

import pytest

from agent.event_loops import awaited, serving
from agent.metrics.test_metrics_endpoint import user_id
from corral.agent.alert_topic import AlertTopic, AlertTopicError
from corral.agent.local_http import LocalRequest, LocalResponse, LocalServer, listen
from corral.agent.metrics.endpoint import Responder


def form(**fields: str) -> bytes:
    return urlencode({"Action": "Publish", "Message": "all is well", "Subject": "a test", **fields}).encode()


def published(body: bytes) -> tuple[int, list[tuple[str, str]]]:
    """The status of this form, and what is published."""
    sent: list[tuple[str, str]] = []

    def publish(subject: str, text: str) -> str:
        sent.append((subject, text))
        return "id"

    return AlertTopic(publish=publish).respond(body)[0], sent


def test_subject_and_message_are_published() -> None:
    assert published(form()) == (200, [("a test", "all is well")])


def test_the_agent_alone_knows_the_topic() -> None:
    """A form that names another topic, or a telephone, is a message for the cluster's own topic."""
    sent = published(form(TopicArn="arn:aws:sns:us-east-1:123456789012:other", PhoneNumber="+1"))
    assert sent == (200, [("a test", "all is well")])


def test_a_subject_is_one_that_sns_takes() -> None:
    (_, [(subject, _)]) = published(form(Subject="größer\n" + 200 * "x"))
    assert (subject[:10], len(subject), subject.isascii()) == ("gr??er\\nxx", 100, True)


@pytest.mark.parametrize("body", [b"", b"\xff", form(Action="CreateTopic"), form(Message="")])
def test_anything_else_is_refused(body: bytes) -> None:
    assert published(body) == (400, [])


def test_a_failure_is_an_error_that_alertmanager_repeats() -> None:
    def publish(subject: str, text: str) -> str:
        raise AlertTopicError("cannot publish an alert to <topic>: no route")

    status, document = AlertTopic(publish=publish).respond(form())
    message = next(one.text for one in Tree.fromstring(document).iter() if one.tag.endswith("Message"))
    assert (status, message) == (503, "cannot publish an alert to <topic>: no route")


def response(body: bytes | None, user: int) -> int:
    topic = AlertTopic(publish=lambda subject, text: "id")
    request = LocalRequest(path="/topic", host="127.0.0.1:251", user=user, body=body)
    return awaited(_answer(Responder(lambda: "", user_id, topic), request)).status


async def _answer(responder: Responder, request: LocalRequest) -> LocalResponse:
    return await responder(request)


@pytest.mark.parametrize(("user", "status"), [(0, 200), (2117, 200), (20417, 403), (65534, 403)])
def test_root_and_alertmanager_send_to_the_topic_and_no_other_user(user: int, status: int) -> None:
    assert response(form(), user) == status


def test_a_message_comes_by_post() -> None:
    assert response(None, 0) == 405


def sent(request: bytes, longest: int) -> bytes:
    """What a server with this bound answers to a request in two pieces."""

    async def respond(request: LocalRequest) -> LocalResponse:
        return LocalResponse(status=200, body=request.body or b"", content_type="text/plain")

    found = b""
    with (
        listen(0) as listener,
        serving(LocalServer(respond, listener, body_bytes=longest)),
        socket.create_connection(listener.getsockname(), timeout=20) as connection,
    ):
        connection.sendall(request[:40])
        connection.sendall(request[40:])
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            found += piece
    return found


def post(size: int) -> bytes:
    return b"POST /topic HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size


def test_a_body_of_many_pieces_arrives_whole() -> None:
    assert sent(post(300_000), 512 * 1024).partition(b"\r\n\r\n")[2] == b"x" * 300_000


@pytest.mark.parametrize("longest", [0, 99])
def test_a_body_beyond_the_bound_is_refused(longest: int) -> None:
    assert sent(post(100), longest).startswith(b"HTTP/1.0 400 ")
