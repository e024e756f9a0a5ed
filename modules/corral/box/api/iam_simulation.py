"""SimulatePrincipalPolicy and SimulateCustomPolicy, answered by the box's policy evaluator.

Source: IAM API reference, the two actions. An action has one result with the combined decision of all its resources
(likely: a denial, otherwise whether any is allowed); ResourceSpecificResults has the decision of each. A simulated
principal has the service control policies of its account, "including their condition keys and resource scoping".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from moto.core.responses import ActionResult

from corral.box.access.organization import EVERYTHING, Limit, organization_limits
from corral.box.access.policy_evaluator import Decision, Document, RequiredAction, evaluate, missing_context_keys
from corral.box.access.principals import Permissions, permissions_of
from corral.box.account import OWNER_ARN, PARTITION
from corral.box.api_errors import ApiError
from corral.model.access_denials import PolicyType

PAGE, LARGEST_PAGE = 100, 1000
_ENTITY = re.compile(rf"arn:{PARTITION}:iam::\d{{12}}:(role|user|group)/(?:.+/)?([^/]+)")
_ACTION = re.compile(r"[\w-]+:\w+")
_EVERYTHING = "*"
_BOUNDARY = PolicyType.BOUNDARY.value
ADMINISTRATOR = Permissions(policies=(EVERYTHING,), limits=())
_LEFT_OUT = ("ResourcePolicy", "PolicyExclusionList", "OrderedOrganizationPolicyInputList")


class SimulationActions:
    """The simulation actions of IAM."""

    def simulate_principal_policy(self: Any) -> ActionResult:
        """SimulatePrincipalPolicy: a role's, user's or group's policies and the given ones."""
        arn = str(self._get_param("PolicySourceArn"))
        rights = ADMINISTRATOR if arn == OWNER_ARN else permissions_of(_find(self.backend, arn))
        given = Permissions(policies=(*rights.policies, *self._policies()), limits=rights.limits)
        return self._simulated(given, organization_limits())

    def simulate_custom_policy(self: Any) -> ActionResult:
        """SimulateCustomPolicy: the given policies."""
        return self._simulated(Permissions(policies=self._policies(), limits=()), ())

    def _simulated(self: Any, rights: Permissions, organization: Sequence[Limit]) -> ActionResult:
        for name in _LEFT_OUT:
            if self._get_param(name):
                raise NotImplementedError(f"with {name}")
        if boundaries := self._documents("PermissionsBoundaryPolicyInputList"):
            rights = Permissions(policies=rights.policies, limits=((_BOUNDARY, boundaries[0]),))
        rights = replace(rights, limits=(*organization, *rights.limits))
        actions = [_checked_action(str(name)) for name in self._get_param("ActionNames", [])]
        resources = [_checked_resource(str(arn)) for arn in self._get_param("ResourceArns", []) or [_EVERYTHING]]
        context = _context(self._get_param("ContextEntries", []))
        start, size = int(self._get_param("Marker") or 0), min(int(self._get_param("MaxItems") or PAGE), LARGEST_PAGE)
        shown = [_result(rights, action, resources, context) for action in actions[start : start + size]]
        rest = {"Marker": str(start + size)} if start + size < len(actions) else {}
        return ActionResult({"EvaluationResults": shown, "IsTruncated": bool(rest), **rest})

    def _policies(self: Any) -> tuple[Document, ...]:
        return tuple(self._documents("PolicyInputList"))

    def _documents(self: Any, name: str) -> list[Document]:
        return [_read(text) for text in self._get_param(name, [])]


def _find(backend: Any, arn: str) -> Any:
    """The role, user or group. Raises ApiError; text for a session of a role: amazon-ecs-exec-checker#10."""
    found = _ENTITY.fullmatch(arn)
    if found is None:
        text = f"Invalid Entity Arn: {arn} does not clearly define entity type and name."
        raise ApiError("InvalidInput", text)
    kind, name = found.groups()
    for holder in getattr(backend, f"{kind}s").values():
        if holder.name == name:
            return holder
    raise ApiError("NoSuchEntity", f"The {kind} with name {name} cannot be found.", 404)


