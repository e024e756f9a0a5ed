"""A call that a thief makes, and who may make it.

Each names the action and the resource that decide, as the Service Authorization Reference has them, and the condition
keys that AWS would send besides the region: written by hand, not asked of the box.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from stolen_account import ADMIN, ADMINISTRATOR, BOOTSTRAPPER, NEAR, OWN, TEAM, THEIRS, Names

from corral.box.account import ACCOUNT, REGION
from corral.plan.iam.iam_policies import document, trust_roles

Run = Callable[[Names], Any]
Tags = Mapping[str, str]
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
IAM = f"arn:aws:iam::{ACCOUNT}"
KMS = f"arn:aws:kms:{REGION}:{ACCOUNT}"
SSM = f"arn:aws:ssm:{REGION}:{ACCOUNT}"
LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
APS = f"arn:aws:aps:{REGION}:{ACCOUNT}:workspace"
SNS = f"arn:aws:sns:{REGION}:{ACCOUNT}"
ALARM = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm"
EFS = f"arn:aws:elasticfilesystem:{REGION}:{ACCOUNT}:file-system"
FSX = f"arn:aws:fsx:{REGION}:{ACCOUNT}:file-system"
ZONE = "arn:aws:route53:::hostedzone/{zone}"
BOUNDARY = f"{IAM}:policy/corral/guards-boundary-{REGION}"
READERS = ("reader", "user", ADMIN, "deployer")
DEPLOYER = ("deployer",)
BOOTSTRAP = (BOOTSTRAPPER,)
OWNERS = (TEAM,)
HEAD = ("near-head", "deployer")
NOBODY: tuple[str, ...] = ()
ADMINISTRATOR_ACCESS = "arn:aws:iam::aws:policy/AdministratorAccess"
POLICY = json.dumps(document([{"Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*"}]))
TRUST = json.dumps(trust_roles(["*"]))
NO_TAGS: Tags = MappingProxyType({})
BASE_TAGS: Tags = MappingProxyType({"corral:base": "dev"})
CLUSTER_TAGS: Tags = MappingProxyType({**BASE_TAGS, "corral:cluster": NEAR})
# The prefixes of the keys of a resource's tags, by service; those of other services are aws alone.
_TAG_PREFIXES = {"ec2": ("aws:ResourceTag", "ec2:ResourceTag"), "ssm": ("aws:ResourceTag", "ssm:resourceTag")}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StolenCall:
    """A call on the resources of `owner`. `may`: the roles of corral that may make it, or the team that owns them."""

    owner: str
    action: str
    resource: str
    run: Run
    may: frozenset[str]
    keys: Mapping[str, str]

    @property
    def title(self) -> str:
        """What the call does to whose resource."""
        return f"{self.action} {self.resource} of {self.owner}"

    @property
    def controls(self) -> tuple[str, ...]:
        """Who makes the call to show that others are refused because they may not; an administrator if nobody may."""
        return tuple(sorted(self.may)) or (ADMINISTRATOR,)


def call(
    owner: str,
    action: str,
    resource: str,
    run: Run,
    may: tuple[str, ...] = NOBODY,
    tags: Tags = NO_TAGS,
    keys: Mapping[str, str] = NO_TAGS,
) -> StolenCall:
    """A call on the owner's resource with these tags, and with other condition keys."""
    prefixes = _TAG_PREFIXES.get(action.partition(":")[0], ("aws:ResourceTag",))
    tagged = {f"{prefix}/{key}": value for prefix in prefixes for key, value in tags.items()}
    return StolenCall(
        owner=owner, action=action, resource=resource, run=run, may=frozenset(may), keys={**tagged, **keys}
    )


near, own = partial(call, NEAR), partial(call, OWN)


def theirs(
    action: str, resource: str, run: Run, may: tuple[str, ...] = OWNERS, keys: Mapping[str, str] = NO_TAGS
) -> StolenCall:
    """A call on the resources of somebody else, who may make it."""
    return call(THEIRS, action, resource, run, may, keys=keys)


def both(
    action: str,
    resource: str,
    run: Run,
    may: tuple[str, ...] = DEPLOYER,
    tags: Tags = CLUSTER_TAGS,
    may_theirs: tuple[str, ...] = OWNERS,
) -> Iterator[StolenCall]:
    """On the neighbour's resource, with its tags, and on somebody else's, which hardly any role of corral may."""
    yield near(action, resource, run, may, tags)
    yield theirs(action, resource, run, may_theirs)
