"""IAM's policy simulations, answered by the policy evaluator."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients

ROLE = "arn:aws:iam::123456789012:role/head"
BUCKET = "arn:aws:s3:::bucket"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": f"{BUCKET}/*"},
        {"Effect": "Deny", "Action": "s3:*", "Resource": f"{BUCKET}/secret/*"},
        {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": "ec2:TerminateInstances",
            "Resource": "*",
            "Condition": {"StringEquals": {"ec2:ResourceTag/corral:cluster": "dev"}},
        },
    ],
}


@pytest.fixture
def iam(aws: Clients) -> Any:
    """IAM with the role `head`, which has the policy inline."""
    iam = aws("iam")
    iam.create_role(RoleName="head", AssumeRolePolicyDocument=json.dumps(TRUST))
    iam.put_role_policy(RoleName="head", PolicyName="own", PolicyDocument=json.dumps(POLICY))
    return iam


def decided(answer: Any) -> dict[str, str]:
    """The decision on each resource by `action resource`, on all resources by `action`."""
    found = {}
    for one in answer["EvaluationResults"]:
        for each in one.get("ResourceSpecificResults", ()):
            found[f"{one['EvalActionName']} {each['EvalResourceName']}"] = each["EvalResourceDecision"]
        if not one.get("ResourceSpecificResults"):
            found[one["EvalActionName"]] = one["EvalDecision"]
    return found


def refused(iam: Any, operation: str = "simulate_principal_policy", **parameters: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as raised:
        getattr(iam, operation)(**parameters)
    return raised.value.response["Error"]["Code"], raised.value.response["Error"]["Message"]


def test_a_role_is_evaluated_on_each_resource(iam: Any) -> None:
    answer = iam.simulate_principal_policy(
        PolicySourceArn=ROLE,
        ActionNames=["s3:GetObject", "s3:DeleteObject"],
        ResourceArns=[f"{BUCKET}/a", f"{BUCKET}/secret/b"],
    )
    assert decided(answer) == {
        f"s3:GetObject {BUCKET}/a": "allowed",
        f"s3:GetObject {BUCKET}/secret/b": "explicitDeny",
        f"s3:DeleteObject {BUCKET}/a": "implicitDeny",
        f"s3:DeleteObject {BUCKET}/secret/b": "explicitDeny",
    }


def test_without_resources_the_action_applies_to_all(iam: Any) -> None:
    answer = iam.simulate_principal_policy(
        PolicySourceArn=ROLE, ActionNames=["ec2:DescribeInstances", "ec2:RunInstances", "s3:GetObject"]
    )
    assert decided(answer) == {
        "ec2:DescribeInstances": "allowed",
        "ec2:RunInstances": "implicitDeny",
        "s3:GetObject": "implicitDeny",
    }


def test_the_result_of_an_action_has_a_generic_resource_name(iam: Any) -> None:
    (one,) = iam.simulate_principal_policy(
        PolicySourceArn=ROLE, ActionNames=["s3:GetObject"], ResourceArns=[f"{BUCKET}/a", f"{BUCKET}/secret/b"]
    )["EvaluationResults"]
    named = "arn:${Partition}:s3:${Region}:${Account}:${ResourceType}/${ResourcePath}"
    assert (one["EvalResourceName"], one["EvalDecision"]) == (named, "explicitDeny")


def test_the_decision_of_several_resources_is_the_most_restrictive(iam: Any) -> None:
    (one,) = iam.simulate_principal_policy(
        PolicySourceArn=ROLE, ActionNames=["s3:GetObject"], ResourceArns=[f"{BUCKET}/a", "arn:aws:s3:::other/a"]
    )["EvaluationResults"]
    assert [one["EvalDecision"], *(each["EvalResourceDecision"] for each in one["ResourceSpecificResults"])] == [
        "implicitDeny",
        "allowed",
        "implicitDeny",
    ]


def test_a_condition_uses_the_given_context(iam: Any) -> None:
    key = "ec2:ResourceTag/corral:cluster"
    parameters = {"PolicySourceArn": ROLE, "ActionNames": ["ec2:TerminateInstances"]}
    result = [
        decided(iam.simulate_principal_policy(
            **parameters,
            ContextEntries=[{"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}],
        ))
        for value in ("dev", "other")
    ]  # fmt: skip
    assert result == [{"ec2:TerminateInstances": "allowed"}, {"ec2:TerminateInstances": "implicitDeny"}]


def test_a_missing_context_key_is_reported(iam: Any) -> None:
    parameters = {"PolicySourceArn": ROLE, "ActionNames": ["ec2:TerminateInstances", "ec2:DescribeInstances"]}
    result = [one["MissingContextValues"] for one in iam.simulate_principal_policy(**parameters)["EvaluationResults"]]
    assert result == [["ec2:ResourceTag/corral:cluster"], []]


def test_the_boundary_of_a_role_counts(iam: Any) -> None:
    most = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}}
    arn = iam.create_policy(PolicyName="most", PolicyDocument=json.dumps(most))["Policy"]["Arn"]
    iam.put_role_permissions_boundary(RoleName="head", PermissionsBoundary=arn)
    answer = iam.simulate_principal_policy(
        PolicySourceArn=ROLE, ActionNames=["s3:GetObject", "s3:PutObject"], ResourceArns=[f"{BUCKET}/a"]
    )
    within = [one["PermissionsBoundaryDecisionDetail"]["AllowedByPermissionsBoundary"]
              for one in answer["EvaluationResults"]]  # fmt: skip
    assert (list(decided(answer).values()), within) == (["allowed", "implicitDeny"], [True, False])


def test_managed_and_given_policies_count(iam: Any) -> None:
    iam.attach_role_policy(RoleName="head", PolicyArn="arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore")
    more = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "iam:GetRole", "Resource": "*"}}
    actions = ["ssm:UpdateInstanceInformation", "iam:GetRole", "iam:CreateRole"]
    answer = iam.simulate_principal_policy(
        PolicySourceArn=ROLE, ActionNames=actions, PolicyInputList=[json.dumps(more)]
    )
    assert list(decided(answer).values()) == ["allowed", "allowed", "implicitDeny"]


def test_a_user_has_the_policies_of_its_groups(iam: Any) -> None:
    iam.create_user(UserName="ada")
    iam.create_group(GroupName="operators")
    iam.add_user_to_group(GroupName="operators", UserName="ada")
    iam.put_group_policy(GroupName="operators", PolicyName="own", PolicyDocument=json.dumps(POLICY))
    answer = iam.simulate_principal_policy(
        PolicySourceArn="arn:aws:iam::123456789012:user/ada", ActionNames=["ec2:DescribeVpcs"]
    )
    assert decided(answer) == {"ec2:DescribeVpcs": "allowed"}


@pytest.mark.parametrize(
    ("arn", "code", "text"),
    [
        (
            "arn:aws:sts::123456789012:assumed-role/head/ada",
            "InvalidInput",
            "Invalid Entity Arn: arn:aws:sts::123456789012:assumed-role/head/ada does not clearly define entity type"
            " and name.",
        ),
        (
            "arn:aws:iam::123456789012:root",
            "InvalidInput",
            "Invalid Entity Arn: arn:aws:iam::123456789012:root does not clearly define entity type and name.",
        ),
        ("arn:aws:iam::123456789012:role/other", "NoSuchEntity", "The role with name other cannot be found."),
    ],
)
def test_an_entity_of_another_kind_is_refused(iam: Any, arn: str, code: str, text: str) -> None:
    assert refused(iam, PolicySourceArn=arn, ActionNames=["s3:GetObject"]) == (code, text)


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"ActionNames": ["GetObject"]}, "InvalidInput"),
        ({"ActionNames": ["s3:GetObject"], "ResourceArns": ["bucket/a"]}, "InvalidInput"),
        ({"ActionNames": ["s3:GetObject"], "PolicyInputList": ["{"]}, "InvalidInput"),
        ({"ActionNames": ["s3:GetObject"], "ResourcePolicy": json.dumps(POLICY)}, "InvalidAction"),
    ],
)
def test_an_invalid_simulation_is_refused(iam: Any, parameters: dict[str, Any], code: str) -> None:
    assert refused(iam, PolicySourceArn=ROLE, **parameters)[0] == code


def test_custom_policies_can_be_simulated(aws: Clients) -> None:
    answer = aws("iam").simulate_custom_policy(
        PolicyInputList=[json.dumps(POLICY)],
        ActionNames=["s3:PutObject"],
        ResourceArns=[f"{BUCKET}/a", f"{BUCKET}/secret/a", "arn:aws:s3:::other/a"],
    )
    assert list(decided(answer).values()) == ["allowed", "explicitDeny", "implicitDeny"]


def test_the_results_have_pages(iam: Any) -> None:
    actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    pages = iam.get_paginator("simulate_principal_policy").paginate(
        PolicySourceArn=ROLE, ActionNames=actions, PaginationConfig={"PageSize": 2}
    )
    assert [[one["EvalActionName"] for one in page["EvaluationResults"]] for page in pages] == [
        actions[:2],
        actions[2:],
    ]
