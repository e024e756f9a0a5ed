"""Whether the caller may make the calls of `corral up`, and the head its own, by IAM's simulations.

A simulation of a principal covers its policies, its boundary and the organization's service control policies "including
their condition keys and resource scoping"; not those of a session, a bucket, a key or a VPC endpoint. That of the
planned head has no principal yet: the organization's decision on its calls is the caller's.
Source: IAM API reference, SimulatePrincipalPolicy, SimulateCustomPolicy. Each of the two takes about 20 requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError

from corral.model.access_denials import ADVICE, AccessDenial, PolicyType
from corral.model.cluster import QueuePlan
from corral.model.enums import Market
from corral.model.partitions import partition_of
from corral.plan.iam.api_permissions import Calls
from corral.plan.iam.deployer_calls import deployer_calls
from corral.plan.iam.head_calls import REGION, head_calls, planned_arns
from corral.plan.iam.iam_policies import RECORD_NAMES_KEY, VPCS_KEY, ClusterArns, boundary_policy, head_policy
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="permissions")
_ORGANIZATION = PolicyType.ORGANIZATION
_EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
_MAX_NAMES = 12  # names in one finding
UNKNOWN = frozenset({"InvalidInput", "NoSuchEntity"})  # IAM's codes for a principal that it cannot simulate
AT_ONCE = 4  # IAM allows a few simulations a second; boto3 retries throttled ones
_ACTIONS = 100  # of one request
_SESSION = re.compile(r"arn:(aws[\w-]*):sts::(\d{12}):assumed-role/([^/]+)/.+")
_MAY_NOT = frozenset({"AccessDenied", "AccessDeniedException"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """An action that is not allowed. `missing_keys`: condition keys whose values are unknown here.

    `policy_type`: what does not allow it: an organization's policy, the boundary, or the caller's own policies.
    """

    action: str
    missing_keys: tuple[str, ...] = ()
    policy_type: PolicyType = PolicyType.IDENTITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """IAM's simulation of one caller: how many actions, and which are denied. `refusal`: IAM's error code, or ""."""

    evaluated: int = 0
    denied: tuple[Denied, ...] = ()
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionFacts:
    """`caller`: the ARN that was simulated; `boundary`: the ARN of its permissions boundary, or "".

    `head_limits`: the organization's decision on the head's calls. `denied_launches`: the instance types and markets
    that it denies.
    """

    caller: str
    deployer: Simulated
    head: Simulated
    boundary: str = ""
    head_limits: Simulated = Simulated()
    denied_launches: frozenset[tuple[str, Market]] = frozenset()


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> PermissionFacts:
    """One request for each set of resources, for the caller and for the planned head; then for each kind of launch."""
    who = aws.call("sts", "get_caller_identity")
    account = str(who["Account"])
    caller, boundary = _simulated_principal(aws, str(who["Arn"]))
    arns = planned_arns(request.cluster, account)
    policies = {
        "PolicyInputList": [json.dumps(head_policy(arns))],
        "PermissionsBoundaryPolicyInputList": [json.dumps(boundary_policy(arns.region, account))],
    }
    up = deployer_calls(request.base, request.cluster, account)
    deployer = _simulated(aws, "simulate_principal_policy", {"PolicySourceArn": caller}, up)
    calls = head_calls(arns)
    return PermissionFacts(
        caller=caller,
        boundary=boundary,
        deployer=deployer,
        head=_simulated(aws, "simulate_custom_policy", policies, calls),
        head_limits=Simulated() if deployer.refusal else _by_organization(aws, caller, _on_everything(calls)),
        denied_launches=frozenset() if deployer.refusal else _denied_launches(aws, caller, request, arns),
    )


def evaluate(request: PreflightRequest, facts: PermissionFacts) -> Iterator[PreflightFinding]:
    """The findings for the caller, for the head, then for the queues whose launches the organization denies."""
    yield from _deployer(request, facts)
    if denied := facts.head_limits.denied:
        yield _limited("head", AccessDenial(action=_listed(one.action for one in denied), policy_type=_ORGANIZATION))
    else:
        fix = "report this as a bug: policy and agent differ"
        yield from _findings("head", "its policy as planned", facts.head, fix)
    for queue in request.cluster.queues:
        yield from _queue(queue, facts.denied_launches)


def caller_may(aws: AwsQueryCache, calls: Calls) -> bool | None:
    """Whether the caller may make these calls; None if IAM does not say."""
    caller, _ = _simulated_principal(aws, str(aws.call("sts", "get_caller_identity")["Arn"]))
    found = _simulated(aws, "simulate_principal_policy", {"PolicySourceArn": caller}, [calls])
    return None if found.refusal else not found.denied


def _deployer(request: PreflightRequest, facts: PermissionFacts) -> Iterator[PreflightFinding]:
    about, caller, simulated = "deployer", facts.caller, facts.deployer
    if caller.endswith(":root"):
        text = f"{caller} is allowed everything; IAM does not simulate it"
        yield _FINDINGS.warn(about, text, "use a role or a user with corral's policies (docs/bootstrap.md)")
    elif simulated.refusal in UNKNOWN:
        text = f"{caller} is not a user or role that IAM can simulate ({simulated.refusal})"
        yield _FINDINGS.warn(about, text, "allow iam:GetRole on the role: a session's ARN lacks its path")
    else:
        for kind, policy in ((_ORGANIZATION, ""), (PolicyType.BOUNDARY, facts.boundary)):
            if actions := [one.action for one in simulated.denied if one.policy_type is kind and not one.missing_keys]:
                yield _limited(about, AccessDenial(action=_listed(actions), policy_type=kind, caller=caller), policy)
        own = tuple(one for one in simulated.denied if one.policy_type is PolicyType.IDENTITY or one.missing_keys)
        if own or not simulated.denied:
            yield from _findings(about, caller, replace(simulated, denied=own), ADVICE[PolicyType.IDENTITY])


def _limited(about: str, denial: AccessDenial, policy: str = "") -> PreflightFinding:
    named = f" ({policy})" if policy else ""
    return _FINDINGS.fail(about, f"{denial.cause}{named}", ADVICE[denial.policy_type])


def _queue(queue: QueuePlan, denied: frozenset[tuple[str, Market]]) -> Iterator[PreflightFinding]:
    """A finding for a queue whose launches the organization denies: all of them, or those of some markets."""
    markets = list(dict.fromkeys(offer.market for offer in queue.offers))
    found = [market for market in markets if (queue.instance_type, market) in denied]
    if not found:
        return
    what = f"ec2:RunInstances of {queue.instance_type} ({', '.join(found)})"
    denial = AccessDenial(action=what, policy_type=_ORGANIZATION)
    if found == markets:
        yield _limited(f"queue {queue.name}", denial)
    else:
        yield _FINDINGS.warn(f"queue {queue.name}", denial.cause, ADVICE[_ORGANIZATION])


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


def _simulated_principal(aws: AwsQueryCache, arn: str) -> tuple[str, str]:
    """The ARN to simulate, and that of its boundary: a session's role, whose path only IAM knows, or the caller."""
    session = _SESSION.fullmatch(arn)
    if session is None:
        return arn, ""
    partition, account, name = session.groups()
    try:
        role = aws.call("iam", "get_role", RoleName=name)["Role"]
    except ClientError:
        return f"arn:{partition}:iam::{account}:role/{name}", ""
    return str(role["Arn"]), _boundary_of(role)


