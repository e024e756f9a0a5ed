"""SNS topics and their subscriptions."""

from __future__ import annotations

from collections.abc import Mapping

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_list, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, json_document, text
from corral.box.provider.provider_errors import not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State

TOPIC_ATTRIBUTES = {
    "displayName": "DisplayName",
    "policy": "Policy",
    "kmsMasterKeyId": "KmsMasterKeyId",
    "deliveryPolicy": "DeliveryPolicy",
}


def _create_topic(cloud: RegionClients, inputs: State) -> str:
    attributes = {aws: inputs[name] for name, aws in TOPIC_ATTRIBUTES.items() if inputs.get(name)}
    made = cloud.sns.create_topic(Name=inputs["name"], Attributes=attributes, Tags=tag_list(inputs.get("tagsAll")))
    return str(made["TopicArn"])


def _read_topic(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("NotFound", "NotFoundException"):
        attributes = cloud.sns.get_topic_attributes(TopicArn=id)["Attributes"]
    return {
        **from_response(TOPIC.state, attributes),
        "name": id.rpartition(":")[2],
        "arn": id,
        "tagsAll": tag_map(cloud.sns.list_tags_for_resource(ResourceArn=id)["Tags"]),
    }


def _update_topic(cloud: RegionClients, change: ResourceUpdate) -> None:
    for name, aws in TOPIC_ATTRIBUTES.items():
        if change.touches(name):
            value = change.new.get(name, "")
            cloud.sns.set_topic_attributes(TopicArn=change.id, AttributeName=aws, AttributeValue=value)


def _delete_topic(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("NotFound", "NotFoundException"):
        cloud.sns.delete_topic(TopicArn=id)


def _retag_topic(cloud: RegionClients, id: str, state: State, put: Mapping[str, str], drop: list[str]) -> None:
    if drop:
        cloud.sns.untag_resource(ResourceArn=id, TagKeys=drop)
    if put:
        cloud.sns.tag_resource(ResourceArn=id, Tags=tag_list(put))


TOPIC = Resource(
    token="aws:sns/topic:Topic",
    props={
        "name": text(replaces=True),
        "displayName": text(),
        "policy": json_document(computed=True),
        "kmsMasterKeyId": text(),
        "deliveryPolicy": json_document(),
    },
    outputs={"arn": text(), "owner": text()},
    create=_create_topic,
    read=_read_topic,
    update=_update_topic,
    delete=_delete_topic,
    retag=_retag_topic,
    autonamed="name",
)


def _subscribe(cloud: RegionClients, inputs: State) -> str:
    attributes = {"RawMessageDelivery": "true"} if inputs.get("rawMessageDelivery") else {}
    if inputs.get("filterPolicy"):
        attributes["FilterPolicy"] = inputs["filterPolicy"]
    made = cloud.sns.subscribe(
        **to_request(SUBSCRIPTION.props, inputs, ("topic", "protocol", "endpoint")),
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )
    return str(made["SubscriptionArn"])


def _read_subscription(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("NotFound", "NotFoundException"):
        attributes = cloud.sns.get_subscription_attributes(SubscriptionArn=id)["Attributes"]
    return {
        **from_response(SUBSCRIPTION.state, attributes),
        "rawMessageDelivery": attributes.get("RawMessageDelivery") == "true",
        "pendingConfirmation": attributes.get("PendingConfirmation") == "true",
        "confirmationWasAuthenticated": attributes.get("ConfirmationWasAuthenticated") == "true",
        "arn": id,
        "ownerId": attributes.get("Owner"),
    }


def _update_subscription(cloud: RegionClients, change: ResourceUpdate) -> None:
    set_attribute = cloud.sns.set_subscription_attributes
    if change.touches("rawMessageDelivery"):
        value = "true" if change.new.get("rawMessageDelivery") else "false"
        set_attribute(SubscriptionArn=change.id, AttributeName="RawMessageDelivery", AttributeValue=value)
    if change.touches("filterPolicy"):
        value = change.new.get("filterPolicy", "{}")
        set_attribute(SubscriptionArn=change.id, AttributeName="FilterPolicy", AttributeValue=value)


def _unsubscribe(cloud: RegionClients, id: str, state: State) -> None:
    with not_found_on("NotFound", "NotFoundException"):
        cloud.sns.unsubscribe(SubscriptionArn=id)


SUBSCRIPTION = Resource(
    token="aws:sns/topicSubscription:TopicSubscription",
    props={
        "topic": text(required=True, replaces=True, aws="TopicArn"),
        "protocol": text(required=True, replaces=True),
        "endpoint": text(required=True, replaces=True),
        "rawMessageDelivery": boolean(default=False),
        "filterPolicy": json_document(),
        "endpointAutoConfirms": boolean(write_only=True, default=False),
        "confirmationTimeoutInMinutes": integer(write_only=True, default=1),
    },
    outputs={
        "arn": text(),
        "ownerId": text(),
        "pendingConfirmation": boolean(),
        "confirmationWasAuthenticated": boolean(),
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
