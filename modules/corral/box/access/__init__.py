"""Whether a role may do what it calls: `judge` is the policy language, `principals` who calls, `wanted` what a call is.

Calls without a role's credentials are the account owner's, and are not judged. Only what a role's policies, its
boundary and the policy of its session say counts; policies of buckets, keys, secrets and topics are not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from corral.box.access.judge import Verdict, Wanted, judge, trusts
from corral.box.access.principals import Principal, principal_of
from corral.box.access.wanted import wanted_by
from corral.box.calls import Call
from corral.box.control import ACCOUNT
from corral.box.refusals import Refused

# How services say no. Source: the lists of common errors in each service's API reference.
_CODES = {"ec2": "UnauthorizedOperation", "sns": "AuthorizationError"}
_PLAIN = frozenset({"s3", "sts", "iam", "route53", "cloudwatch", "elasticfilesystem"})
_ALWAYS = "sts:GetCallerIdentity"  # whatever a policy says. Source: STS API reference


def check(environ: Mapping[str, Any], call: Call, body: bytes) -> None:
    """Raises Refused where a role calls what it may not."""
    who = principal_of(call.caller)
    if who is None:
        return
    for wanted in wanted_by(environ, call, body):
        if wanted.action == _ALWAYS:
            continue
        verdict = judge(who.policies, who.limits, wanted)
        if verdict.allowed and wanted.action == "sts:AssumeRole":
            verdict = _trusted(who, wanted)
        if not verdict.allowed:
            raise _refused(who, wanted, verdict, call)


def _trusted(who: Principal, wanted: Wanted) -> Verdict:
    from moto.iam.models import iam_backends

    roles = iam_backends[ACCOUNT]["aws"].roles.values()
    trust = next((role.assume_role_policy_document for role in roles if role.arn == wanted.resource), None)
    if trust is not None and trusts(json.loads(trust), who.role_arn, ACCOUNT):
        return Verdict(allowed=True, reason="")
    return Verdict(allowed=False, reason="because no resource-based policy allows the sts:AssumeRole action")


def _refused(who: Principal, wanted: Wanted, verdict: Verdict, call: Call) -> Refused:
    text = f"User: {who.arn} is not authorized to perform: {wanted.action} on resource: {wanted.resource}"
    code = _CODES.get(call.service, "AccessDenied" if call.service in _PLAIN else "AccessDeniedException")
    start = "You are not authorized to perform this operation. " if call.service == "ec2" else ""
    return Refused(code, f"{start}{text} {verdict.reason}")
