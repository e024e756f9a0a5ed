"""The service control policies of the account's organization, which the fault of that name sets. Hold the cloud's lock.

They limit every caller but service-linked roles, also the account's owner. Source: AWS Organizations User Guide,
"Service control policies (SCPs)" and "SCP evaluation". The box has one level of an organization: each policy must
allow an action. One with denials only stands next to AWS's FullAWSAccess, as most do; one that allows actions
replaces it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from corral.box.access.policy_evaluator import Decision, RequiredAction, evaluate
from corral.box.account import PARTITION
from corral.box.faults import store
from corral.box.faults.records import ServiceControlPolicy
from corral.model.access_denials import PolicyType

Limit = tuple[str, Mapping[str, Any]]
EVERYTHING: Mapping[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
_MANAGEMENT_ACCOUNT, _ORGANIZATION = "210987654321", "o-box0example"


def organization_limits() -> tuple[Limit, ...]:
    """The active policies, as limits of a policy evaluation."""
    return tuple((PolicyType.ORGANIZATION.value, _document(one.policy)) for one in _active())


def policy_arn(required: RequiredAction, decision: Decision) -> str:
    """The ARN of the policy that explicitly denies the action, if that decided; otherwise empty."""
    if not (decision.explicitly_denied and decision.reason.endswith(PolicyType.ORGANIZATION)):
        return ""
    return next((_arn(one) for one in _active() if _denies(one, required)), "")


def _active() -> tuple[ServiceControlPolicy, ...]:
    return tuple(one for one in store.faults() if isinstance(one, ServiceControlPolicy))


def _denies(policy: ServiceControlPolicy, required: RequiredAction) -> bool:
    limit = (PolicyType.ORGANIZATION.value, _document(policy.policy))
    return evaluate((EVERYTHING,), (limit,), required).explicitly_denied


@cache
def _document(text: str) -> Mapping[str, Any]:
    document = json.loads(text)
    statements = document["Statement"] if isinstance(document["Statement"], list) else [document["Statement"]]
    if all(one["Effect"] == "Deny" for one in statements):
        return {**document, "Statement": [*statements, *EVERYTHING["Statement"]]}
    return {**document, "Statement": statements}


def _arn(policy: ServiceControlPolicy) -> str:
    id = hashlib.sha256(policy.name.encode()).hexdigest()[:8]
    owner = f"arn:{PARTITION}:organizations::{_MANAGEMENT_ACCOUNT}:policy/{_ORGANIZATION}"
    return f"{owner}/service_control_policy/p-{id}"