def _boundary_of(holder: Mapping[str, Any]) -> str:
    return str((holder.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn", ""))


def _on_everything(calls: Iterable[Calls]) -> Iterator[Calls]:
    """The actions on all resources, by region: what denies a service or a region denies them there, too."""
    actions: dict[str, list[str]] = {}
    for one in calls:
        actions.setdefault(one.context[REGION], []).extend(one.actions)
    for region, names in actions.items():
        yield Calls(actions=tuple(dict.fromkeys(names)), context={REGION: region})


def _by_organization(aws: AwsQueryCache, caller: str, calls: Iterable[Calls]) -> Simulated:
    """What the organization denies of these calls, which no policy of the caller allows."""
    about = {"PolicySourceArn": caller, "PolicyInputList": [json.dumps(_EVERYTHING)]}
    found = _simulated(aws, "simulate_principal_policy", about, calls)
    return replace(found, denied=tuple(one for one in found.denied if one.policy_type is _ORGANIZATION))


def _denied_launches(
    aws: AwsQueryCache, caller: str, request: PreflightRequest, arns: ClusterArns
) -> frozenset[tuple[str, Market]]:
    """The instance types and markets of queues whose launches the organization denies.

    Condition keys: Service Authorization Reference, Amazon EC2, RunInstances on `instance`.
    """
    instance = f"arn:{partition_of(arns.region).name}:ec2:{arns.region}:{arns.account}:instance/*"
    kinds = {(queue.instance_type, offer.market) for queue in request.cluster.queues for offer in queue.offers}

    def is_denied(kind: tuple[str, Market]) -> bool:
        type, market = kind
        context = {REGION: arns.region, "ec2:InstanceType": type, "ec2:InstanceMarketType": market.usage_class}
        launch = Calls(actions=("ec2:RunInstances",), resources=(instance,), context=context)
        return bool(_by_organization(aws, caller, [launch]).denied)

    return frozenset(kind for kind in sorted(kinds) if is_denied(kind))


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
    if key in (RECORD_NAMES_KEY, VPCS_KEY, "kms:ResourceAliases"):
        return "stringList"  # a change has many names, a zone many VPCs, a key many aliases
    return "boolean" if value in ("true", "false") else "string"


def _denials(result: Mapping[str, Any]) -> Iterator[Denied]:
    """The denials of one action, which is allowed only if it is on each of its resources."""
    each = result.get("ResourceSpecificResults") or [{**result, "EvalResourceDecision": result["EvalDecision"]}]
    for one in each:
        if one["EvalResourceDecision"] != "allowed":
            missing = tuple(one.get("MissingContextValues", ()))
            decided = one["EvalResourceDecision"] == "explicitDeny"
            yield Denied(
                action=str(result["EvalActionName"]),
                missing_keys=() if decided else missing,
                policy_type=_denying(result, one),
            )


def _denying(result: Mapping[str, Any], one: Mapping[str, Any]) -> PolicyType:
    """What denies the action on one resource. IAM reports the organization's decision for all resources together."""
    if not result.get("OrganizationsDecisionDetail", {}).get("AllowedByOrganizations", True):
        return _ORGANIZATION
    detail = one.get("PermissionsBoundaryDecisionDetail") or result.get("PermissionsBoundaryDecisionDetail") or {}
    return PolicyType.IDENTITY if detail.get("AllowedByPermissionsBoundary", True) else PolicyType.BOUNDARY
