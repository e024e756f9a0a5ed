"""Unsupported requests are refused by name, in AWS's format, and never with a web page."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients, LaunchNetwork

from boxes import owner_keys
from corral.box.client import BoxStatus


def _error(refused: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    error = refused.value.response["Error"]
    return error["Code"], error["Message"].partition(":")[0] + ":" + error["Message"].partition(":")[2].split(":")[0]


@pytest.mark.parametrize(
    ("service", "action", "parameters", "named"),
    [
        ("ec2", "describe_ipams", {}, "ec2:DescribeIpams"),
        ("efs", "describe_replication_configurations", {}, "efs:DescribeReplicationConfigurations"),
        ("fsx", "describe_file_caches", {}, "fsx:DescribeFileCaches"),
        ("ssm", "list_nodes", {}, "ssm:ListNodes"),
        ("outposts", "list_outposts", {}, "outposts:ListOutposts"),
    ],
)
def test_an_action_that_the_box_lacks_is_refused_by_name(
    aws: Clients, box: BoxStatus, service: str, action: str, parameters: dict[str, Any], named: str
) -> None:
    with pytest.raises(ClientError) as refused:
        getattr(aws(service), action)(**parameters)
    error = refused.value.response["Error"]
    assert (error["Code"], named in error["Message"]) == ("InvalidAction", True)


def test_a_filter_that_aws_does_not_have_is_refused_by_name(aws: Clients, launch_network: LaunchNetwork) -> None:
    with pytest.raises(ClientError, match=r"InvalidParameterValue.*The filter 'colour' is invalid"):
        aws("ec2").describe_subnets(Filters=[{"Name": "colour", "Values": ["red"]}])


def test_a_filter_that_only_the_box_lacks_is_refused_by_name(aws: Clients, launch_network: LaunchNetwork) -> None:
    with pytest.raises(ClientError, match=r"InvalidFilter.*does not know the filter 'outpost-arn'"):
        aws("ec2").describe_subnets(Filters=[{"Name": "outpost-arn", "Values": ["x"]}])


def _raw(box: BoxStatus, service: str, body: str, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", box.port or 0)
    key = owner_keys(box)["aws_access_key_id"]
    scope = f"AWS4-HMAC-SHA256 Credential={key}/20261121/us-east-1/{service}/aws4_request"
    form = {"Content-Type": "application/x-www-form-urlencoded"} if not headers else {}
    connection.request("POST", "/", body, {"Authorization": scope, **form, **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_an_unknown_action_is_refused_by_name(box: BoxStatus) -> None:
    status, text = _raw(box, "ec2", urlencode({"Action": "PaintInstances", "Version": "2016-11-15"}))
    assert (status, "<Code>InvalidAction</Code>" in text, "PaintInstances" in text) == (400, True, True)


def test_an_unknown_parameter_is_refused_by_name(box: BoxStatus) -> None:
    query = {"Action": "DescribeVpcs", "Version": "2016-11-15", "Colour": "red"}
    status, text = _raw(box, "ec2", urlencode(query))
    assert (status, "<Code>UnknownParameter</Code>" in text, "The parameter Colour" in text) == (400, True, True)


def test_an_unknown_target_is_refused_in_json(box: BoxStatus) -> None:
    headers = {"X-Amz-Target": "AmazonSSM.PaintParameters", "Content-Type": "application/x-amz-json-1.1"}
    status, text = _raw(box, "ssm", "{}", **headers)
    assert (status, json.loads(text)["__type"]) == (400, "InvalidAction")


def test_calls_of_s3_are_logged_with_the_program_that_makes_them(aws: Clients, box: BoxStatus) -> None:
    aws("s3").list_buckets()
    aws("ec2").describe_vpcs()
    lines = [json.loads(line) for line in (box.dir / "calls.jsonl").read_text().splitlines()[-2:]]
    assert [line.get("user_agent", "").partition("/")[0] for line in lines] == ["Boto3", ""]


def test_every_call_is_logged_with_its_error(aws: Clients, box: BoxStatus) -> None:
    aws("s3").list_buckets()
    with pytest.raises(ClientError):
        aws("ec2").describe_ipams()
    lines = [json.loads(line) for line in (box.dir / "calls.jsonl").read_text().splitlines()[-2:]]
    left_out = ("time", "user_agent")
    assert [{name: value for name, value in line.items() if name not in left_out} for line in lines] == [
        {
            "service": "s3",
            "action": "ListBuckets",
            "region": "us-east-1",
            "caller": owner_keys(box)["aws_access_key_id"],
            "status": 200,
        },
        {
            "service": "ec2",
            "action": "DescribeIpams",
            "region": "us-east-1",
            "caller": owner_keys(box)["aws_access_key_id"],
            "status": 400,
            "error": "InvalidAction",
        },
    ]
