"""What calls of IAM, CloudWatch, SNS, S3 and others require: actions, resources by their names, condition keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from corral.box.access.request_keys import request_keys, request_tags
from corral.box.access.required_actions import actions_required_by
from corral.box.api_calls import Call, identify_call

ACCOUNT, REGION = "123456789012", "us-east-1"
SPOT_ROLE = f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
FORM = "application/x-www-form-urlencoded"
ROUTE53 = "https://route53.amazonaws.com/doc/2013-04-01/"


def required(service: str, action: str, body: Mapping[str, Any] | bytes = b"", **environ: str) -> list[str]:
    """The actions of a call and their resources, as `ACTION RESOURCE`."""
    call = Call(service=service, action=action, region=REGION, caller="AKIA")
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [f"{one.action} {one.resource}" for one in actions_required_by(environ, call, raw)]


def form(service: str, action: str, **fields: str) -> list[str]:
    """The same for a call whose body is a form."""
    return required(service, action, urlencode(fields).encode(), CONTENT_TYPE=FORM)


@pytest.mark.parametrize(
    ("service", "action", "body", "expected"),
    [
        (
            "budgets",
            "CreateBudget",
            {"Budget": {"BudgetName": "b"}},
            f"budgets:ModifyBudget arn:aws:budgets::{ACCOUNT}:budget/b",
        ),
        ("budgets", "DescribeBudgets", {}, f"budgets:ViewBudget arn:aws:budgets::{ACCOUNT}:budget/*"),
        (
            "cloudwatch",
            "DescribeAlarms",
            {},
            f"cloudwatch:DescribeAlarms arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:*",
        ),
        (
            "cloudwatch",
            "DeleteAlarms",
            {"AlarmNames": ["watch-head"]},
            f"cloudwatch:DeleteAlarms arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:watch-head",
        ),
        (
            "ssm",
            "CreateDocument",
            {"Name": "corral-query"},
            f"ssm:CreateDocument arn:aws:ssm:{REGION}:{ACCOUNT}:document/corral-query",
        ),
        (
            "logs",
            "CreateLogGroup",
            {"logGroupName": "/corral/dev"},
            f"logs:CreateLogGroup arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/corral/dev:log-stream:",
        ),
        (
            "logs",
            "ListTagsForResource",
            {"resourceArn": f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/corral/dev:*"},
            f"logs:ListTagsForResource arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/corral/dev",
        ),
        ("logs", "DescribeLogGroups", {"logGroupNamePrefix": "/corral"}, "logs:DescribeLogGroups *"),
        (
            "secretsmanager",
            "DeleteSecret",
            {"SecretId": "corral/dev/munge"},
            f"secretsmanager:DeleteSecret arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:corral/dev/munge-AbCdEf",
        ),
        (
            "ssm",
            "GetParameter",
            {"Name": "/corral/dev/image"},
            f"ssm:GetParameter arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/corral/dev/image",
        ),
        (
            "ssm",
            "GetParameter",
            {"Name": "/aws/service/x"},
            f"ssm:GetParameter arn:aws:ssm:{REGION}::parameter/aws/service/x",
        ),
        (
            "ssm",
            "GetParameter",
            {"Name": "/corral-box/ami"},
            f"ssm:GetParameter arn:aws:ssm:{REGION}::parameter/aws/service/corral-box/ami",
        ),
        (
            "ssm",
            "AddTagsToResource",
            {"ResourceType": "Parameter", "ResourceId": "/corral/dev/image"},
            f"ssm:AddTagsToResource arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/corral/dev/image",
        ),
        ("ssm", "DescribeParameters", {}, "ssm:DescribeParameters *"),
        ("resourcegroupstaggingapi", "GetResources", {}, "tag:GetResources *"),
    ],
)
def test_a_call_requires_its_action_on_what_it_names(service: str, action: str, body: Any, expected: str) -> None:
    assert required(service, action, body) == [expected]


@pytest.mark.parametrize(
    ("service", "action", "fields", "expected"),
    [
        ("iam", "GetRole", {"RoleName": "identity-head"}, f"iam:GetRole arn:aws:iam::{ACCOUNT}:role/identity-head"),
        ("iam", "CreateRole", {"RoleName": "r", "Path": "/a/"}, f"iam:CreateRole arn:aws:iam::{ACCOUNT}:role/a/r"),
        ("iam", "CreatePolicy", {"PolicyName": "p"}, f"iam:CreatePolicy arn:aws:iam::{ACCOUNT}:policy/p"),
        (
            "iam",
            "PutRolePolicy",
            {"RoleName": "r", "PolicyName": "p"},
            f"iam:PutRolePolicy arn:aws:iam::{ACCOUNT}:role/r",
        ),
        (
            "iam",
            "DeleteInstanceProfile",
            {"InstanceProfileName": "identity-head"},
            f"iam:DeleteInstanceProfile arn:aws:iam::{ACCOUNT}:instance-profile/identity-head",
        ),
        (
            "iam",
            "CreateServiceLinkedRole",
            {"AWSServiceName": "spot.amazonaws.com"},
            f"iam:CreateServiceLinkedRole {SPOT_ROLE}",
        ),
        ("iam", "ListRoles", {}, "iam:ListRoles *"),
        ("sns", "CreateTopic", {"Name": "watch-x"}, f"sns:CreateTopic arn:aws:sns:{REGION}:{ACCOUNT}:watch-x"),
        ("sns", "Unsubscribe", {"SubscriptionArn": "arn:aws:sns:r:a:t:1"}, "sns:Unsubscribe *"),
    ],
)
def test_a_call_by_form_requires_its_action_on_what_it_names(
    service: str, action: str, fields: Any, expected: str
) -> None:
    assert form(service, action, **fields) == [expected]


@pytest.mark.parametrize(
    ("path", "action", "resource"),
    [
        ("/2013-04-01/hostedzone/Z1", "GetHostedZone", "arn:aws:route53:::hostedzone/Z1"),
        ("/2013-04-01/tags/hostedzone/Z1", "ListTagsForResource", "arn:aws:route53:::hostedzone/Z1"),
        ("/2013-04-01/change/C1", "GetChange", "arn:aws:route53:::change/C1"),
        ("/2013-04-01/hostedzone", "ListHostedZones", "*"),
    ],
)
def test_a_call_of_route_53_is_about_what_its_path_names(path: str, action: str, resource: str) -> None:
    assert required("route53", action, PATH_INFO=path) == [f"route53:{action} {resource}"]


WRITE = "/workspaces/ws-1/api/v1/remote_write"
QUERY = "/workspaces/ws-1/api/v1/query"


@pytest.mark.parametrize(
    ("environ", "action"),
    [
        ({"PATH_INFO": WRITE, "REQUEST_METHOD": "POST"}, "RemoteWrite"),
        ({"PATH_INFO": QUERY, "REQUEST_METHOD": "POST", "CONTENT_TYPE": FORM}, "QueryMetrics"),
        ({"PATH_INFO": f"{QUERY}_range", "REQUEST_METHOD": "GET"}, "QueryMetrics"),
        ({"PATH_INFO": "/workspaces/ws-1", "REQUEST_METHOD": "DELETE"}, "DeleteWorkspace"),
    ],
)
def test_a_call_of_managed_prometheus_is_about_the_workspace_in_its_path(environ: dict[str, str], action: str) -> None:
    scope = {"HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential=AKIA/20261128/{REGION}/aps/aws4_request"}
    call = identify_call({**environ, **scope}, b"query=up")
    (found,) = actions_required_by({**environ, **scope}, call, b"query=up")
    assert (found.action, found.resource) == (f"aps:{action}", f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace/ws-1")


@pytest.mark.parametrize(
    ("service", "action", "body", "tagging"),
    [
        ("secretsmanager", "CreateSecret", {"Name": "s", "Tags": [{"Key": "k", "Value": "v"}]}, "TagResource"),
        ("logs", "CreateLogGroup", {"logGroupName": "g", "tags": {"k": "v"}}, "TagResource"),
        ("cloudwatch", "PutMetricAlarm", {"AlarmName": "a", "Tags": [{"Key": "k", "Value": "v"}]}, "TagResource"),
    ],
)
def test_a_creation_with_tags_requires_tagging_as_well(service: str, action: str, body: Any, tagging: str) -> None:
    (own, other) = required(service, action, body)
    assert other == own.replace(f":{action} ", f":{tagging} ")


@pytest.mark.parametrize(
    ("action", "tagging"),
    [("CreateRole", "TagRole"), ("CreatePolicy", "TagPolicy"), ("CreateInstanceProfile", "TagInstanceProfile")],
)
def test_an_entity_of_iam_that_is_created_with_tags_requires_tagging(action: str, tagging: str) -> None:
    names = {"RoleName": "n", "PolicyName": "n", "InstanceProfileName": "n"}
    tags = {"Tags.member.1.Key": "k", "Tags.member.1.Value": "v"}
    assert [one.split()[0] for one in form("iam", action, **names, **tags)] == [f"iam:{action}", f"iam:{tagging}"]


def test_a_zone_of_a_vpc_requires_to_see_the_vpc() -> None:
    body = f'<R xmlns="{ROUTE53}"><VPC><VPCRegion>us-west-2</VPCRegion><VPCId>vpc-1</VPCId></VPC></R>'.encode()
    call = Call(service="route53", action="CreateHostedZone", region=REGION, caller="AKIA")
    (own, other) = actions_required_by({"PATH_INFO": "/2013-04-01/hostedzone"}, call, body)
    assert (own.action, other.action, other.context["aws:requestedregion"]) == (
        "route53:CreateHostedZone",
        "ec2:DescribeVpcs",
        "us-west-2",
    )


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ["kms:CreateKey"]),
        ({"Policy": "{}"}, ["kms:CreateKey", "kms:PutKeyPolicy"]),
        ({"Policy": "{}", "BypassPolicyLockoutSafetyCheck": True}, ["kms:CreateKey"]),
        ({"Tags": [{"TagKey": "k", "TagValue": "v"}]}, ["kms:CreateKey", "kms:TagResource"]),
    ],
)
def test_a_key_requires_what_its_policy_and_its_tags_require(more: Any, expected: list[str]) -> None:
    assert [one.split()[0] for one in required("kms", "CreateKey", more)] == expected


DELETE = "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key><VersionId>1</VersionId></Object></Delete>"
TAGGED = "<C><Tags><Tag><Key>k</Key><Value>v</Value></Tag></Tags></C>"


@pytest.mark.parametrize(
    ("action", "environ", "body", "expected"),
    [
        ("PutObject", {"PATH_INFO": "/b/k"}, "", ["s3:PutObject arn:aws:s3:::b/k"]),
        (
            "DeleteObject",
            {"PATH_INFO": "/b/k", "QUERY_STRING": "versionId=1"},
            "",
            ["s3:DeleteObjectVersion arn:aws:s3:::b/k"],
        ),
        (
            "HeadObject",
            {"PATH_INFO": "/b/k", "QUERY_STRING": "versionId=1"},
            "",
            ["s3:GetObjectVersion arn:aws:s3:::b/k"],
        ),
        (
            "DeleteObjects",
            {"PATH_INFO": "/b"},
            DELETE,
            ["s3:DeleteObject arn:aws:s3:::b/a", "s3:DeleteObjectVersion arn:aws:s3:::b/b"],
        ),
        (
            "CreateBucket",
            {"PATH_INFO": "/b"},
            TAGGED,
            ["s3:CreateBucket arn:aws:s3:::b", "s3:TagResource arn:aws:s3:::b"],
        ),
        (
            "PutObject",
            {"PATH_INFO": "/b/k", "HTTP_X_AMZ_TAGGING": "k=v"},
            "",
            ["s3:PutObject arn:aws:s3:::b/k", "s3:PutObjectTagging arn:aws:s3:::b/k"],
        ),
        (
            "CopyObject",
            {"PATH_INFO": "/b/k", "HTTP_X_AMZ_COPY_SOURCE": "/c/k"},
            "",
            ["s3:PutObject arn:aws:s3:::b/k", "s3:GetObject arn:aws:s3:::c/k"],
        ),
        (
            "UploadPartCopy",
            {"PATH_INFO": "/b/k", "HTTP_X_AMZ_COPY_SOURCE": "/c/k"},
            "",
            ["s3:PutObject arn:aws:s3:::b/k", "s3:GetObject arn:aws:s3:::c/k"],
        ),
        ("ListObjectVersions", {"PATH_INFO": "/b"}, "", ["s3:ListBucketVersions arn:aws:s3:::b"]),
        ("PutBucketEncryption", {"PATH_INFO": "/b"}, "", ["s3:PutEncryptionConfiguration arn:aws:s3:::b"]),
        ("ListBuckets", {"PATH_INFO": "/"}, "", ["s3:ListAllMyBuckets *"]),
    ],
)
def test_a_call_of_s3_requires(action: str, environ: Any, body: str, expected: list[str]) -> None:
    assert required("s3", action, body.encode(), **environ) == expected


def test_an_action_that_the_reference_lacks_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="iam:AcquireRole"):
        form("iam", "AcquireRole")


def test_a_resource_that_the_box_does_not_find_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="the resource of cloudwatch:PutDashboard"):
        required("cloudwatch", "PutDashboard", {"DashboardName": "d"})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"Tags": [{"Key": "k", "Value": "v"}]}, {"k": "v"}),
        ({"Tags": [{"TagKey": "k", "TagValue": "v"}]}, {"k": "v"}),
        ({"tags": {"k": "v"}}, {"k": "v"}),
        ({"Tags.member.1.Key": "k", "Tags.member.1.Value": "v"}, {"k": "v"}),
        ({"TagSpecification.1.Tag.1.Key": "k", "TagSpecification.1.Tag.1.Value": "v"}, {"k": "v"}),
        ({"Name": "x"}, {}),
    ],
)
def test_tags_of_a_request(fields: Any, expected: Mapping[str, str]) -> None:
    assert request_tags(fields) == expected


RECORDS = (
    f'<R xmlns="{ROUTE53}"><ChangeBatch><Changes>'
    "<Change><Action>UPSERT</Action><ResourceRecordSet><Name>A_1.corral.internal.</Name><Type>A</Type></ResourceRecordSet></Change>"
    "<Change><Action>UPSERT</Action><ResourceRecordSet><Name>*.x</Name><Type>A</Type></ResourceRecordSet></Change>"
    "</Changes></ChangeBatch></R>"
)


@pytest.mark.parametrize(
    ("prefix", "fields", "body", "expected"),
    [
        ("iam", {"PermissionsBoundary": "arn:b"}, "", {"iam:permissionsboundary": "arn:b"}),
        ("iam", {"AWSServiceName": "spot.amazonaws.com"}, "", {"iam:awsservicename": "spot.amazonaws.com"}),
        ("cloudwatch", {"Namespace": "Corral"}, "", {"cloudwatch:namespace": "Corral"}),
        ("sns", {"Protocol": "email"}, "", {"sns:protocol": "email"}),
        ("logs", {"tags": {"K": "v"}}, "", {"aws:requesttag/k": "v", "aws:tagkeys": ("K",)}),
        ("kms", {"TagKeys": ["k", "l"]}, "", {"aws:tagkeys": ("k", "l")}),
        (
            "route53",
            {},
            RECORDS,
            {
                "route53:changeresourcerecordsetsnormalizedrecordnames": ("\\052.x", "a_1.corral.internal"),
                "route53:changeresourcerecordsetsrecordtypes": ("A",),
                "route53:changeresourcerecordsetsactions": ("UPSERT",),
            },
        ),
    ],
)
def test_condition_keys_of_a_request(prefix: str, fields: Any, body: str, expected: Mapping[str, Any]) -> None:
    assert request_keys(prefix, fields, body.encode()) == expected