def _result(rights: Permissions, action: str, resources: Sequence[str], context: Mapping[str, str]) -> dict[str, Any]:
    required = [RequiredAction(action=action, resource=resource, context=context) for resource in resources]
    each = [_resource_result(rights, one) for one in required]
    missing = sorted({key for one in each for key in one["MissingContextValues"]})
    result: dict[str, Any] = {
        "EvalActionName": action,
        "EvalResourceName": _EVERYTHING,
        "EvalDecision": _combined([one["EvalResourceDecision"] for one in each]),
        "MatchedStatements": [],
        "MissingContextValues": missing,
    }
    if (within := _within(rights, _BOUNDARY, required)) is not None:
        result["PermissionsBoundaryDecisionDetail"] = {"AllowedByPermissionsBoundary": within}
    if (within := _within(rights, PolicyType.ORGANIZATION, required)) is not None:
        result["OrganizationsDecisionDetail"] = {"AllowedByOrganizations": within}
    if list(resources) == [_EVERYTHING]:
        return result
    service = action.partition(":")[0]
    named = f"arn:${{Partition}}:{service}:${{Region}}:${{Account}}:${{ResourceType}}/${{ResourcePath}}"
    return {**result, "EvalResourceName": named, "ResourceSpecificResults": each}


def _resource_result(rights: Permissions, required: RequiredAction) -> dict[str, Any]:
    documents = (*rights.policies, *(document for _, document in rights.limits))
    within = _within(rights, _BOUNDARY, [required])
    detail = {} if within is None else {"PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": within}}
    return {
        "EvalResourceName": required.resource,
        "EvalResourceDecision": _decision_name(evaluate(rights.policies, rights.limits, required)),
        "MatchedStatements": [],
        "MissingContextValues": list(missing_context_keys(documents, required)),
        **detail,
    }


def _within(rights: Permissions, kind: str, required: Sequence[RequiredAction]) -> bool | None:
    """Whether the limits of this kind allow the action on all resources; None if there are none."""
    limits = [(name, document) for name, document in rights.limits if name == kind]
    return all(evaluate(ADMINISTRATOR.policies, limits, one).allowed for one in required) if limits else None


def _decision_name(decision: Decision) -> str:
    if decision.allowed:
        return "allowed"
    return "explicitDeny" if decision.explicitly_denied else "implicitDeny"


def _combined(decisions: Sequence[str]) -> str:
    """The most restrictive one. Source: IAM API reference, EvaluationResult."""
    return next(one for one in ("explicitDeny", "implicitDeny", "allowed") if one in decisions)


def _context(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The context by key; each key has one value."""
    found = {}
    for entry in entries:
        key, values = str(entry["ContextKeyName"]), list(entry.get("ContextKeyValues", ()))
        if len(values) != 1:
            raise NotImplementedError(f"{len(values)} values of the context key {key}")
        found[key.lower()] = str(values[0])
    return found


def _checked_action(name: str) -> str:
    if not _ACTION.fullmatch(name):
        raise ApiError("InvalidInput", f"Invalid Action: {name} is not a service and an action (s3:GetObject).")
    return name


def _checked_resource(arn: str) -> str:
    """Text: amazon-ecs-exec-checker#35."""
    if arn != _EVERYTHING and not (arn.startswith("arn:") and arn.count(":") >= 5):
        raise ApiError("InvalidInput", f"ResourceNames are not in a valid ARN format: {arn}.")
    return arn


def _read(text: Any) -> Document:
    try:
        document = json.loads(str(text))
    except ValueError:
        document = None
    if not isinstance(document, dict) or "Statement" not in document:
        raise ApiError("InvalidInput", "The policy is not in the valid JSON format.")
    return document
