"""IAM authorization: `principals` finds the caller, `required_actions` the actions, `policy_evaluator` decides.

Calls with the keys of the account's owner or of a user are always allowed. A role's policies, its permissions
boundary and its session policy count; policies of buckets, keys, secrets and topics do not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from corral.box.access.policy_evaluator import Decision, RequiredAction, allows_assuming, evaluate
from corral.box.access.principals import Principal, UnknownKey, principal_of
from corral.box.access.required_actions import actions_required_by
from corral.box.account import ACCOUNT
from corral.box.api_calls import Call
from corral.box.api_errors import ApiError

# Error codes of denials. Source: the lists of common errors in each service's API reference.
_CODES = {"ec2": "UnauthorizedOperation", "sns": "AuthorizationError"}
_PLAIN = frozenset({"s3", "sts", "iam", "route53", "cloudwatch", "elasticfilesystem"})
# Unknown access keys. Source: EC2's and S3's lists of error codes, IAM's of common errors.
_UNKNOWN_KEY = {
    "ec2": ("AuthFailure", "AWS was not able to validate the provided access credentials", 401),
    "s3": ("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403),
    "": ("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
}
# A key whose policy the caller could not replace. Source: aws-samples/rds-snapshot-export-to-s3-pipeline#8.
_LOCKED_OUT = "The new key policy will not allow you to update the key policy in the future."
_ALWAYS = "sts:GetCallerIdentity"  # allowed under any policy. Source: STS API reference


def authenticate(call: Call) -> Principal | None:
    """The role's session that makes the call; None for the account's owner and users.

    Raises ApiError if the call has no access key, or one that nobody has.
    """
    if not call.caller:
        raise ApiError("MissingAuthenticationToken", "Request is missing Authentication Token", 403)
    try:
        return principal_of(call.caller)
    except UnknownKey:
        raise ApiError(*_UNKNOWN_KEY.get(call.service, _UNKNOWN_KEY[""])) from None


def authorize(who: Principal, environ: Mapping[str, Any], call: Call, body: bytes) -> None:
    """Raises ApiError if the role lacks permission for the call."""
    for required in actions_required_by(environ, call, body):
        if required.action == _ALWAYS:
            continue
        decision = evaluate(who.policies, who.limits, required)
        if decision.allowed and required.action == "sts:AssumeRole":
            decision = _trusted(who, required)
        if not decision.allowed and (call.action, required.action) == ("CreateKey", "kms:PutKeyPolicy"):
            raise ApiError("MalformedPolicyDocumentException", _LOCKED_OUT)
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
