"""Service-linked roles, the boundary, and policies of deployers, readers, users and admins: to check and to create.

No step grants a permission: it creates the policies, and an administrator attaches them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from corral.engine.bootstrap.step import BOUNDARY, BootstrapTarget, Clients, Outdated, Step
from corral.model.partitions import linked_service
from corral.model.tags import STATE_TAG
from corral.plan.iam.access_policies import ACCESS
from corral.plan.iam.deployer_policy import POLICIES, Policy

MAX_VERSIONS = 5  # of a managed policy. Source: IAM User Guide, "IAM quotas"
# The role of each service, required before its first use by API. Sources: EC2 User Guide, "Service-linked role for
# Spot Instance requests"; user guides of FSx for Lustre, EFS and Elastic Load Balancing, "Using service-linked roles".
# FSx's second one, for S3 (s3.data-source.lustre.fsx), is missing here: FSx creates one for each file system.
SERVICES: Mapping[str, str] = {
    linked_service("spot"): "spot instances",
    linked_service("fsx"): "FSx for Lustre",
    linked_service("elasticfilesystem"): "EFS",
    linked_service("elasticloadbalancing"): "load balancers",
}


def iam_steps() -> tuple[Step, ...]:
    """A step for each service-linked role, then one for each policy."""
    roles = (_service_step(name, use) for name, use in SERVICES.items())
    return (*roles, *(_policy_step(topic) for topic in (BOUNDARY, *POLICIES, *ACCESS)))


def _service_step(service: str, use: str) -> Step:
    def look(client: Clients, target: BootstrapTarget) -> bool:
        return bool(client("iam").list_roles(PathPrefix=f"/aws-service-role/{service}/")["Roles"])

    def make(client: Clients, target: BootstrapTarget) -> bool:
        iam = client("iam")
        try:
            iam.create_service_linked_role(AWSServiceName=service)
        except iam.exceptions.InvalidInputException as error:
            if "has been taken" not in str(error):
                raise
            return False
        return True

    return Step(
        key=service, description=f"service-linked role of {use} ({service})", service="iam", exists=look, create=make
    )


def _policy_step(topic: str) -> Step:
    def look(client: Clients, target: BootstrapTarget) -> bool:
        return _has_policy(client, target.policy_arn(topic), target.policies[topic])

    def make(client: Clients, target: BootstrapTarget) -> bool:
        return _create_policy(client, target, topic)

    what = f"policy {{policies[{topic}]}}"
    return Step(key=f"policy-{topic}", description=what, service="iam", exists=look, create=make)


def _has_policy(client: Clients, arn: str, policy: Policy) -> bool:
    """True if the policy is current. Raises Outdated if its default version differs."""
    iam = client("iam")
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    found = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    if found != policy.document:
        raise Outdated(f"its version {version} differs and stays as an older version")
    return True


def create_boundary(client: Clients, target: BootstrapTarget) -> bool:
    """Creates the boundary of the region's roles, or updates it; False if it is current."""
    return _create_policy(client, target, BOUNDARY)


def _create_policy(client: Clients, target: BootstrapTarget, topic: str) -> bool:
    iam, policy, arn = client("iam"), target.policies[topic], target.policy_arn(topic)
    text = json.dumps(policy.document, separators=(",", ":"))
    tags = [{"Key": STATE_TAG, "Value": target.name}]
    try:
        iam.create_policy(PolicyName=policy.name, Path=policy.path, PolicyDocument=text, Tags=tags)
        return True
    except iam.exceptions.EntityAlreadyExistsException:
        return _update_policy(iam, arn, policy, text)


def _update_policy(iam: Any, arn: str, policy: Policy, text: str) -> bool:
    """Makes the text the default version of an existing policy; deletes the oldest other version at AWS's limit.

    False if another process just did the same.
    """
    try:
        return not _has_policy(lambda _: iam, arn, policy)
    except Outdated:
        versions = iam.list_policy_versions(PolicyArn=arn)["Versions"]
    older = sorted((one for one in versions if not one["IsDefaultVersion"]), key=lambda one: int(one["VersionId"][1:]))
    if len(versions) >= MAX_VERSIONS:
        iam.delete_policy_version(PolicyArn=arn, VersionId=older[0]["VersionId"])
    iam.create_policy_version(PolicyArn=arn, PolicyDocument=text, SetAsDefault=True)
    return True
