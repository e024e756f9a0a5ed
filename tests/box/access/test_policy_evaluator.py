"""IAM's policy language: tables of statements and calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from corral.box.access.policy_evaluator import RequiredAction, allows_assuming, evaluate

ROLE, ACCOUNT = "arn:aws:iam::123456789012:role/head", "123456789012"
OBJECT = "arn:aws:s3:::bucket/clusters/dev/a"


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> Mapping[str, Any]:
    return {"Statement": [{"Effect": "Allow", "Action": action, "Resource": resource, **more}]}


def deny(action: Any = "*", resource: Any = "*", **more: Any) -> Mapping[str, Any]:
    return {"Statement": {**allow(action, resource, **more)["Statement"][0], "Effect": "Deny"}}


def get(**context: Any) -> RequiredAction:
    return RequiredAction(action="s3:GetObject", resource=OBJECT, context=context)


@pytest.mark.parametrize(
    ("action", "resource", "allowed"),
    [
        ("s3:GetObject", OBJECT, True),
        ("s3:getobject", OBJECT, True),
        ("s3:Get*", "arn:aws:s3:::bucket/clusters/*", True),
        ("s3:GetObjec?", "arn:aws:s3:::bucket/clusters/dev/?", True),
        (["s3:PutObject", "s3:GetObject"], ["arn:aws:s3:::other/*", OBJECT], True),
        ("*", "*", True),
        ("s3:PutObject", "*", False),
        ("s3:Get", "*", False),
        ("s3:GetObject", "arn:aws:s3:::bucket", False),
        ("s3:GetObject", "arn:aws:s3:::bucket/clusters/dev/A", False),
        ("s3:GetObject", "arn:aws:s3:::bucket/clusters/dev/[a]", False),
    ],
)
def test_a_statement_applies(action: Any, resource: Any, allowed: bool) -> None:
    assert evaluate([allow(action, resource)], [], get()).allowed is allowed


def test_a_statement_does_not_apply() -> None:
    statement = {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}
    assert evaluate([{"Statement": statement}], [], get()).allowed


@pytest.mark.parametrize(
    ("condition", "context", "allowed"),
    [
        ({"StringEquals": {"k": "v"}}, {"k": "v"}, True),
        ({"StringEquals": {"K": ["u", "v"]}}, {"k": "v"}, True),
        ({"StringEquals": {"k": "v*"}}, {"k": "vw"}, False),
        ({"StringEquals": {"k": "v"}}, {}, False),
        ({"StringEqualsIfExists": {"k": "v"}}, {}, True),
        ({"StringEqualsIfExists": {"k": "v"}}, {"k": "u"}, False),
        ({"StringNotEquals": {"k": ["u", "v"]}}, {"k": "v"}, False),
        ({"StringNotEquals": {"k": ["u", "v"]}}, {"k": "w"}, True),
        ({"StringNotEquals": {"k": "v"}}, {}, True),
        ({"StringLike": {"k": "v*"}}, {"k": "vw"}, True),
        ({"StringNotLike": {"k": "v*"}}, {"k": "vw"}, False),
        ({"ArnLike": {"k": "arn:aws:ec2:*:*:launch-template/*"}}, {"k": "arn:aws:ec2:r:a:launch-template/lt-1"}, True),
        ({"Bool": {"k": "true"}}, {"k": "true"}, True),
        ({"Bool": {"k": True}}, {"k": "true"}, True),
        ({"Bool": {"k": "true"}}, {"k": "false"}, False),
        ({"Null": {"k": "true"}}, {}, True),
        ({"Null": {"k": "true"}}, {"k": "v"}, False),
        ({"StringEquals": {"k": "v", "l": "w"}}, {"k": "v"}, False),
        ({"StringEquals": {"k": "v"}, "Bool": {"l": "true"}}, {"k": "v", "l": "true"}, True),
    ],
)
def test_a_condition_holds_or_not(condition: Any, context: dict[str, str], allowed: bool) -> None:
    assert evaluate([allow(Condition=condition)], [], get(**context)).allowed is allowed


@pytest.mark.parametrize(
    ("policies", "limits", "reason"),
    [
        ([allow()], [], ""),
        ([], [], "because no identity-based policy allows the s3:GetObject action"),
        ([allow(), deny("s3:*")], [], "with an explicit deny in an identity-based policy"),
        ([allow()], [("permissions boundary", allow("s3:*"))], ""),
        (
            [allow()],
            [("permissions boundary", allow("ec2:*"))],
            "because no permissions boundary allows the s3:GetObject action",
        ),
        (
            [allow()],
            [("permissions boundary", deny("s3:*"))],
            "with an explicit deny in a permissions boundary",
        ),
        (
            [allow()],
            [("permissions boundary", allow()), ("session policy", allow("ec2:*"))],
            "because no session policy allows the s3:GetObject action",
        ),
    ],
    ids=["allowed", "silence", "denied", "within", "outside", "denied above", "a session's own"],
)
def test_a_denial_decides_and_every_limit_must_allow(policies: Any, limits: Any, reason: str) -> None:
    verdict = evaluate(policies, limits, get())
    assert (verdict.allowed, verdict.reason) == (not reason, reason)


@pytest.mark.parametrize(
    ("operator", "context", "allowed"),
    [
        ("ForAllValues:StringLike", {"k": "a.corral"}, True),
        ("ForAllValues:StringLike", {"k": "b"}, False),
        ("ForAllValues:StringLike", {}, True),
        ("ForAnyValue:StringLike", {"k": "a.corral"}, True),
        ("ForAnyValue:StringLike", {"k": "b"}, False),
        ("ForAnyValue:StringLike", {}, False),
        ("ForAllValues:StringLike", {"k": ("a.corral", "b")}, False),
        ("ForAllValues:StringLike", {"k": ("a.corral", "b.corral")}, True),
        ("ForAnyValue:StringLike", {"k": ("a.corral", "b")}, True),
        ("ForAnyValue:StringLike", {"k": ("a", "b")}, False),
        ("ForAnyValue:StringNotLike", {"k": ("a.corral", "b")}, True),
    ],
)
def test_of_several_values_all_or_any_must_hold(operator: str, context: dict[str, Any], allowed: bool) -> None:
    assert evaluate([allow(Condition={operator: {"k": "*.corral"}})], [], get(**context)).allowed is allowed


@pytest.mark.parametrize(
    ("document", "name"),
    [
        (allow(Condition={"DateLessThan": {"k": "2026"}}), "the condition operator DateLessThan"),
        (allow(Condition={"StringEquals": {"k": "${aws:username}"}}), "the policy variable"),
        (
            allow(Condition={"ForEachValue:StringEquals": {"k": "v"}}),
            "the condition operator ForEachValue:StringEquals",
        ),
        (allow(Frob="1"), "Frob in a policy"),
    ],
)
def test_an_unknown_element_is_refused_by_name(document: Any, name: str) -> None:
    with pytest.raises(NotImplementedError, match=name.replace("$", r"\$")):
        evaluate([document], [], get(k="v"))


@pytest.mark.parametrize(
    ("principal", "trusted"),
    [
        ({"AWS": ROLE}, True),
        ({"AWS": ["arn:aws:iam::123456789012:role/other", ROLE]}, True),
        ({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, True),
        ("*", True),
        ({"Service": "ec2.amazonaws.com"}, False),
        ({"AWS": "arn:aws:iam::123456789012:role/other"}, False),
    ],
)
def test_a_role_trusts_its_principals(principal: Any, trusted: bool) -> None:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    assert allows_assuming({"Statement": [statement]}, ROLE, ACCOUNT) is trusted


def test_a_role_that_is_denied_by_the_trust_policy_is_not_trusted() -> None:
    statements = [
        {"Effect": effect, "Action": "sts:AssumeRole", "Principal": {"AWS": ROLE}} for effect in ("Allow", "Deny")
    ]
    assert not allows_assuming({"Statement": statements}, ROLE, ACCOUNT)


@pytest.mark.parametrize(
    ("element", "name"),
    [
        ({"Principal": {"AWS": ROLE}, "Condition": {"Bool": {"aws:MultiFactorAuthPresent": "true"}}}, "a condition"),
        ({"NotPrincipal": {"AWS": ROLE}}, "NotPrincipal"),
    ],
)
def test_a_trust_policy_with_more_than_principals_is_refused_by_name(element: Any, name: str) -> None:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", **element}
    with pytest.raises(NotImplementedError, match=name):
        allows_assuming({"Statement": [statement]}, ROLE, ACCOUNT)
