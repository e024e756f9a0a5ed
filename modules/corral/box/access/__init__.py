"""IAM authorization: `principals` finds the caller, `required_actions` the actions, `policy_evaluator` decides.

Calls with the keys of the account's owner or of a user are allowed, unless a service control policy denies them. A
role's policies, its permissions boundary, its session policy, service control policies and denials by buckets' policies
count; policies of keys, secrets and topics do not.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corral.box.access.bucket_policies import bucket_denial
from corral.box.access.linked_roles import MissingRole, may_create_role, missing_role
from corral.box.access.organization import Limit, organization_limits, policy_arn
from corral.box.access.policy_evaluator import Decision, RequiredAction, allows_assuming, evaluate
from corral.box.access.principals import Principal, UnknownKey, principal_of, user_of
from corral.box.access.required_actions import actions_required_by, call_fields
from corral.box.account import ACCOUNT
from corral.box.api_calls import Call
from corral.box.api_errors import ApiError
from corral.box.zones import disabled_regions

Limits = tuple[Limit, ...]
# Error codes of denials. Source: the lists of common errors in each service's API reference.
_CODES = {"ec2": "UnauthorizedOperation", "sns": "AuthorizationError"}
_PLAIN = frozenset({"s3", "sts", "iam", "route53", "cloudwatch", "elasticfilesystem"})
# Unknown access keys. Source: EC2's and S3's lists of error codes, IAM's of common errors.
_UNKNOWN_KEY = {
    "ec2": ("AuthFailure", "AWS was not able to validate the provided access credentials", 401),
    "s3": ("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403),
    "": ("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
    # For a disabled region. Source: ekristen/aws-nuke#774, aws/chalice#1445; for those above, turbot/
    # steampipe-plugin-aws#75 (EC2), remotion-dev/github-unwrapped-2022#34 (STS).
    "json": ("UnrecognizedClientException", "The security token included in the request is invalid", 403),
}
_QUERY = frozenset({"sts", "iam", "sns", "cloudwatch"})
# A key whose policy the caller could not replace. Source: aws-samples/rds-snapshot-export-to-s3-pipeline#8.
_LOCKED_OUT = "The new key policy will not allow you to update the key policy in the future."
_ALWAYS = "sts:GetCallerIdentity"  # allowed under any policy. Source: STS API reference


def authenticate(call: Call) -> Principal | None:
    """The role's session that makes the call; None for the account's owner and users.

    Raises ApiError if the call has no access key, or one that nobody has, or if the account has not enabled the region.
    """
    if not call.caller:
        raise ApiError("MissingAuthenticationToken", "Request is missing Authentication Token", 403)
    if call.region in disabled_regions():
        named = "" if call.service in _QUERY else "json"
        raise ApiError(*(_UNKNOWN_KEY.get(call.service) or _UNKNOWN_KEY[named]))
    try:
        return principal_of(call.caller)
    except UnknownKey:
        raise ApiError(*_UNKNOWN_KEY.get(call.service, _UNKNOWN_KEY[""])) from None


def authorize(who: Principal | None, environ: Mapping[str, Any], call: Call, body: bytes) -> None:
    """Raises ApiError if the caller lacks permission for the call. None: the account's owner or a user.

    A service whose first use this is also creates its service-linked role, with the caller's permission.
    """
    organization = organization_limits()
    if who is not None or organization:
        caller = who or user_of(call.caller)
        for required in actions_required_by(environ, call, body):
            if required.action == _ALWAYS:
                continue
            checked, decision = _decide(caller, organization, required)
            if decision.allowed and who is not None and required.action == "sts:AssumeRole":
                decision = _trusted(who, required)
            if not decision.allowed and (call.action, required.action) == ("CreateKey", "kms:PutKeyPolicy"):
                raise ApiError("MalformedPolicyDocumentException", _LOCKED_OUT)
            if not decision.allowed:
                raise _refused(caller, checked, decision, call)
    if may_create_role(call) and (role := missing_role(call, call_fields(environ, body))) is not None:
        _require_creatable(who or user_of(call.caller), organization, role, call)
        role.create()


def _require_creatable(who: Principal, organization: Limits, role: MissingRole, call: Call) -> None:
    required, decision = _decide(who, organization, role.required)
    if not decision.allowed:
        raise role.refusal or _refused(who, required, decision, call)


def _decide(who: Principal, organization: Limits, required: RequiredAction) -> tuple[RequiredAction, Decision]:
    """The action with the caller in its context, and whether it is allowed."""
    required = replace(required, context={"aws:principalarn": who.role_arn, **required.context})
    denial = bucket_denial(who.role_arn, required)
    return required, denial or evaluate(who.policies, (*organization, *who.limits), required)


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
    policy = policy_arn(required, decision)
    reason = f"{decision.reason}: {policy}" if policy else decision.reason
    end = f". Encoded authorization failure message: {_encoded(who, required, decision)}" if _encodes(call) else ""
    return ApiError(code, f"{start}{text} {reason}{end}")


def _encodes(call: Call) -> bool:
    """Whether the refusal has an encoded message: those of EC2 for calls that change something."""
    return call.service == "ec2" and call.changes


def _encoded(who: Principal, required: RequiredAction, decision: Decision) -> str:
    """What DecodeAuthorizationMessage answers, unreadable as AWS's."""
    details = {
        "allowed": False,
        "explicitDeny": decision.explicitly_denied,
        "matchedStatements": {"items": []},
        "context": {
            "principal": {"id": who.id, "arn": who.arn},
            "action": required.action,
            "resource": required.resource,
            "conditions": {"items": [{"key": key, "values": {"items": [{"value": value}]}}
                                     for key, value in sorted(required.context.items())]},
        },
    }  # fmt: skip
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(details).encode())).decode()


def decoded(message: str) -> str:
    """The details of an encoded message. Raises ApiError for another text."""
    try:
        return zlib.decompress(base64.urlsafe_b64decode(message)).decode()
    except (ValueError, zlib.error):
        raise ApiError("InvalidAuthorizationMessageException", "Message is not valid", 400) from None
