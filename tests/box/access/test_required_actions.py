"""What a launch must be allowed, and on which resources."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from corral.box.access.policy_evaluator import RequiredAction, evaluate
from corral.box.access.required_actions_ec2 import _launch
from corral.box.api_calls import Call
from corral.plan.iam.head_calls import planned_arns
from corral.plan.iam.iam_policies import head_policy
from environments import dev_cluster

OWNER, OWN = "999999999999", "123456789012"
LAUNCH = Call(service="ec2", action="RunInstances", region="us-east-1", caller="head")
FROM_TEMPLATE = {
    "aws:requestedregion": "us-east-1",
    "ec2:launchtemplate": f"arn:aws:ec2:us-east-1:{OWN}:launch-template/lt-1",
    "ec2:islaunchtemplateresource": "true",
}


def test_a_launch_in_a_shared_subnet_requires_the_subnet_of_its_owner() -> None:
    backend = SimpleNamespace(subnets={"us-east-1a": {"subnet-1": SimpleNamespace(id="subnet-1", owner_id=OWNER)}})
    required = [one.resource for one in _launch(LAUNCH, {"SubnetId": "subnet-1"}, {}, backend)]
    assert [arn for arn in required if ":subnet/" in arn] == [f"arn:aws:ec2:us-east-1:{OWNER}:subnet/subnet-1"]


@pytest.mark.parametrize(
    ("account", "resource", "allowed"),
    [
        (OWN, "subnet/subnet-1", True),
        (OWNER, "subnet/subnet-1", True),
        (OWNER, "capacity-reservation/cr-1", True),
        (OWNER, "security-group/sg-1", False),
        (OWNER, "instance/*", False),
    ],
)
def test_the_head_launches_in_shared_subnets_and_reservations(account: str, resource: str, allowed: bool) -> None:
    arn = f"arn:aws:ec2:us-east-1:{account}:{resource}"
    required = RequiredAction(action="ec2:RunInstances", resource=arn, context=FROM_TEMPLATE)
    assert evaluate([head_policy(planned_arns(dev_cluster(), OWN))], (), required).allowed == allowed
