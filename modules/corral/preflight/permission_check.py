"""Whether the caller may make the calls of `corral up`, and the head its own, by IAM's simulations.

A simulation covers the policies and the boundary of a user or role, not those of an organization or a bucket's owner.
Source: IAM API reference, SimulatePrincipalPolicy, SimulateCustomPolicy. Each of the two takes about 20 requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from corral.plan.iam.api_permissions import Calls
from corral.plan.iam.deployer_calls import deployer_calls
from corral.plan.iam.deployer_policy import RECORD_NAMES_KEY
from corral.plan.iam.head_calls import head_calls, planned_arns
from corral.plan.iam.iam_policies import boundary_policy, head_policy
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="permissions")
_MAX_NAMES = 12  # names in one finding
UNKNOWN = frozenset({"InvalidInput", "NoSuchEntity"})  # IAM's codes for a principal that it cannot simulate
AT_ONCE = 4  # IAM allows a few simulations a second; boto3 retries throttled ones
_ACTIONS = 100  # of one request
_SESSION = re.compile(r"arn:(aws[\w-]*):sts::(\d{12}):assumed-role/([^/]+)/.+")
_MAY_NOT = frozenset({"AccessDenied", "AccessDeniedException"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """An action that is not allowed. `missing_keys`: condition keys whose values are unknown here."""

    action: str
    missing_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """IAM's simulation of one caller: how many actions, and which are denied. `refusal`: IAM's error code, or ""."""

    evaluated: int = 0
    denied: tuple[Denied, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionFacts:
    """`caller`: the ARN that was simulated."""

    caller: str
    deployer: Simulated
    head: Simulated


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> PermissionFacts:
    """One request for each set of resources, for the caller and for the planned head."""
    who = aws.call("sts", "get_caller_identity")
    account, caller = str(who["Account"]), _simulated_arn(aws, str(who["Arn"]))
    arns = planned_arns(request.cluster, account)
    policies = {
        "PolicyInputList": [json.dumps(head_policy(arns))],
        "PermissionsBoundaryPolicyInputList": [json.dumps(boundary_policy(arns.region))],
    }
    up = deployer_calls(request.base, request.cluster, account)
    return PermissionFacts(
        caller=caller,
        deployer=_simulated(aws, "simulate_principal_policy", {"PolicySourceArn": caller}, up),
        head=_simulated(aws, "simulate_custom_policy", policies, head_calls(arns)),
    )


def evaluate(request: PreflightRequest, facts: PermissionFacts) -> Iterator[PreflightFinding]:
    """The findings for the caller, then for the head."""
    yield from _deployer(request, facts)
    yield from _findings("head", "its policy as planned", facts.head, "report this as a bug: policy and agent differ")


def _deployer(request: PreflightRequest, facts: PermissionFacts) -> Iterator[PreflightFinding]:
    about, caller = "deployer", facts.caller
    if caller.endswith(":root"):
        text = f"{caller} is allowed everything; IAM does not simulate it"
        yield _FINDINGS.warn(about, text, "use a role or a user with corral's policies (docs/bootstrap.md)")
    elif facts.deployer.refusal in UNKNOWN and request.cluster.image.box:
        yield _FINDINGS.ok(about, f"{caller} is the box's user, which is allowed everything")
    elif facts.deployer.refusal in UNKNOWN:
        text = f"{caller} is not a user or role that IAM can simulate ({facts.deployer.refusal})"
        yield _FINDINGS.warn(about, text, "allow iam:GetRole on the role: a session's ARN lacks its path")
    else:
        attach = "attach the policies that `corral bootstrap` creates (docs/bootstrap.md)"
        yield from _findings(about, caller, facts.deployer, attach)


def _findings(about: str, who: str, simulated: Simulated, fix: str) -> Iterator[PreflightFinding]:
    if simulated.refusal:
        action = "iam:SimulateCustomPolicy" if about == "head" else "iam:SimulatePrincipalPolicy"
        text = "cannot be simulated: these credentials may not call IAM's simulation"
        yield _FINDINGS.warn(about, text, f"allow {action}, or add --skip permissions")
        return
    denied = [one.action for one in simulated.denied if not one.missing_keys]
    unsure = [one for one in simulated.denied if one.missing_keys]
    if denied:
        yield _FINDINGS.fail(about, f"{who} does not allow {_listed(denied)}", fix)
    if unsure:
        keys = _listed(sorted({key for one in unsure for key in one.missing_keys}))
        text = (
            f"{who} allows {_listed(one.action for one in unsure)} only by {keys}; its value is unknown"
            " before deployment"
        )
        yield _FINDINGS.warn(about, text, "check that these conditions admit corral's resources")
    if not simulated.denied:
        yield _FINDINGS.ok(about, f"{who} allows all {simulated.evaluated} required actions")


def _listed(names: Iterable[str]) -> str:
    each = sorted(set(names))
    more = f" and {len(each) - _MAX_NAMES} more" if len(each) > _MAX_NAMES else ""
    return ", ".join(each[:_MAX_NAMES]) + more


def _simulated_arn(aws: AwsQueryCache, arn: str) -> str:
    """The ARN to simulate: a session's role, whose path only IAM knows, or the caller itself."""
    session = _SESSION.fullmatch(arn)
    if session is None:
        return arn
    partition, account, name = session.groups()
    try:
        return str(aws.call("iam", "get_role", RoleName=name)["Role"]["Arn"])
    except ClientError:
        return f"arn:{partition}:iam::{account}:role/{name}"


def _simulated(aws: AwsQueryCache, action: str, about: Mapping[str, Any], calls: Iterable[Calls]) -> Simulated:
    parts = [
        (one, one.actions[start : start + _ACTIONS]) for one in calls for start in range(0, len(one.actions), _ACTIONS)
    ]
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = [
                result
                for found in pool.map(lambda part: _simulate(aws, action, about, *part), parts)
                for result in found
            ]
    except ClientError as error:
        code = str(error.response["Error"].get("Code", ""))
        if code in _MAY_NOT or code in UNKNOWN:
            return Simulated(refusal=code)
        raise
    denied = {one.action: one for result in results for one in _denials(result)}
    actions = {str(result["EvalActionName"]) for result in results}
    return Simulated(evaluated=len(actions), denied=tuple(denied[name] for name in sorted(denied)))


def _simulate(
    aws: AwsQueryCache, action: str, about: Mapping[str, Any], calls: Calls, names: tuple[str, ...]
) -> Iterable[Mapping[str, Any]]:
    context = [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": _type(key, value)}
        for key, value in sorted(calls.context.items())
    ]
    return aws.list_all(
        "iam",
        action,
        "EvaluationResults",
        **about,
        ActionNames=list(names),
        ResourceArns=list(calls.resources),
        ContextEntries=context,
    )


def _type(key: str, value: str) -> str:
    if key in (RECORD_NAMES_KEY, "kms:ResourceAliases"):
        return "stringList"  # a change has many names, a key many aliases
    return "boolean" if value in ("true", "false") else "string"


def _denials(result: Mapping[str, Any]) -> Iterator[Denied]:
    """The denials of one action, which is allowed only if it is on each of its resources."""
    each = result.get("ResourceSpecificResults") or [{**result, "EvalResourceDecision": result["EvalDecision"]}]
    for one in each:
        if one["EvalResourceDecision"] != "allowed":
            missing = tuple(one.get("MissingContextValues", ()))
            decided = one["EvalResourceDecision"] == "explicitDeny"
            yield Denied(action=str(result["EvalActionName"]), missing_keys=() if decided else missing)
