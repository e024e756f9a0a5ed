"""Cached requests: each is sent once, and an error becomes a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError
from botocore.parsers import ResponseParserError
from finding_lines import dev, finding_lines

from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.checks import Check, run


class Client:
    """A service that counts its requests, and raises this error."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests = 0
        self._error = error

    def can_paginate(self, action: str) -> bool:
        return False

    def describe_things(self, **request: object) -> dict[str, Any]:
        self.requests += 1
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
    fetch=lambda aws, request: aws.list_all("ec2", "describe_things", "Things"),
    evaluate=lambda request, facts: (),
)


def findings(error: Exception) -> list[str]:
    return finding_lines(run([THINGS], Session(Client(error)), dev()))


def test_a_silent_service_gets_no_more_requests() -> None:
    client = Client(ReadTimeoutError(endpoint_url="https://ec2.us-east-1.amazonaws.com"))
    aws = AwsQueryCache(Session(client))
    for name in ("one", "two"):
        with pytest.raises(ReadTimeoutError):
            aws.list_all("ec2", "describe_things", "Things", Name=name)
    assert client.requests == 1


def test_a_response_that_is_not_from_aws_is_a_finding() -> None:
    (line,) = findings(ResponseParserError("Unable to parse response"))
    assert line == "fail account: Unable to parse response"


def test_a_repeated_request_is_sent_once() -> None:
    client = Client()
    aws = AwsQueryCache(Session(client))
    found = [aws.list_all("ec2", "describe_things", "Things", Ids=["one"]) for _ in range(3)]
    assert (client.requests, found[2]) == (1, [{"Id": "one"}])


def test_different_requests_are_both_sent() -> None:
    client = Client()
    aws = AwsQueryCache(Session(client))
    aws.list_all("ec2", "describe_things", "Things", Ids=["one"])
    aws.list_all("ec2", "describe_things", "Things", Ids=["two"])
    assert client.requests == 2


def test_missing_resources_are_not_an_error() -> None:
    aws = AwsQueryCache(Session(Client(refused("InvalidThingID.NotFound"))))
    assert aws.list_existing("ec2", "describe_things", "Things") == ()


def test_a_denied_read_is_a_warning() -> None:
    assert findings(refused("UnauthorizedOperation")) == [
        "warn account: cannot be checked: these credentials may not call DescribeThings"
    ]


def test_any_other_error_code_is_a_failure() -> None:
    assert findings(refused("InternalError")) == ["fail account: DescribeThings: InternalError: You may not."]


@pytest.mark.parametrize(
    ("code", "begins"), [("ExpiredToken", "sign"), ("RequestExpired", "sign"), ("InternalError", "try")]
)
def test_expired_credentials_name_the_sign_in_command(code: str, begins: str) -> None:
    (found,) = run([THINGS], Session(Client(refused(code))), dev())
    assert found.fix.split()[0] == begins


def test_an_account_that_does_not_answer_is_a_failure() -> None:
    assert findings(EndpointConnectionError(endpoint_url="https://ec2")) == [
        'fail account: Could not connect to the endpoint URL: "https://ec2"'
    ]


def test_missing_credentials_are_one_finding() -> None:
    who, things = replace(THINGS, name="identity"), THINGS
    found = run([who, things], Session(Client(refused("ExpiredToken"))), dev())
    assert [(one.check, str(one.verdict)) for one in found] == [("identity", "fail"), (things.name, "skipped")]
