"""Budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    Prop,
    blockset,
    number,
    text,
    wordset,
)
from corral.box.provider.translate import record, request, tag_list


def _budget(inputs: State) -> dict[str, Any]:
    asked = request(BUDGET.props, inputs, ("name", "budgetType", "timeUnit"))
    asked["BudgetLimit"] = {"Amount": inputs["limitAmount"], "Unit": inputs["limitUnit"]}
    filters = {one["name"]: list(one["values"]) for one in inputs.get("costFilters") or ()}
    return {**asked, **({"CostFilters": filters} if filters else {})}


def _notices(inputs: State) -> list[dict[str, Any]]:
    return [
        {
            "Notification": request(
                NOTICE, one, NOTICE.keys() - {"subscriberEmailAddresses", "subscriberSnsTopicArns"}
            ),
            "Subscribers": [
                *({"SubscriptionType": "EMAIL", "Address": at} for at in one.get("subscriberEmailAddresses") or ()),
                *({"SubscriptionType": "SNS", "Address": at} for at in one.get("subscriberSnsTopicArns") or ()),
            ],
        }
        for one in inputs.get("notifications") or ()
    ]


def _create_budget(cloud: Cloud, inputs: State) -> str:
    tags = {"ResourceTags": tag_list(inputs["tagsAll"])} if inputs.get("tagsAll") else {}
    cloud.budgets.create_budget(
        AccountId=cloud.account, Budget=_budget(inputs), NotificationsWithSubscribers=_notices(inputs), **tags
    )
    return f"{cloud.account}:{inputs['name']}"


def _read_budget(cloud: Cloud, id: str, known: State) -> State:
    account, _, name = id.partition(":")
    with absence("NotFoundException"):
        budget = cloud.budgets.describe_budget(AccountId=account, BudgetName=name)["Budget"]
    limit = budget.get("BudgetLimit", {})
    amount, wanted = str(limit.get("Amount", "")), str(known.get("limitAmount", ""))
    return {
        **record(BUDGET.state, {key: value for key, value in budget.items() if key != "CostFilters"}),
        "limitAmount": wanted if wanted and amount and float(wanted) == float(amount) else amount,
        "limitUnit": limit.get("Unit"),
        "costFilters": [{"name": key, "values": values} for key, values in budget.get("CostFilters", {}).items()],
        "accountId": account,
        "arn": f"arn:aws:budgets::{account}:budget/{name}",
        "tagsAll": known.get("tagsAll"),  # moto does not tell a budget's tags
    }


def _update_budget(cloud: Cloud, change: Change) -> None:
    """A budget has no identity but its name, and moto has no UpdateBudget: it is made anew under the same name."""
    _delete_budget(cloud, change.id, change.old)
    _create_budget(cloud, change.new)


def _delete_budget(cloud: Cloud, id: str, state: State) -> None:
    account, _, name = id.partition(":")
    with absence("NotFoundException"):
        cloud.budgets.delete_budget(AccountId=account, BudgetName=name)


def _retag_budget(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Nothing: the update has written them."""


THRESHOLD = ("comparisonOperator", "notificationType", "threshold", "thresholdType")
NOTICE: Mapping[str, Prop] = {
    "comparisonOperator": text(required=True),
    "notificationType": text(required=True),
    "threshold": number(required=True),
    "thresholdType": text(required=True),
    "subscriberEmailAddresses": wordset(),
    "subscriberSnsTopicArns": wordset(),
}
BUDGET = Resource(
    token="aws:budgets/budget:Budget",
    props={
        "name": text(replaces=True, aws="BudgetName"),
        "budgetType": text(required=True),
        "timeUnit": text(required=True),
        "limitAmount": text(required=True),
        "limitUnit": text(required=True),
        "costFilters": blockset({"name": text(required=True), "values": wordset(required=True)}, computed=True),
        "notifications": blockset(NOTICE, kept=True),
    },
    outputs={"arn": text(), "accountId": text()},
    create=_create_budget,
    read=_read_budget,
    update=_update_budget,
    delete=_delete_budget,
    retag=_retag_budget,
    autonamed="name",
    is_global=True,
)

RESOURCES = (BUDGET,)
