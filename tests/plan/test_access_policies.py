"""The policies of readers, users and admins as data: short, limited to clusters' machines and corral's documents."""

from __future__ import annotations

from typing import Any

import pytest

from corral.plan.iam.access_policies import access_policies
from corral.plan.iam.deployer_policy import deployer_policies
from deployer_actions import LONGEST, size

READER, USER, ADMIN = access_policies(account="123456789012", region="ap-southeast-2")
DOCUMENTS = "arn:aws:ssm:ap-southeast-2:123456789012:document/"


def statements(policy: Any, action: str) -> list[Any]:
    return [one for one in policy.document["Statement"] if action in one["Action"]]


def documents(policy: Any, action: str) -> list[str]:
    """The names of the documents that the policy allows with this action."""
    resources = [resource for one in statements(policy, action) for resource in one["Resource"]]
    return sorted(one.removeprefix(DOCUMENTS) for one in resources if one.startswith(DOCUMENTS))


@pytest.mark.parametrize("policy", [READER, USER, ADMIN], ids=lambda policy: policy.name)
def test_a_policy_fits_into_a_managed_policy(policy: Any) -> None:
    assert size(policy) <= LONGEST


def test_the_policies_are_named_after_their_region() -> None:
    assert [policy.name for policy in (READER, USER, ADMIN)] == [
        "corral-reader-ap-southeast-2",
        "corral-user-ap-southeast-2",
        "corral-admin-ap-southeast-2",
    ]


@pytest.mark.parametrize(
    ("policy", "action", "names"),
    [
        (READER, "ssm:SendCommand", ["corral-query"]),
        (READER, "ssm:StartSession", []),
        (USER, "ssm:SendCommand", ["corral-query"]),
        (USER, "ssm:StartSession", ["corral-shell", "corral-ssh"]),
        (ADMIN, "ssm:SendCommand", ["corral-query"]),
        (ADMIN, "ssm:StartSession", ["corral-root-shell", "corral-shell", "corral-ssh"]),
    ],
)
def test_a_policy_names_its_documents(policy: Any, action: str, names: list[str]) -> None:
    assert documents(policy, action) == names


def test_a_deployer_runs_the_programs_of_the_agent_and_opens_no_shell() -> None:
    policies = deployer_policies(account="123456789012", region="ap-southeast-2")
    allowed = [documents(policy, action) for action in ("ssm:SendCommand", "ssm:StartSession") for policy in policies]
    assert allowed == [[], [], ["corral-control", "corral-query"], [], [], []]


@pytest.mark.parametrize("policy", [USER, ADMIN], ids=["user", "admin"])
def test_every_session_needs_a_document(policy: Any) -> None:
    conditions = [one["Condition"].get("BoolIfExists") for one in statements(policy, "ssm:StartSession")]
    assert [one for one in conditions if one != {"ssm:SessionDocumentAccessCheck": "true"}] == []


@pytest.mark.parametrize("policy", [READER, USER, ADMIN], ids=["reader", "user", "admin"])
def test_nobody_reaches_a_machine_that_is_no_clusters(policy: Any) -> None:
    found = [*statements(policy, "ssm:SendCommand"), *statements(policy, "ssm:StartSession")]
    machines = [one["Condition"] for one in found if "arn:aws:ec2" in one["Resource"][0]]
    assert [one.get("StringLike") for one in machines] == [{"ssm:resourceTag/corral:cluster": "*"}] * len(machines)


@pytest.mark.parametrize("policy", [USER, ADMIN], ids=["user", "admin"])
def test_only_the_channels_of_own_sessions_are_opened(policy: Any) -> None:
    (found,) = statements(policy, "ssmmessages:OpenDataChannel")
    assert found["Resource"] == ["arn:aws:ssm:*:*:session/${aws:userid}-*"]


@pytest.mark.parametrize("policy", [READER, USER], ids=["reader", "user"])
def test_only_an_admin_reaches_compute_nodes(policy: Any) -> None:
    found = [*statements(policy, "ssm:SendCommand"), *statements(policy, "ssm:StartSession")]
    machines = [one["Condition"] for one in found if "arn:aws:ec2" in one["Resource"][0]]
    assert [one["Null"]["ssm:resourceTag/corral:queue"] for one in machines] == ["true"] * len(machines)


@pytest.mark.parametrize("policy", [USER, ADMIN], ids=["user", "admin"])
def test_only_own_sessions_are_ended(policy: Any) -> None:
    (found,) = statements(policy, "ssm:TerminateSession")
    assert found["Condition"] == {"StringLike": {"ssm:resourceTag/aws:ssmmessages:session-id": "${aws:userid}"}}


def test_a_user_connects_to_login_nodes_and_to_heads_that_are_not_left_to_administrators() -> None:
    (found,) = (one for one in statements(USER, "ssm:StartSession") if "arn:aws:ec2" in one["Resource"][0])
    assert found["Condition"]["Null"] == {
        "ssm:resourceTag/corral:queue": "true",
        "ssm:resourceTag/corral:admins": "true",
    }


def test_a_question_goes_to_no_login_node() -> None:
    (found,) = (one for one in statements(READER, "ssm:SendCommand") if "arn:aws:ec2" in one["Resource"][0])
    assert found["Condition"]["Null"] == {
        "ssm:resourceTag/corral:queue": "true",
        "ssm:resourceTag/corral:login": "true",
    }
