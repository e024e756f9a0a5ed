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
    """Create the role that anybody of the account may assume. `policies`: others than those of this region.

    What `corral bootstrap` has created is used.
    """
    trust = json.dumps(trust_roles([f"arn:aws:iam::{ACCOUNT}:root"]))
    iam.create_role(RoleName=DEPLOYER, AssumeRolePolicyDocument=trust)
    iam.get_waiter("role_exists").wait(RoleName=DEPLOYER, WaiterConfig={"Delay": 1})
    existing = {one["Path"] for one in iam.list_roles(PathPrefix="/aws-service-role/")["Roles"]}
    for name in ("spot", "fsx", "elasticfilesystem", "elasticloadbalancing"):
        service = f"{name}.amazonaws.com"
        if f"/aws-service-role/{service}/" not in existing:  # as `corral bootstrap` does
            iam.create_service_linked_role(AWSServiceName=service)
    arns = {one["PolicyName"]: one["Arn"] for one in iam.list_policies(Scope="Local")["Policies"]}
    for policy in deployer_policies(account=ACCOUNT, region=region) if policies is None else policies:
        if policy.name not in arns:
            made = iam.create_policy(PolicyName=policy.name, PolicyDocument=json.dumps(policy.document))
            arns[policy.name] = made["Policy"]["Arn"]
        iam.attach_role_policy(RoleName=DEPLOYER, PolicyArn=arns[policy.name])
