"""The cluster's roles: head, compute and job, and with login nodes login and people. Each has one inline policy and the
region's boundary.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.cluster import ClusterPlan
from corral.model.partitions import service_principal
from corral.plan.iam.iam_policies import IAM_PATH, boundary_arn, trust_roles, trust_service


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityArgs:
    """`account`: who owns the roles."""

    plan: ClusterPlan
    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRoles:
    """The roles of login nodes. `people`: what the job role is for jobs; a job role that trusts one role more would be
    replaced under running jobs. `profile`: that of `login`.
    """

    login: aws.iam.Role
    people: aws.iam.Role
    profile: aws.iam.InstanceProfile


class Identity(Component):
    """Roles and instance profiles. `grant` adds their policies, which refer to later resources."""

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Identity", name, f"corral-{args.plan.name}", opts)
        self._boundary = boundary_arn(args.plan.region, args.account)
        machine = json.dumps(trust_service(service_principal("ec2", args.plan.region)))
        self.head = self._role("head", machine)
        self.compute = self._role("compute", machine)
        trusted = pulumi.Output.all(self.head.arn, self.compute.arn)
        self.job = self._role("job", trusted.apply(lambda arns: json.dumps(trust_roles(arns))))
        self.head_profile = self._profile("head", self.head)
        self.compute_profile = self._profile("compute", self.compute)
        self.login = self._login(machine) if args.plan.login else None
        self.register_outputs({"head": self.head.arn, "compute": self.compute.arn, "job": self.job.arn})

    def _login(self, machine: str) -> LoginRoles:
        login = self._role("login", machine)
        people = self._role("people", login.arn.apply(lambda arn: json.dumps(trust_roles([arn]))))
        return LoginRoles(login=login, people=people, profile=self._profile("login", login))

    def grant(self, key: str, role: aws.iam.Role, policy: pulumi.Input[Mapping[str, Any]]) -> aws.iam.RolePolicy:
        """Attach the role's inline policy; it is deleted with the role."""
        text = pulumi.Output.from_input(policy).apply(json.dumps)
        return aws.iam.RolePolicy(self.child(f"{key}-policy"), role=role.name, policy=text, opts=self.child_options())

    def _role(self, key: str, trust: pulumi.Input[str]) -> aws.iam.Role:
        return aws.iam.Role(
            self.child(key),
            path=IAM_PATH,
            assume_role_policy=trust,
            permissions_boundary=self._boundary,
            tags=self.tags(key),
            # Deployers may not rewrite whom a role trusts.
            opts=self.child_options(replace_on_changes=["assumeRolePolicy"]),
        )

    def _profile(self, key: str, role: aws.iam.Role) -> aws.iam.InstanceProfile:
        return aws.iam.InstanceProfile(
            self.child(f"{key}-profile"),
            path=IAM_PATH,
            role=role.name,
            tags=self.tags(key),
            opts=self.child_options(),
        )
