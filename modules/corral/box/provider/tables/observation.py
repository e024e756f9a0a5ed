"""What watches and tells: logs, alarms, topics, budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import Gone, absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    Prop,
    blockset,
    document,
    flag,
    number,
    text,
    texts,
    whole,
    wordset,
)
from corral.box.provider.translate import record, request, tag_list, tag_map

# --- log groups


def _create_log(cloud: Cloud, inputs: State) -> str:
    tags = {"tags": inputs["tagsAll"]} if inputs.get("tagsAll") else {}
    cloud.logs.create_log_group(**request(LOG.props, inputs, ("name", "kmsKeyId", "logGroupClass")), **tags)
    return str(inputs["name"])


def _settle_log(cloud: Cloud, id: str, inputs: State) -> None:
    days = inputs.get("retentionInDays") or 0
    if days:
        cloud.logs.put_retention_policy(logGroupName=id, retentionInDays=days)
    elif _find_log(cloud, id).get("retentionInDays"):
        cloud.logs.delete_retention_policy(logGroupName=id)


def _find_log(cloud: Cloud, id: str) -> Mapping[str, Any]:
    pages = cloud.logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=id)
    for page in pages:
        for group in page["logGroups"]:
            if group["logGroupName"] == id:
                found: Mapping[str, Any] = group
                return found
    raise Gone(f"log group {id} does not exist")


def _read_log(cloud: Cloud, id: str, known: State) -> State:
    group = _find_log(cloud, id)
    arn = str(group["arn"]).removesuffix(":*")
    return {
        **record(LOG.state, group),
        "retentionInDays": group.get("retentionInDays", 0),
        "arn": arn,
        "tagsAll": _log_tags(cloud, arn),
    }


def _log_tags(cloud: Cloud, arn: str) -> dict[str, str]:
    return dict(cloud.logs.list_tags_for_resource(resourceArn=arn).get("tags", {}))


def _delete_log(cloud: Cloud, id: str, state: State) -> None:
    if not state.get("skipDestroy"):
        with absence("ResourceNotFoundException"):
            cloud.logs.delete_log_group(logGroupName=id)


def _retag_log(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.logs.untag_resource(resourceArn=state["arn"], tagKeys=drop)
    if put:
        cloud.logs.tag_resource(resourceArn=state["arn"], tags=dict(put))


LOG = Resource(
    token="aws:cloudwatch/logGroup:LogGroup",
    props={
        "name": text(replaces=True, aws="logGroupName"),
        "retentionInDays": whole(default=0, aws="retentionInDays"),
        "kmsKeyId": text(aws="kmsKeyId", replaces=True),
        "logGroupClass": text(replaces=True, computed=True, aws="logGroupClass"),
        "skipDestroy": flag(kept=True, default=False),
    },
    outputs={"arn": text()},
    create=_create_log,
    settle=_settle_log,
    read=_read_log,
    delete=_delete_log,
    retag=_retag_log,
    autonamed="name",
)

# --- alarms


def _put_alarm(cloud: Cloud, inputs: State) -> str:
    asked = request(ALARM.props, inputs, ALARM.props.keys() - {"dimensions"})
    asked["Dimensions"] = [{"Name": key, "Value": value} for key, value in (inputs.get("dimensions") or {}).items()]
    cloud.cloudwatch.put_metric_alarm(**asked, Tags=tag_list(inputs.get("tagsAll")))
    return str(inputs["name"])


def _read_alarm(cloud: Cloud, id: str, known: State) -> State:
    found = cloud.cloudwatch.describe_alarms(AlarmNames=[id])["MetricAlarms"]
    if not found:
        raise Gone(f"alarm {id} does not exist")
    alarm = found[0]
    tags = cloud.cloudwatch.list_tags_for_resource(ResourceARN=alarm["AlarmArn"])["Tags"]
    return {
        **record(ALARM.state, {key: value for key, value in alarm.items() if key != "Dimensions"}),
        "dimensions": {one["Name"]: one["Value"] for one in alarm.get("Dimensions", [])},
        "tagsAll": tag_map(tags),
    }


def _update_alarm(cloud: Cloud, change: Change) -> None:
    if change.names - {"tags", "tagsAll"}:
        _put_alarm(cloud, change.new)


def _delete_alarm(cloud: Cloud, id: str, state: State) -> None:
    cloud.cloudwatch.delete_alarms(AlarmNames=[id])


def _retag_alarm(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.cloudwatch.untag_resource(ResourceARN=state["arn"], TagKeys=drop)
    if put:
        cloud.cloudwatch.tag_resource(ResourceARN=state["arn"], Tags=tag_list(put))


ALARM = Resource(
    token="aws:cloudwatch/metricAlarm:MetricAlarm",
    props={
        "name": text(replaces=True, aws="AlarmName"),
        "alarmDescription": text(),
        "comparisonOperator": text(required=True),
        "evaluationPeriods": whole(required=True),
        "datapointsToAlarm": whole(),
        "metricName": text(required=True),
        "namespace": text(required=True),
        "dimensions": texts(),
        "period": whole(required=True),
        "statistic": text(),
        "extendedStatistic": text(),
        "threshold": number(required=True),
        "unit": text(),
        "treatMissingData": text(default="missing"),
        "actionsEnabled": flag(default=True),
        "alarmActions": wordset(),
        "okActions": wordset(aws="OKActions"),
        "insufficientDataActions": wordset(),
    },
    outputs={"arn": text(aws="AlarmArn")},
    create=_put_alarm,
    read=_read_alarm,
    update=_update_alarm,
    delete=_delete_alarm,
    retag=_retag_alarm,
    autonamed="name",
)

# --- topics

TOPIC_ATTRIBUTES = {
    "displayName": "DisplayName",
    "policy": "Policy",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "deliveryPolicy": "DeliveryPolicy",
}


def _create_topic(cloud: Cloud, inputs: State) -> str:
    attributes = {aws: inputs[name] for name, aws in TOPIC_ATTRIBUTES.items() if inputs.get(name)}
    made = cloud.sns.create_topic(Name=inputs["name"], Attributes=attributes, Tags=tag_list(inputs.get("tagsAll")))
    return str(made["TopicArn"])


def _read_topic(cloud: Cloud, id: str, known: State) -> State:
    with absence("NotFound", "NotFoundException"):
        attributes = cloud.sns.get_topic_attributes(TopicArn=id)["Attributes"]
    return {
        **record(TOPIC.state, attributes),
        "name": id.rpartition(":")[2],
        "arn": id,
        "tagsAll": tag_map(cloud.sns.list_tags_for_resource(ResourceArn=id)["Tags"]),
    }


def _update_topic(cloud: Cloud, change: Change) -> None:
    for name, aws in TOPIC_ATTRIBUTES.items():
        if change.touches(name):
            value = change.new.get(name, "")
            cloud.sns.set_topic_attributes(TopicArn=change.id, AttributeName=aws, AttributeValue=value)


def _delete_topic(cloud: Cloud, id: str, state: State) -> None:
    with absence("NotFound", "NotFoundException"):
        cloud.sns.delete_topic(TopicArn=id)


def _retag_topic(cloud: Cloud, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.sns.untag_resource(ResourceArn=id, TagKeys=drop)
    if put:
        cloud.sns.tag_resource(ResourceArn=id, Tags=tag_list(put))


TOPIC = Resource(
    token="aws:sns/topic:Topic",
    props={
        "name": text(replaces=True),
        "displayName": text(),
        "policy": document(computed=True),
        "kmsMasterKeyId": text(),
        "deliveryPolicy": document(),
    },
    outputs={"arn": text(), "owner": text()},
    create=_create_topic,
    read=_read_topic,
    update=_update_topic,
    delete=_delete_topic,
    retag=_retag_topic,
    autonamed="name",
)


def _subscribe(cloud: Cloud, inputs: State) -> str:
    attributes = {"RawMessageDelivery": "true"} if inputs.get("rawMessageDelivery") else {}
    if inputs.get("filterPolicy"):
        attributes["FilterPolicy"] = inputs["filterPolicy"]
    made = cloud.sns.subscribe(
        **request(SUBSCRIPTION.props, inputs, ("topic", "protocol", "endpoint")),
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )
    return str(made["SubscriptionArn"])


def _read_subscription(cloud: Cloud, id: str, known: State) -> State:
    with absence("NotFound", "NotFoundException"):
        attributes = cloud.sns.get_subscription_attributes(SubscriptionArn=id)["Attributes"]
    return {
        **record(SUBSCRIPTION.state, attributes),
        "rawMessageDelivery": attributes.get("RawMessageDelivery") == "true",
        "pendingConfirmation": attributes.get("PendingConfirmation") == "true",
        "confirmationWasAuthenticated": attributes.get("ConfirmationWasAuthenticated") == "true",
        "arn": id,
        "ownerId": attributes.get("Owner"),
    }


def _update_subscription(cloud: Cloud, change: Change) -> None:
    set_attribute = cloud.sns.set_subscription_attributes
    if change.touches("rawMessageDelivery"):
        value = "true" if change.new.get("rawMessageDelivery") else "false"
        set_attribute(SubscriptionArn=change.id, AttributeName="RawMessageDelivery", AttributeValue=value)
    if change.touches("filterPolicy"):
        value = change.new.get("filterPolicy", "{}")
        set_attribute(SubscriptionArn=change.id, AttributeName="FilterPolicy", AttributeValue=value)


def _unsubscribe(cloud: Cloud, id: str, state: State) -> None:
    with absence("NotFound", "NotFoundException"):
        cloud.sns.unsubscribe(SubscriptionArn=id)


SUBSCRIPTION = Resource(
    token="aws:sns/topicSubscription:TopicSubscription",
    props={
        "topic": text(required=True, replaces=True, aws="TopicArn"),
        "protocol": text(required=True, replaces=True),
        "endpoint": text(required=True, replaces=True),
        "rawMessageDelivery": flag(default=False),
        "filterPolicy": document(),
        "endpointAutoConfirms": flag(kept=True, default=False),
        "confirmationTimeoutInMinutes": whole(kept=True, default=1),
    },
    outputs={
        "arn": text(),
        "ownerId": text(),
        "pendingConfirmation": flag(),
        "confirmationWasAuthenticated": flag(),
    },
    create=_subscribe,
    read=_read_subscription,
    update=_update_subscription,
    delete=_unsubscribe,
)

# --- budgets


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
        "costFilters": blockset({"name": text(required=True), "values": wordset(required=True)}),
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

RESOURCES = (LOG, ALARM, TOPIC, SUBSCRIPTION, BUDGET)
