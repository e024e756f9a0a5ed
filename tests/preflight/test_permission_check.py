"""What IAM's simulations say of the deployer and the head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from finding_lines import bad, dev, finding_lines

from corral.model.access_denials import PolicyType
from corral.model.enums import Market
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.permission_check import Denied, PermissionFacts, Simulated, evaluate, fetch

ANN = "arn:aws:iam::123456789012:user/ann"
ROLE = "arn:aws:iam::123456789012:role/pipelines/ci"
ALL = Simulated(evaluated=240)
GOOD = PermissionFacts(caller=ANN, deployer=ALL, head=ALL)


def of(deployer: Simulated, caller: str = ANN) -> PermissionFacts:
    return replace(GOOD, deployer=deployer, caller=caller)


def denied(*names: str) -> Simulated:
    return Simulated(evaluated=240, denied=tuple(Denied(action=name) for name in names))


class Iam:
    """IAM and STS of an account where `role/pipelines/ci` may do all but what is denied."""

    def __init__(self, arn: str, *, may_not: str = "", detail: dict[str, Any] | None = None) -> None:
        self.arn, self.may_not, self.detail = arn, may_not, detail or {}
        self.requests: list[tuple[str, int]] = []
        self.types: dict[str, str] = {}

    def client(self, service: str) -> Iam:
        return self

    def can_paginate(self, action: str) -> bool:
        return False

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "123456789012", "Arn": self.arn}

    def get_role(self, **_: str) -> dict[str, Any]:
        return {"Role": {"Arn": ROLE}}

    def simulate_principal_policy(self, **request: Any) -> dict[str, Any]:
        self.requests.append((request["PolicySourceArn"], len(request["ActionNames"])))
        self.types |= {one["ContextKeyName"]: one["ContextKeyType"] for one in request["ContextEntries"]}
        return {"EvaluationResults": [self._result(name) for name in request["ActionNames"]]}

    def simulate_custom_policy(self, **request: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SimulateCustomPolicy")

    def _result(self, name: str) -> dict[str, Any]:
        word = "implicitDeny" if name == self.may_not else "allowed"
        each = [{"EvalResourceDecision": "allowed"}, {"EvalResourceDecision": word}]
        result = {"EvalActionName": name, "EvalDecision": "allowed", "ResourceSpecificResults": each}
        return {**result, **self.detail} if name == self.may_not else result


def fetched(iam: Iam) -> PermissionFacts:
    return fetch(AwsQueryCache(iam), dev())


def test_a_caller_with_all_permissions_is_ok() -> None:
    assert finding_lines(evaluate(dev(), GOOD)) == [
        f"ok deployer: {ANN} allows all 240 required actions",
        "ok head: its policy as planned allows all 240 required actions",
    ]


def test_denied_actions_are_named() -> None:
    found = bad(evaluate(dev(), of(denied("fsx:CreateFileSystem", "ec2:CreateVpc"))))
    assert found == [f"fail deployer: {ANN} does not allow ec2:CreateVpc, fsx:CreateFileSystem"]


def test_of_many_denied_actions_the_first_are_named() -> None:
    (line,) = bad(evaluate(dev(), of(denied(*(f"ec2:Call{number:02}" for number in range(14))))))
    assert line.endswith("ec2:Call11 and 2 more")


def test_a_denial_that_depends_on_an_unknown_condition_key_is_a_warning() -> None:
    lacking = Denied(action="ec2:CreateVpc", missing_keys=("aws:MultiFactorAuthPresent",))
    assert bad(evaluate(dev(), of(Simulated(evaluated=240, denied=(lacking,))))) == [
        f"warn deployer: {ANN} allows ec2:CreateVpc only by aws:MultiFactorAuthPresent; its value is unknown"
        " before deployment"
    ]


def test_a_head_whose_policy_lacks_a_call_fails() -> None:
    found = bad(evaluate(dev(), replace(GOOD, head=denied("sns:Publish"))))
    assert found == ["fail head: its policy as planned does not allow sns:Publish"]


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        (of(Simulated(refusal="AccessDenied")), "allow iam:SimulatePrincipalPolicy"),
        (replace(GOOD, head=Simulated(refusal="AccessDenied")), "allow iam:SimulateCustomPolicy"),
    ],
)
def test_a_denied_simulation_names_the_permission_to_add(facts: PermissionFacts, fix: str) -> None:
    (finding,) = (one for one in evaluate(dev(), facts) if one.verdict == "warn")
    assert finding.fix == f"{fix}, or add --skip permissions"


def test_the_root_user_is_not_simulated() -> None:
    root = "arn:aws:iam::123456789012:root"
    found = bad(evaluate(dev(), of(Simulated(refusal="InvalidInput"), root)))
    assert found == [f"warn deployer: {root} is allowed everything; IAM does not simulate it"]


def test_a_caller_unknown_to_iam_is_a_finding() -> None:
    found = bad(evaluate(dev(), of(Simulated(refusal="NoSuchEntity"))))
    assert found == [f"warn deployer: {ANN} is not a user or role that IAM can simulate (NoSuchEntity)"]


def test_a_session_is_simulated_as_its_role_with_the_path() -> None:
    iam = Iam("arn:aws:sts::123456789012:assumed-role/ci/run-7")
    assert (fetched(iam).caller, {arn for arn, _ in iam.requests}) == (ROLE, {ROLE})


def test_no_request_has_more_actions_than_iam_allows() -> None:
    iam = Iam(ANN)
    fetched(iam)
    assert max(count for _, count in iam.requests) == 100


def test_an_action_that_is_denied_on_one_of_its_resources_is_denied() -> None:
    assert fetched(Iam(ANN, may_not="kms:CreateAlias")).deployer.denied == (Denied(action="kms:CreateAlias"),)


def test_an_organizations_denial_names_who_can_change_it() -> None:
    found = Denied(action="fsx:CreateFileSystem", policy_type=PolicyType.ORGANIZATION)
    (finding,) = (one for one in evaluate(dev(), of(Simulated(denied=(found,)))) if one.verdict == "fail")
    assert (finding.message, finding.fix) == (
        "a service control policy of the AWS organization does not allow fsx:CreateFileSystem",
        "ask the administrators of the AWS organization to allow it; nothing in this account can",
    )


def test_a_boundary_is_named_and_does_not_hide_what_policies_lack() -> None:
    boundary = "arn:aws:iam::123456789012:policy/ceiling"
    two = Simulated(
        denied=(
            Denied(action="fsx:CreateFileSystem", policy_type=PolicyType.BOUNDARY),
            Denied(action="ec2:CreateVpc"),
        )
    )
    assert bad(evaluate(dev(), replace(of(two), boundary=boundary))) == [
        f"fail deployer: the permissions boundary of {ANN} does not allow fsx:CreateFileSystem ({boundary})",
        f"fail deployer: {ANN} does not allow ec2:CreateVpc",
    ]


def test_what_the_organization_denies_the_head_is_a_failure() -> None:
    limits = Simulated(denied=(Denied(action="sns:Publish", policy_type=PolicyType.ORGANIZATION),))
    assert bad(evaluate(dev(), replace(GOOD, head_limits=limits))) == [
        "fail head: a service control policy of the AWS organization does not allow sns:Publish"
    ]


def test_a_queue_with_another_market_left_is_a_warning() -> None:
    facts = replace(GOOD, denied_launches=frozenset({("p4d.24xlarge", Market.SPOT)}))
    assert bad(evaluate(dev(), facts)) == [
        "warn queue train: a service control policy of the AWS organization does not allow"
        " ec2:RunInstances of p4d.24xlarge (spot)"
    ]


@pytest.mark.parametrize(
    ("detail", "policy_type"),
    [
        ({"OrganizationsDecisionDetail": {"AllowedByOrganizations": False}}, PolicyType.ORGANIZATION),
        ({"PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False}}, PolicyType.BOUNDARY),
        ({"OrganizationsDecisionDetail": {"AllowedByOrganizations": True}}, PolicyType.IDENTITY),
    ],
)
def test_what_denies_an_action_is_read_from_the_simulation(detail: dict[str, Any], policy_type: PolicyType) -> None:
    iam = Iam(ANN, may_not="kms:CreateAlias", detail=detail)
    assert [one.policy_type for one in fetched(iam).deployer.denied] == [policy_type]


def test_a_failed_simulation_of_the_head_keeps_the_findings_of_the_caller() -> None:
    facts = fetched(Iam(ANN))
    assert (facts.deployer.refusal, facts.head.refusal) == ("", "AccessDenied")


def test_a_key_with_many_values_is_sent_as_a_list() -> None:
    iam = Iam(ANN)
    fetched(iam)
    assert {key for key, type in iam.types.items() if type != "string"} == {
        "kms:ResourceAliases",
        "route53:ChangeResourceRecordSetsNormalizedRecordNames",
        "route53:VPCs",
    }
