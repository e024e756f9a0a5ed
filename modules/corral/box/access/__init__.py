"""IAM authorization: `principals` finds the caller, `required_actions` the actions, `policy_evaluator` decides.

Calls without a role's credentials are the account owner's and always allowed. A role's policies, its permissions
boundary and its session policy count; policies of buckets, keys, secrets and topics do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from corral.box.access.policy_evaluator import Decision, RequiredAction, allows_assuming, evaluate
from corral.box.access.principals import Principal, principal_of
from corral.box.access.required_actions import actions_required_by
from corral.box.account import ACCOUNT
from corral.box.api_calls import Call
from corral.box.api_errors import ApiError

# Error codes of denials. Source: the lists of common errors in each service's API reference.
_CODES = {"ec2": "UnauthorizedOperation", "sns": "AuthorizationError"}
_PLAIN = frozenset({"s3", "sts", "iam", "route53", "cloudwatch", "elasticfilesystem"})
_ALWAYS = "sts:GetCallerIdentity"  # allowed under any policy. Source: STS API reference


def authorize(environ: Mapping[str, Any], call: Call, body: bytes) -> None:
    """Raises ApiError if the call has a role's credentials and the role lacks permission."""
    who = principal_of(call.caller)
    if who is None:
        return
    for required in actions_required_by(environ, call, body):
        if required.action == _ALWAYS:
            continue
        decision = evaluate(who.policies, who.limits, required)
        if decision.allowed and required.action == "sts:AssumeRole":
            decision = _trusted(who, required)
        if not decision.allowed:
            raise _refused(who, required, decision, call)


def _trusted(who: Principal, required: RequiredAction) -> Decision:
    from moto.iam.models import iam_backends

    roles = iam_backends[ACCOUNT]["aws"].roles.values()
    trust = next((role.assume_role_policy_document for role in roles if role.arn == required.resource), None)
    if trust is not None and allows_assuming(json.loads(trust), who.role_arn, ACCOUNT):
        return Decision(allowed=True, reason="")
    return Decision(allowed=False, reason="because no resource-based policy allows the sts:AssumeRole action")


def _refused(who: Principal, required: RequiredAction, decision: Decision, call: Call) -> ApiError:
    text = f"User: {who.arn} is not authorized to perform: {required.action} on resource: {required.resource}"
    code = _CODES.get(call.service, "AccessDenied" if call.service in _PLAIN else "AccessDeniedException")
    start = "You are not authorized to perform this operation. " if call.service == "ec2" else ""
    return ApiError(code, f"{start}{text} {decision.reason}")
