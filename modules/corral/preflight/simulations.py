"""What IAM's simulations say of who asks and of the head as it is planned: some twenty requests for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from corral.plan.access import boundary_policy, head_policy
from corral.plan.calls import Calls
from corral.plan.deployer import OWN_NAMES
from corral.plan.deployer_calls import deployer_calls
from corral.plan.head_calls import head_calls, planned_arns
from corral.preflight.answers import Answers
from corral.preflight.findings import Wanted
from corral.preflight.permissions import UNKNOWN, Denied, Facts, Simulated

AT_ONCE = 4  # IAM answers some simulations a second; boto3 repeats what is throttled
_ACTIONS = 100  # of one request
_SESSION = re.compile(r"arn:(aws[\w-]*):sts::(\d{12}):assumed-role/([^/]+)/.+")
_MAY_NOT = frozenset({"AccessDenied", "AccessDeniedException"})


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """A request for each set of things that calls are about, for who asks and for the head that is planned."""
    who = answers.ask("sts", "get_caller_identity")
    account, caller = str(who["Account"]), _simulated_arn(answers, str(who["Arn"]))
    arns = planned_arns(wanted.cluster, account)
    policies = {
        "PolicyInputList": [json.dumps(head_policy(arns))],
        "PermissionsBoundaryPolicyInputList": [json.dumps(boundary_policy(arns.region))],
    }
    up = deployer_calls(wanted.base, wanted.cluster, account)
    return Facts(
        caller=caller,
        deployer=_simulated(answers, "simulate_principal_policy", {"PolicySourceArn": caller}, up),
        head=_simulated(answers, "simulate_custom_policy", policies, head_calls(arns)),
    )


def _simulated_arn(answers: Answers, arn: str) -> str:
    """The ARN of a session's role, whose path only IAM knows; of anybody else their own."""
    session = _SESSION.fullmatch(arn)
    if session is None:
        return arn
    partition, account, name = session.groups()
    try:
        return str(answers.ask("iam", "get_role", RoleName=name)["Role"]["Arn"])
    except ClientError:
        return f"arn:{partition}:iam::{account}:role/{name}"


def _simulated(answers: Answers, action: str, about: Mapping[str, Any], calls: Iterable[Calls]) -> Simulated:
    parts = [
        (one, one.actions[start : start + _ACTIONS]) for one in calls for start in range(0, len(one.actions), _ACTIONS)
    ]
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = [
                result
                for found in pool.map(lambda part: _asked(answers, action, about, *part), parts)
                for result in found
            ]
    except ClientError as error:
        code = str(error.response["Error"].get("Code", ""))
        if code in _MAY_NOT or code in UNKNOWN:
            return Simulated(refusal=code)
        raise
    denied = {one.action: one for result in results for one in _denials(result)}
    actions = {str(result["EvalActionName"]) for result in results}
    return Simulated(asked=len(actions), denied=tuple(denied[name] for name in sorted(denied)))


def _asked(
    answers: Answers, action: str, about: Mapping[str, Any], calls: Calls, names: tuple[str, ...]
) -> Iterable[Mapping[str, Any]]:
    context = [
        {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": _type(key, value)}
        for key, value in sorted(calls.context.items())
    ]
    return answers.every(
        "iam",
        action,
        "EvaluationResults",
        **about,
        ActionNames=list(names),
        ResourceArns=list(calls.resources),
        ContextEntries=context,
    )


def _type(key: str, value: str) -> str:
    if key in (OWN_NAMES, "kms:ResourceAliases"):
        return "stringList"  # a change has many names, a key many aliases
    return "boolean" if value in ("true", "false") else "string"


def _denials(result: Mapping[str, Any]) -> Iterator[Denied]:
    """An action is allowed where it is so on each of its resources."""
    each = result.get("ResourceSpecificResults") or [{**result, "EvalResourceDecision": result["EvalDecision"]}]
    for one in each:
        if one["EvalResourceDecision"] != "allowed":
            lacking = tuple(one.get("MissingContextValues", ()))
            decided = one["EvalResourceDecision"] == "explicitDeny"
            yield Denied(action=str(result["EvalActionName"]), lacking=() if decided else lacking)
