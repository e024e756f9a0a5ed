"""EC2's launch errors as an event and the reason of a node show them."""

from __future__ import annotations

import pytest

from corral.agent.cluster.launch_errors import summarize

MAY_NOT = (
    "UnauthorizedOperation: You are not authorized to perform this operation. User:"
    " arn:aws:sts::123456789012:assumed-role/head/i-1 is not authorized to perform: ec2:RunInstances on resource:"
    " arn:aws:ec2:us-east-1:123456789012:instance/*"
)


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        (
            f"{MAY_NOT} with an explicit deny in a service control policy",
            "UnauthorizedOperation (service control policy)",
        ),
        (f"{MAY_NOT} because no identity-based policy allows the ec2:RunInstances action", "UnauthorizedOperation"),
        ("InsufficientInstanceCapacity: There is no Spot capacity.", "InsufficientInstanceCapacity"),
        ("ended by EC2", "ended by EC2"),
    ],
)
def test_a_refusal_is_shown_by_its_code_and_the_policy_of_others(why: str, shown: str) -> None:
    assert summarize(why) == shown
