"""How an account is asked: each question once, and what it refuses is a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from botocore.parsers import ResponseParserError
from judging import dev, said

from corral.preflight.answers import Answers
from corral.preflight.checks import Check, run


class Client:
    """A service that counts what it is asked, and refuses what it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self._error = error

    def can_paginate(self, action: str) -> bool:
        return False

    def describe_things(self, **request: object) -> dict[str, Any]:
        self.asked += 1
        if self._error:
            raise self._error
        return {"Things": [{"Id": "one"}]}


class Session:
    """A session with one client for all services."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def client(self, service: str) -> Client:
        return self._client


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "You may not."}}, "DescribeThings")


THINGS = Check(
    name="things",
    purpose="things",
    ask=lambda answers, wanted: answers.every("ec2", "describe_things", "Things"),
    judge=lambda wanted, facts: (),
)


def findings(error: Exception) -> list[str]:
    return said(run([THINGS], Session(Client(error)), dev()))


def test_a_silent_service_is_asked_nothing_more() -> None:
    client = Client(ReadTimeoutError(endpoint_url="https://ec2.us-east-1.amazonaws.com"))
    answers = Answers(Session(client))
    for name in ("one", "two"):
        with pytest.raises(ReadTimeoutError):
            answers.every("ec2", "describe_things", "Things", Name=name)
    assert client.asked == 1


def test_an_answer_that_is_none_of_awss_is_a_finding() -> None:
    (line,) = findings(ResponseParserError("Unable to parse response"))
    assert line == "fail account: Unable to parse response"


def test_a_question_is_asked_once() -> None:
    client = Client()
    answers = Answers(Session(client))
    found = [answers.every("ec2", "describe_things", "Things", Ids=["one"]) for _ in range(3)]
    assert (client.asked, found[2]) == (1, [{"Id": "one"}])


def test_another_question_is_another_request() -> None:
    client = Client()
    answers = Answers(Session(client))
    answers.every("ec2", "describe_things", "Things", Ids=["one"])
    answers.every("ec2", "describe_things", "Things", Ids=["two"])
    assert client.asked == 2


def test_what_there_is_not_is_no_error() -> None:
    answers = Answers(Session(Client(refused("InvalidThingID.NotFound"))))
    assert answers.named("ec2", "describe_things", "Things") == ()


def test_what_these_credentials_may_not_look_at_is_a_warning() -> None:
    assert findings(refused("UnauthorizedOperation")) == [
        "warn account: cannot be looked at: DescribeThings is not allowed to these credentials"
    ]


def test_what_else_an_account_refuses_is_a_failure() -> None:
    assert findings(refused("InternalError")) == ["fail account: DescribeThings: InternalError: You may not."]


@pytest.mark.parametrize(
    ("code", "begins"), [("ExpiredToken", "sign"), ("RequestExpired", "sign"), ("InternalError", "try")]
)
def test_who_is_not_known_any_more_is_asked_to_sign_in(code: str, begins: str) -> None:
    (found,) = run([THINGS], Session(Client(refused(code))), dev())
    assert found.fix.split()[0] == begins


def test_an_account_that_does_not_answer_is_a_failure() -> None:
    assert findings(EndpointConnectionError(endpoint_url="https://ec2")) == [
        'fail account: Could not connect to the endpoint URL: "https://ec2"'
    ]


def test_who_is_not_known_at_all_is_told_once() -> None:
    who, things = replace(THINGS, name="identity"), THINGS
    found = run([who, things], Session(Client(refused("ExpiredToken"))), dev())
    assert [(one.check, str(one.verdict)) for one in found] == [("identity", "fail"), (things.name, "skipped")]
