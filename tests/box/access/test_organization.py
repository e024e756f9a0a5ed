"""Service control policies of an organization: they limit every caller of the account."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from test_access import Account, account  # noqa: F401

from box.vpc_fixtures import Clients, LaunchNetwork
from corral.box import control
from corral.box.client import BoxStatus
from corral.box.daemon.daemon_process import BoxError

OWNER = "arn:aws:iam::123456789012:user/corral-box"
EVERYWHERE = {"StringNotEquals": {"aws:RequestedRegion": ["us-east-1"]}}


def organization(box: BoxStatus, *statements: dict[str, Any], name: str = "guard") -> None:
    """Attach a policy with these statements to the account."""
    policy = {"Version": "2012-10-17", "Statement": [{"Resource": "*", **one} for one in statements]}
    control.inject_fault(box.dir, "service-control-policy", name=name, policy=json.dumps(policy))


def refusal(call: Any, **parameters: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as raised:
        call(**parameters)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


def test_the_accounts_owner_is_limited(box: BoxStatus, aws: Clients) -> None:
    organization(box, {"Effect": "Deny", "Action": "logs:*"})
    assert refusal(aws("logs").create_log_group, logGroupName="x") == (
        "AccessDeniedException",
        f"User: {OWNER} is not authorized to perform: logs:CreateLogGroup on resource:"
        " arn:aws:logs:us-east-1:123456789012:log-group:x:log-stream: with an explicit deny in a service control"
        " policy: arn:aws:organizations::210987654321:policy/o-box0example/service_control_policy/p-a9d4034d",
    )


def test_other_calls_are_allowed(box: BoxStatus, aws: Clients) -> None:
    organization(box, {"Effect": "Deny", "Action": "logs:*"})
    assert aws("ec2").describe_vpcs()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_a_policy_that_allows_replaces_full_access(box: BoxStatus, aws: Clients) -> None:
    organization(box, {"Effect": "Allow", "Action": "ec2:*"})
    _, message = refusal(aws("logs").describe_log_groups)
    assert message.endswith("because no service control policy allows the logs:DescribeLogGroups action")


def test_a_region_can_be_denied(box: BoxStatus, aws: Clients) -> None:
    organization(box, {"Effect": "Deny", "NotAction": ["iam:*", "sts:*"], "Condition": EVERYWHERE})
    denied = refusal(aws("ec2", "eu-west-1").describe_vpcs)[0]
    assert (denied, aws("ec2").describe_vpcs()["ResponseMetadata"]["HTTPStatusCode"]) == ("UnauthorizedOperation", 200)


def test_a_role_can_be_exempt(box: BoxStatus, account: Account) -> None:  # noqa: F811
    exempt = {"ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/corral/identity-head"}}
    organization(box, {"Effect": "Deny", "Action": "ec2:DescribeInstances", "Condition": exempt})
    found = account.as_role("head")("ec2").describe_instances()["Reservations"]
    assert (found, refusal(account.aws("ec2").describe_instances)[0]) == ([], "UnauthorizedOperation")


@pytest.mark.parametrize(
    ("key", "value", "is_denied"),
    [
        ("ec2:InstanceType", "m7i.*", True),
        ("ec2:InstanceType", "p5.*", False),
        ("ec2:InstanceMarketType", "on-demand", True),
        ("ec2:InstanceMarketType", "spot", False),
    ],
)
def test_launches_are_denied_by_type_and_market(
    box: BoxStatus, launch_network: LaunchNetwork, aws: Clients, key: str, value: str, is_denied: bool
) -> None:
    launched = {"Resource": "arn:aws:ec2:*:*:instance/*", "Condition": {"StringLike": {key: value}}}
    organization(box, {"Effect": "Deny", "Action": "ec2:RunInstances", **launched})
    wanted = {"ImageId": launch_network.image, "SubnetId": launch_network.subnet, "InstanceType": "m7i.large"}
    try:
        aws("ec2").run_instances(MinCount=1, MaxCount=1, **wanted)
    except ClientError as error:
        assert (is_denied, "explicit deny in a service control policy" in str(error)) == (True, True)
    else:
        assert is_denied is False


def test_a_launch_of_a_denied_type_names_the_policy(box: BoxStatus, account: Account) -> None:  # noqa: F811
    launched = {"Resource": "arn:aws:ec2:*:*:instance/*", "Condition": {"StringLike": {"ec2:InstanceType": "*"}}}
    organization(box, {"Effect": "Deny", "Action": "ec2:RunInstances", **launched})
    template = {"LaunchTemplateId": account.own}
    code, message = refusal(
        account.as_role("head")("ec2").run_instances, LaunchTemplate=template, MinCount=1, MaxCount=1
    )
    assert (code, "instance/* with an explicit deny in a service control policy: arn:" in message) == (
        "UnauthorizedOperation",
        True,
    )


def test_the_encoded_message_of_ec2_can_be_decoded(box: BoxStatus, aws: Clients) -> None:
    organization(box, {"Effect": "Deny", "Action": "ec2:CreateVpc"})
    _, message = refusal(aws("ec2").create_vpc, CidrBlock="10.0.0.0/16")
    text, _, encoded = message.partition(" Encoded authorization failure message: ")
    details = json.loads(aws("sts").decode_authorization_message(EncodedMessage=encoded)["DecodedMessage"])
    assert (text.startswith("You are not authorized"), details["explicitDeny"], details["context"]["action"]) == (
        True,
        True,
        "ec2:CreateVpc",
    )


def test_a_simulation_has_the_organizations_decision_with_its_conditions(box: BoxStatus, aws: Clients) -> None:
    organization(box, {"Effect": "Deny", "Action": "ec2:*", "Condition": EVERYWHERE})
    results = aws("iam").simulate_principal_policy(
        PolicySourceArn=OWNER,
        ActionNames=["ec2:RunInstances", "fsx:CreateFileSystem"],
        ContextEntries=[
            {"ContextKeyName": "aws:RequestedRegion", "ContextKeyValues": ["eu-west-1"], "ContextKeyType": "string"}
        ],
    )["EvaluationResults"]
    assert [(one["EvalDecision"], one["OrganizationsDecisionDetail"]["AllowedByOrganizations"]) for one in results] == [
        ("explicitDeny", False),
        ("allowed", True),
    ]


def test_without_an_organization_a_simulation_has_no_decision_of_one(aws: Clients) -> None:
    (one,) = aws("iam").simulate_principal_policy(PolicySourceArn=OWNER, ActionNames=["ec2:RunInstances"])[
        "EvaluationResults"
    ]
    assert (one["EvalDecision"], "OrganizationsDecisionDetail" in one) == ("allowed", False)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("{", "the policy is not JSON"),
        ("{}", "the policy has no Statement"),
        ('{"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*", "Till": 1}}', "the box does not know Till"),
        (
            '{"Statement": {"Effect": "Deny", "Action": "*", "Resource": "*",'
            ' "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}}}',
            "the box does not know the condition operator IpAddress",
        ),
    ],
)
def test_a_policy_that_the_box_cannot_evaluate_is_refused(box: BoxStatus, policy: str, problem: str) -> None:
    with pytest.raises(BoxError) as raised:
        control.inject_fault(box.dir, "service-control-policy", name="guard", policy=policy)
    assert str(raised.value).startswith(problem)
