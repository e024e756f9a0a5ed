"""Things that cannot carry tags or do not list them: they are known by name, and by what they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corral.inventory.things import BASE_TAG, Kind, Thing

_PREFIX = "corral-"


def read_aliases(session: Any) -> Iterator[Thing]:
    """The aliases of bases' keys. An alias of such a name on somebody else's key is none."""
    kms = session.client("kms")
    for page in kms.get_paginator("list_aliases").paginate():
        for item in page["Aliases"]:
            base = item["AliasName"].removeprefix(f"alias/{_PREFIX}")
            if base != item["AliasName"] and "TargetKeyId" in item and _key_of(kms, item["TargetKeyId"]) == base:
                yield Thing(kind=Kind.ALIAS, id=item["AliasName"], tags={BASE_TAG: base, "Name": item["AliasName"]})


def read_budgets(session: Any) -> Iterator[Thing]:
    """The budgets that count what carries a base's tag."""
    pages = session.client("budgets").get_paginator("describe_budgets").paginate(AccountId=account_of(session))
    for page in pages:
        for item in page.get("Budgets", ()):
            base = item["BudgetName"].removeprefix(_PREFIX)
            if f"user:{BASE_TAG}${base}" in item.get("CostFilters", {}).get("TagKeyValue", ()):
                yield Thing(kind=Kind.BUDGET, id=item["BudgetName"], tags={BASE_TAG: base, "Name": item["BudgetName"]})


def account_of(session: Any) -> str:
    """The number of the account that is asked."""
    return str(session.client("sts").get_caller_identity()["Account"])


def _key_of(kms: Any, key: str) -> str | None:
    """The base that this key belongs to, or belonged to: a key that waits for its end has lost its tags."""
    tags = {tag["TagKey"]: tag["TagValue"] for tag in kms.list_resource_tags(KeyId=key)["Tags"]}
    name = tags.get("Name", "")
    return tags.get(BASE_TAG) or (name.removeprefix(_PREFIX).removesuffix("-key") if name.endswith("-key") else None)
