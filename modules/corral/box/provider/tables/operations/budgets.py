"""aws:budgets:Budget with its notifications and their subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, to_request
from corral.box.provider.property_schema import Prop, block_set, number, text, text_set
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State


def _budget(inputs: State) -> dict[str, Any]:
    request = to_request(BUDGET.props, inputs, ("name", "budgetType", "timeUnit"))
    request["BudgetLimit"] = {"Amount": inputs["limitAmount"], "Unit": inputs["limitUnit"]}
    filters = {one["name"]: list(one["values"]) for one in inputs.get("costFilters") or ()}
    return {**request, **({"CostFilters": filters} if filters else {})}


def _notices(inputs: State) -> list[dict[str, Any]]:
    return [
        {
            "Notification": to_request(
                NOTICE, one, NOTICE.keys() - {"subscriberEmailAddresses", "subscriberSnsTopicArns"}
            ),
            "Subscribers": [
                *({"SubscriptionType": "EMAIL", "Address": at} for at in one.get("subscriberEmailAddresses") or ()),
                *({"SubscriptionType": "SNS", "Address": at} for at in one.get("subscriberSnsTopicArns") or ()),
            ],
        }
        for one in inputs.get("notifications") or ()
    ]


def _create_budget(cloud: RegionClients, inputs: State) -> str:
    tags = {"ResourceTags": tag_list(inputs["tagsAll"])} if inputs.get("tagsAll") else {}
    cloud.budgets.create_budget(
        AccountId=cloud.account, Budget=_budget(inputs), NotificationsWithSubscribers=_notices(inputs), **tags
    )
    return f"{cloud.account}:{inputs['name']}"


def _read_budget(cloud: RegionClients, id: str, known: State) -> State:
    account, _, name = id.partition(":")
    with not_found_on("NotFoundException"):
        budget = cloud.budgets.describe_budget(AccountId=account, BudgetName=name)["Budget"]
    limit = budget.get("BudgetLimit", {})
    amount, wanted = str(limit.get("Amount", "")), str(known.get("limitAmount", ""))
    return {
        **from_response(BUDGET.state, {key: value for key, value in budget.items() if key != "CostFilters"}),
        "limitAmount": wanted if wanted and amount and float(wanted) == float(amount) else amount,
        "limitUnit": limit.get("Unit"),
        "costFilters": [{"name": key, "values": values} for key, values in budget.get("CostFilters", {}).items()],
        "accountId": account,
        "arn": f"arn:{cloud.partition.name}:budgets::{account}:budget/{name}",
        "tagsAll": known.get("tagsAll"),  # moto does not return a budget's tags
    }


def _update_budget(cloud: RegionClients, change: ResourceUpdate) -> None:
    """Recreate the budget under its name, its only identity: UpdateBudget changes neither notifications nor tags."""
    _delete_budget(cloud, change.id, change.old)
    _create_budget(cloud, change.new)


def _delete_budget(cloud: RegionClients, id: str, state: State) -> None:
    account, _, name = id.partition(":")
    with not_found_on("NotFoundException"):
        cloud.budgets.delete_budget(AccountId=account, BudgetName=name)


def _retag_budget(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    """Do nothing: `update` writes all tags."""


NOTICE: Mapping[str, Prop] = {
    "comparisonOperator": text(required=True),
    "notificationType": text(required=True),
    "threshold": number(required=True),
    "thresholdType": text(required=True),
    "subscriberEmailAddresses": text_set(),
    "subscriberSnsTopicArns": text_set(),
}
BUDGET = Resource(
    token="aws:budgets/budget:Budget",
    props={
        "name": text(replaces=True, aws="BudgetName"),
        "budgetType": text(required=True),
        "timeUnit": text(required=True),
        "limitAmount": text(required=True),
        "limitUnit": text(required=True),
        "costFilters": block_set({"name": text(required=True), "values": text_set(required=True)}, computed=True),
        "notifications": block_set(NOTICE, write_only=True),
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
