"""SNS topics and their subscriptions."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import (
    document,
    flag,
    text,
    whole,
)
from corral.box.provider.translate import record, request, tag_list, tag_map

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

RESOURCES = (
    TOPIC,
    SUBSCRIPTION,
)
