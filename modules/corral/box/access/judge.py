"""IAM's policy language: whether policies allow an action on a resource. Pure.

Source: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements reference".
An element or operator that no policy of corral's uses raises NotImplementedError, which names it: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Document = Mapping[str, Any]
_ELEMENTS = frozenset({"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition", "Principal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An action on a resource. `resource`: an ARN, or `*`. `context`: condition keys in small letters, with values."""

    action: str
    resource: str = "*"
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether it is allowed; if not, `reason` says it as AWS does. `denied`: by a statement that says so."""

    allowed: bool
    reason: str
    denied: bool = False


def judge(policies: Sequence[Document], limits: Sequence[tuple[str, Document]], wanted: Wanted) -> Verdict:
    """What a role's policies say, within its limits: pairs of a kind, such as "permissions boundary", and a document.

    A denial anywhere decides; else the policies must allow it, and each limit, too. Raises NotImplementedError.
    """
    kinds = [("identity-based policy", policies), *((kind, (document,)) for kind, document in limits)]
    for kind, documents in kinds:
        if any(_says("Deny", document, wanted) for document in documents):
            article = "an" if kind[0] in "aeiou" else "a"
            return Verdict(allowed=False, reason=f"with an explicit deny in {article} {kind}", denied=True)
    for kind, documents in kinds:
        if not any(_says("Allow", document, wanted) for document in documents):
            return Verdict(allowed=False, reason=f"because no {kind} allows the {wanted.action} action")
    return Verdict(allowed=True, reason="")


def missing_keys(documents: Iterable[Document], wanted: Wanted) -> tuple[str, ...]:
    """The condition keys, as the policies write them, that decide about the action and that the context lacks."""
    statements = [one for document in documents for one in _listed(document.get("Statement", ()))]
    asked = {
        key
        for statement in statements
        if _is_about(statement, wanted)
        for keys in statement.get("Condition", {}).values()
        for key in keys
    }
    return tuple(sorted(key for key in asked if key.lower() not in wanted.context))


def trusts(document: Document, role: str, account: str) -> bool:
    """True if a role's trust policy lets this other role of the account take it on."""
    known = {role, account, f"arn:aws:iam::{account}:root", "*"}
    return any(
        statement["Effect"] == "Allow"
        and _matches(_listed(statement["Action"]), "sts:AssumeRole", ignore_case=True)
        and known & set(_listed(_principals(statement)))
        for statement in _listed(document.get("Statement", ()))
    )


def _principals(statement: Document) -> Any:
    principal = statement.get("Principal", {})
    return principal if principal == "*" else principal.get("AWS", ())


def _says(effect: str, document: Document, wanted: Wanted) -> bool:
    return any(
        statement["Effect"] == effect and _applies(statement, wanted)
        for statement in _listed(document.get("Statement", ()))
    )


def _applies(statement: Document, wanted: Wanted) -> bool:
    return _is_about(statement, wanted) and all(
        _holds(operator, key, _listed(values), wanted.context)
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    )


def _is_about(statement: Document, wanted: Wanted) -> bool:
    """True if it means the action and the resource, whatever its conditions say."""
    if strange := statement.keys() - _ELEMENTS:
        raise NotImplementedError(f"{sorted(strange)[0]} in a policy")
    return _is_meant(statement, "Action", wanted.action, ignore_case=True) and _is_meant(
        statement, "Resource", wanted.resource, ignore_case=False
    )


def _is_meant(statement: Document, element: str, text: str, *, ignore_case: bool) -> bool:
    if element in statement:
        return _matches(_listed(statement[element]), text, ignore_case=ignore_case)
    return not _matches(_listed(statement[f"Not{element}"]), text, ignore_case=ignore_case)


def _holds(operator: str, key: str, values: Sequence[Any], context: Mapping[str, str]) -> bool:
    """One line of a condition. A key that the call does not have is only good for a negation and for ...IfExists.

    A key has one value here, so that of several all or any is the same, but for none: all of none hold, any does not.
    """
    quantity, _, plain = operator.rpartition(":")
    name = plain.removesuffix("IfExists")
    found = context.get(key.lower())
    if quantity and found is None and name != "Null":
        return quantity == "ForAllValues"
    given = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    if any("${" in value for value in given):
        raise NotImplementedError(f"the policy variable in {given}")
    if name == "Null":
        return (found is None) == (given == ["true"])
    if name not in _OPERATORS or quantity not in ("", "ForAllValues", "ForAnyValue"):
        raise NotImplementedError(f"the condition operator {operator} in a policy")
    negated, compare = _OPERATORS[name]
    if found is None:
        return negated or name != plain
    return any(compare(value, found) for value in given) != negated


def _equal(value: str, found: str) -> bool:
    return value == found


def _equal_any_case(value: str, found: str) -> bool:
    return value.lower() == found.lower()


def _like(value: str, found: str) -> bool:
    return bool(_pattern(value, ignore_case=False).fullmatch(found))


# Whether it is a negation, and what it compares. ArnEquals takes wildcards, as ArnLike does.
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
    """`*` is any text, `?` any character; nothing else is special."""
    written = "".join({"*": ".*", "?": "."}.get(sign) or re.escape(sign) for sign in text)
    return re.compile(written, re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)
