"""Resources without tags, or without a way to list them: recognized by name and by what they refer to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corral.inventory.ec2_resources import tags_of
from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.base import KEY_ALIASES
from corral.model.signing import SIGNING_ALIASES
from corral.model.tags import BASE_TAG, KEEP_TAG

_PREFIX = "corral-"


def read_aliases(session: Any) -> Iterator[AwsResource]:
    """The aliases of bases' keys, without those of keys that outlive a base, and of the same form on other keys."""
    kms = session.client("kms")
    for page in kms.get_paginator("list_aliases").paginate():
        for item in page["Aliases"]:
            base = item["AliasName"].removeprefix(SIGNING_ALIASES).removeprefix(KEY_ALIASES)
            if base != item["AliasName"] and "TargetKeyId" in item and _key_of(kms, item["TargetKeyId"]) == base:
                yield AwsResource(
                    kind=ResourceKind.ALIAS, id=item["AliasName"], tags={BASE_TAG: base, "Name": item["AliasName"]}
                )


def read_budgets(session: Any) -> Iterator[AwsResource]:
    """The budgets that filter by a base's tag."""
    pages = session.client("budgets").get_paginator("describe_budgets").paginate(AccountId=account_of(session))
    for page in pages:
        for item in page.get("Budgets", ()):
            base = item["BudgetName"].removeprefix(_PREFIX)
            if f"user:{BASE_TAG}${base}" in item.get("CostFilters", {}).get("TagKeyValue", ()):
                yield AwsResource(
                    kind=ResourceKind.BUDGET, id=item["BudgetName"], tags={BASE_TAG: base, "Name": item["BudgetName"]}
                )


def account_of(session: Any) -> str:
    """The account number of the session's credentials. Raises ClientError if AWS refuses them."""
    return str(session.client("sts").get_caller_identity()["Account"])


def _key_of(kms: Any, key: str) -> str | None:
    """The base of this key, by its tag or its Name: earlier releases removed the tag of a key pending deletion.

    None if the key outlives its base.
    """
    found = kms.list_resource_tags(KeyId=key)["Tags"]
    tags = tags_of({"Key": tag["TagKey"], "Value": tag["TagValue"]} for tag in found)
    name = tags.get("Name", "")
    if KEEP_TAG in tags:
        return None
    return tags.get(BASE_TAG) or (name.removeprefix(_PREFIX).removesuffix("-key") if name.endswith("-key") else None)
