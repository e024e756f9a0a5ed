"""A role in the box with exactly the policies that `corral bootstrap` creates for deployers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from corral.box.account import ACCOUNT, REGION
from corral.plan.iam.deployer_policy import Policy, deployer_policies
from corral.plan.iam.iam_policies import trust_roles

DEPLOYER = "deployer"


def create_deployer(iam: Any, region: str = REGION, policies: Sequence[Policy] | None = None) -> None:
    """Create the role that anybody of the account may assume. `policies`: others than those of this region."""
    trust = json.dumps(trust_roles([f"arn:aws:iam::{ACCOUNT}:root"]))
    iam.create_role(RoleName=DEPLOYER, AssumeRolePolicyDocument=trust)
    existing = {one["Path"] for one in iam.list_roles(PathPrefix="/aws-service-role/")["Roles"]}
    for service in ("spot.amazonaws.com", "fsx.amazonaws.com", "elasticfilesystem.amazonaws.com"):
        if f"/aws-service-role/{service}/" not in existing:  # as `corral bootstrap` does
            iam.create_service_linked_role(AWSServiceName=service)
    for policy in deployer_policies(account=ACCOUNT, region=region) if policies is None else policies:
        made = iam.create_policy(PolicyName=policy.name, PolicyDocument=json.dumps(policy.document))
        iam.attach_role_policy(RoleName=DEPLOYER, PolicyArn=made["Policy"]["Arn"])
