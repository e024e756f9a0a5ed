"""IAM's policy language: whether policies allow an action on a resource. Pure.

Source: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements reference".
An element or operator that no policy of corral uses raises NotImplementedError with its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Document = Mapping[str, Any]
_QUANTITIES = ("", "ForAllValues", "ForAnyValue")
Context = Mapping[str, str | tuple[str, ...]]
_ELEMENTS = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredAction:
    """An action on a resource. `resource`: an ARN or `*`. `context`: values by condition key in lower case.

    A tuple has the values of a key that may have several.
    """

    action: str
    resource: str = "*"
    context: Context = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether an action is allowed. `reason`: why not, in AWS's words. `explicitly_denied`: a statement denies it."""

    allowed: bool
    reason: str
    explicitly_denied: bool = False


def evaluate(
    policies: Sequence[Document], limits: Sequence[tuple[str, Document]], required: RequiredAction
) -> Decision:
    """Whether policies allow an action. `limits`: pairs of a kind, such as "permissions boundary", and a document.

    Any denial decides; otherwise the policies and each limit must allow it. Raises NotImplementedError.
    """
    kinds = [("identity-based policy", policies), *((kind, (document,)) for kind, document in limits)]
    for kind, documents in kinds:
        if any(_has_effect("Deny", document, required) for document in documents):
            article = "an" if kind[0] in "aeiou" else "a"
            return Decision(allowed=False, reason=f"with an explicit deny in {article} {kind}", explicitly_denied=True)
    for kind, documents in kinds:
        if not any(_has_effect("Allow", document, required) for document in documents):
            return Decision(allowed=False, reason=f"because no {kind} allows the {required.action} action")
    return Decision(allowed=True, reason="")


def unsupported_part(document: Document) -> str | None:
    """An element, operator or variable of the policy that `evaluate` would raise NotImplementedError for."""
    for statement in _listed(document["Statement"]):
        if unknown := sorted(statement.keys() - _ELEMENTS):
            return str(unknown[0])
        for operator, keys in statement.get("Condition", {}).items():
            quantity, _, plain = operator.rpartition(":")
            name = plain.removesuffix("IfExists")
            if name not in (*_OPERATORS, "Null") or quantity not in _QUANTITIES:
                return f"the condition operator {operator}"
            if any("${" in str(value) for values in keys.values() for value in _listed(values)):
                return f"the policy variable in {sorted(keys)[0]}"
    return None


def missing_context_keys(documents: Iterable[Document], required: RequiredAction) -> tuple[str, ...]:
    """The condition keys that the policies need for the action and that the context lacks."""
    statements = [one for document in documents for one in _listed(document.get("Statement", ()))]
    named = {
        key
        for statement in statements
        if _covers(statement, required)
        for keys in statement.get("Condition", {}).values()
        for key in keys
    }
    return tuple(sorted(key for key in named if key.lower() not in required.context))


def allows_assuming(document: Document, role: str, account: str) -> bool:
    """True if a role's trust policy lets this other role of the account assume it.

    Raises NotImplementedError for a condition.
    """
    about = [
        statement
        for statement in _listed(document.get("Statement", ()))
        if _matches(_listed(statement["Action"]), "sts:AssumeRole", ignore_case=True)
        and _names_role(statement, role, account)
    ]
    if any("Condition" in statement for statement in about):
        raise NotImplementedError("a condition in a trust policy")
    return bool(about) and all(statement["Effect"] == "Allow" for statement in about)


def is_denied_to(role: str, account: str, document: Document, required: RequiredAction) -> bool:
    """True if a resource's policy denies the action to this role of the account."""
    return any(
        statement["Effect"] == "Deny" and _names_role(statement, role, account) and _applies(statement, required)
        for statement in _listed(document.get("Statement", ()))
    )


def _names_role(statement: Document, role: str, account: str) -> bool:
    known = {role, account, f"{role.partition(':iam::')[0]}:iam::{account}:root", "*"}
    return bool(known & set(_listed(_principals(statement))))


def _principals(statement: Document) -> Any:
    if "NotPrincipal" in statement:
        raise NotImplementedError("NotPrincipal in a policy")
    principal = statement.get("Principal", {})
    return principal if principal == "*" else principal.get("AWS", ())


def _has_effect(effect: str, document: Document, required: RequiredAction) -> bool:
    return any(
        statement["Effect"] == effect and _applies(statement, required)
        for statement in _listed(document.get("Statement", ()))
    )


def _applies(statement: Document, required: RequiredAction) -> bool:
    return _covers(statement, required) and all(
        _condition_holds(operator, key, _listed(values), required.context)
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    )


def _covers(statement: Document, required: RequiredAction) -> bool:
    """True if the statement covers the action and the resource, regardless of its conditions."""
    if unknown := statement.keys() - _ELEMENTS:
        raise NotImplementedError(f"{sorted(unknown)[0]} in a policy")
    return _element_matches(statement, "Action", required.action, ignore_case=True) and _element_matches(
        statement, "Resource", required.resource, ignore_case=False
    )


def _element_matches(statement: Document, element: str, text: str, *, ignore_case: bool) -> bool:
    if element in statement:
        return _matches(_listed(statement[element]), text, ignore_case=ignore_case)
    return not _matches(_listed(statement[f"Not{element}"]), text, ignore_case=ignore_case)


def _condition_holds(operator: str, key: str, values: Sequence[Any], context: Context) -> bool:
    """Whether one line of a condition holds. A missing key satisfies only negations and ...IfExists."""
    quantity, _, plain = operator.rpartition(":")
    name = plain.removesuffix("IfExists")
    found = _listed(context.get(key.lower(), ()))
    if quantity and not found and name != "Null":
        return quantity == "ForAllValues"
    expected = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    if any("${" in value for value in expected):
        raise NotImplementedError(f"the policy variable in {expected}")
    if name == "Null":
        return (not found) == (expected == ["true"])
    if name not in _OPERATORS or quantity not in _QUANTITIES:
        raise NotImplementedError(f"the condition operator {operator} in a policy")
    negated, compare = _OPERATORS[name]
    if not found:
        return negated or name != plain
    matches = [any(compare(value, one) for value in expected) != negated for one in found]
    return any(matches) if quantity == "ForAnyValue" else all(matches)


def _equal(value: str, found: str) -> bool:
    return value == found


def _equal_any_case(value: str, found: str) -> bool:
    return value.lower() == found.lower()


def _like(value: str, found: str) -> bool:
    return bool(_pattern(value, ignore_case=False).fullmatch(found))


# Whether the operator negates, and its comparison. ArnEquals takes wildcards, as ArnLike does.
_OPERATORS = {
    "StringEquals": (False, _equal),
    "StringNotEquals": (True, _equal),
    "StringEqualsIgnoreCase": (False, _equal_any_case),
    "StringNotEqualsIgnoreCase": (True, _equal_any_case),
    "StringLike": (False, _like),
    "StringNotLike": (True, _like),
    "ArnEquals": (False, _like),
    "ArnLike": (False, _like),
    "ArnNotEquals": (True, _like),
    "ArnNotLike": (True, _like),
    "Bool": (False, _equal_any_case),
}


def _matches(patterns: Iterable[str], text: str, *, ignore_case: bool) -> bool:
    return any(_pattern(pattern, ignore_case=ignore_case).fullmatch(text) for pattern in patterns)


@cache
def _pattern(text: str, *, ignore_case: bool) -> re.Pattern[str]:
    """The pattern for a text in which `*` matches any text and `?` any character."""
    written = "".join({"*": ".*", "?": "."}.get(sign) or re.escape(sign) for sign in text)
    return re.compile(written, re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)
