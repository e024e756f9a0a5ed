"""A step that prepares an account, and the target of all steps. The modules `..._steps` have the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from corral.model.partitions import partition_of
from corral.plan.iam.access_policies import ACCESS, access_policies
from corral.plan.iam.deployer_policy import POLICIES, Policy, deployer_policies
from corral.plan.iam.iam_policies import IAM_PATH, boundary_name, boundary_policy

BOUNDARY = "boundary"  # the topic of the boundary's policy
Clients = Callable[[str], Any]  # a boto3 client of the account and region, by service


class Blocked(Exception):
    """The resource exists and cannot be used; the text says how to fix it."""


class Outdated(Exception):
    """The resource exists and must change; the text says how it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapTarget:
    """The account and region to prepare. `name`: prefix of the bucket's name, and alias of the key."""

    account: str
    region: str
    name: str = "corral-state"

    @property
    def bucket(self) -> str:
        """The bucket's name, unique across accounts."""
        return f"{self.name}-{self.account}-{self.region}"

    @property
    def alias(self) -> str:
        """The key's alias, as KMS spells it."""
        return f"alias/{self.name}"

    @property
    def backend_url(self) -> str:
        """The value for PULUMI_BACKEND_URL."""
        return f"s3://{self.bucket}?region={self.region}"

    @property
    def secrets_provider(self) -> str:
        """The value for `secretsprovider` in a stack file."""
        return f"awskms://{self.alias}?region={self.region}"

    @property
    def policies(self) -> Mapping[str, Policy]:
        """The policies by topic: the boundary of all roles, those of a deployer, then of a reader, a user and an admin.

        The boundary has the same name and content for every state backend of the region.
        """
        limit = Policy(
            name=boundary_name(self.region), document=boundary_policy(self.region, self.account), path=IAM_PATH
        )
        deployers = deployer_policies(account=self.account, region=self.region, alias=self.alias, bucket=self.bucket)
        others = access_policies(account=self.account, region=self.region, alias=self.alias)
        return {BOUNDARY: limit, **dict(zip((*POLICIES, *ACCESS), (*deployers, *others), strict=True))}

    def policy_arn(self, topic: str) -> str:
        """The ARN of the policy of this topic."""
        policy = self.policies[topic]
        return f"arn:{partition_of(self.region).name}:iam::{self.account}:policy{policy.path}{policy.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`exists`: is the step done? `create`: does it; False if another process just did. `needs`: an earlier step.

    `exists` raises Outdated for what `create` changes, Blocked for what it cannot fix.
    """

    key: str
    description: str
    service: str
    exists: Callable[[Clients, BootstrapTarget], bool]
    create: Callable[[Clients, BootstrapTarget], bool]
    needs: str | None = None

    def title(self, target: BootstrapTarget) -> str:
        """The description with the names of this target."""
        names = {topic: policy.name for topic, policy in target.policies.items()}
        return self.description.format(bucket=target.bucket, alias=target.alias, policies=names)
