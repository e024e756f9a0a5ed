"""What IAM's simulations say of the deployer and the head."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from judging import bad, dev, said

from corral.preflight.answers import Answers
from corral.preflight.permissions import Denied, Facts, Simulated, judge
from corral.preflight.simulations import ask
from environments import dev_cluster

ANN = "arn:aws:iam::123456789012:user/ann"
ROLE = "arn:aws:iam::123456789012:role/pipelines/ci"
ALL = Simulated(asked=240)
GOOD = Facts(caller=ANN, deployer=ALL, head=ALL)


def of(deployer: Simulated, caller: str = ANN) -> Facts:
    return replace(GOOD, deployer=deployer, caller=caller)


def denied(*names: str) -> Simulated:
    return Simulated(asked=240, denied=tuple(Denied(action=name) for name in names))


class Iam:
    """IAM and STS of an account where `role/pipelines/ci` may do all but what is denied."""

    def __init__(self, arn: str, *, may_not: str = "") -> None:
        self.arn, self.may_not = arn, may_not
        self.asked: list[tuple[str, int]] = []
        self.types: dict[str, str] = {}

    def client(self, service: str) -> Iam:
        return self

    def can_paginate(self, action: str) -> bool:
        return False

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "123456789012", "Arn": self.arn}

    def get_role(self, **_: str) -> dict[str, Any]:
        return {"Role": {"Arn": ROLE}}

    def simulate_principal_policy(self, **asked: Any) -> dict[str, Any]:
        self.asked.append((asked["PolicySourceArn"], len(asked["ActionNames"])))
        self.types |= {one["ContextKeyName"]: one["ContextKeyType"] for one in asked["ContextEntries"]}
        return {"EvaluationResults": [self._result(name) for name in asked["ActionNames"]]}

    def simulate_custom_policy(self, **asked: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SimulateCustomPolicy")

    def _result(self, name: str) -> dict[str, Any]:
        word = "implicitDeny" if name == self.may_not else "allowed"
        each = [{"EvalResourceDecision": "allowed"}, {"EvalResourceDecision": word}]
        return {"EvalActionName": name, "EvalDecision": "allowed", "ResourceSpecificResults": each}


def asked(iam: Iam) -> Facts:
    return ask(Answers(iam), dev())


def test_who_may_do_all_is_ok() -> None:
    assert said(judge(dev(), GOOD)) == [
        f"ok deployer: {ANN} allows all 240 actions that are called",
        "ok head: its policy as planned allows all 240 actions that are called",
    ]


def test_what_is_denied_is_named() -> None:
    found = bad(judge(dev(), of(denied("fsx:CreateFileSystem", "ec2:CreateVpc"))))
    assert found == [f"fail deployer: {ANN} does not allow ec2:CreateVpc, fsx:CreateFileSystem"]


def test_of_many_that_are_denied_the_first_are_named() -> None:
    (line,) = bad(judge(dev(), of(denied(*(f"ec2:Call{number:02}" for number in range(14))))))
    assert line.endswith("ec2:Call11 and 2 more")


def test_what_hangs_on_a_condition_that_nobody_knows_before_is_a_warning() -> None:
    lacking = Denied(action="ec2:CreateVpc", lacking=("aws:MultiFactorAuthPresent",))
    assert bad(judge(dev(), of(Simulated(asked=240, denied=(lacking,))))) == [
        f"warn deployer: {ANN} allows ec2:CreateVpc only by aws:MultiFactorAuthPresent, which is not known before"
    ]


def test_a_head_whose_policy_lacks_a_call_fails() -> None:
    found = bad(judge(dev(), replace(GOOD, head=denied("sns:Publish"))))
    assert found == ["fail head: its policy as planned does not allow sns:Publish"]


@pytest.mark.parametrize(
    ("facts", "fix"),
    [
        (of(Simulated(refusal="AccessDenied")), "allow iam:SimulatePrincipalPolicy"),
        (replace(GOOD, head=Simulated(refusal="AccessDenied")), "allow iam:SimulateCustomPolicy"),
    ],
)
def test_who_may_not_simulate_is_told_what_to_allow(facts: Facts, fix: str) -> None:
    (finding,) = (one for one in judge(dev(), facts) if one.verdict == "warn")
    assert finding.fix == f"{fix}, or leave it out by --skip permissions"


def test_the_root_user_is_not_simulated() -> None:
    root = "arn:aws:iam::123456789012:root"
    found = bad(judge(dev(), of(Simulated(refusal="InvalidInput"), root)))
    assert found == [f"warn deployer: {root} may do everything, and IAM does not simulate it"]


def test_who_is_unknown_to_iam_is_told() -> None:
    found = bad(judge(dev(), of(Simulated(refusal="NoSuchEntity"))))
    assert found == [f"warn deployer: {ANN} is no user or role that IAM simulates (NoSuchEntity)"]


def test_the_boxs_own_user_may_do_everything() -> None:
    boxed = dev(dev_cluster(image_profile="box-debian-12"))
    assert bad(judge(boxed, of(Simulated(refusal="NoSuchEntity")))) == []


def test_of_a_session_the_role_is_simulated_with_its_path() -> None:
    iam = Iam("arn:aws:sts::123456789012:assumed-role/ci/run-7")
    assert (asked(iam).caller, {arn for arn, _ in iam.asked}) == (ROLE, {ROLE})


def test_no_request_asks_about_more_actions_than_iam_takes() -> None:
    iam = Iam(ANN)
    asked(iam)
    assert max(count for _, count in iam.asked) == 100


def test_an_action_that_is_denied_on_one_of_its_resources_is_denied() -> None:
    assert asked(Iam(ANN, may_not="kms:CreateAlias")).deployer.denied == (Denied(action="kms:CreateAlias"),)


def test_what_cannot_be_simulated_of_the_head_spoils_nothing_of_the_deployer() -> None:
    facts = asked(Iam(ANN))
    assert (facts.deployer.refusal, facts.head.refusal) == ("", "AccessDenied")


def test_a_key_of_many_values_is_told_as_a_list() -> None:
    iam = Iam(ANN)
    asked(iam)
    assert {key for key, type in iam.types.items() if type != "string"} == {
        "kms:ResourceAliases",
        "route53:ChangeResourceRecordSetsNormalizedRecordNames",
    }
