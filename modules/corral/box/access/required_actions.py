"""The actions that a call requires: actions on resources, with their condition keys. Hold the cloud's lock.

`tagged_resources` and `named_resources` find the resources of a call. A call of a service that neither has is on `*`:
only a statement about all resources allows it.
Source: Service Authorization Reference, "Actions, resources, and condition keys" of each service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from corral.box.access import required_actions_ec2
from corral.box.access.dependent_actions import dependent_actions
from corral.box.access.managed_nodes import managed_node_resources
from corral.box.access.named_resources import named_resources
from corral.box.access.policy_evaluator import RequiredAction
from corral.box.access.request_keys import request_keys, request_tags, xml_texts
from corral.box.access.required_actions_s3 import s3_actions_required_by
from corral.box.access.tagged_resources import TaggedResource, tagged_resources
from corral.box.api_calls import Call

Fields = Mapping[str, Any]
_PREFIXES = {
    "amp": "aps",
    "efs": "elasticfilesystem",
    "elbv2": "elasticloadbalancing",
    "resourcegroupstaggingapi": "tag",
    "service-quotas": "servicequotas",
}
# Operations whose action has another name. Source: Service Authorization Reference, AWS Budgets and Amazon SNS.
_RENAMED = {
    ("budgets", "CreateBudget"): "ModifyBudget",
    ("budgets", "CreateNotification"): "ModifyBudget",
    ("budgets", "CreateSubscriber"): "ModifyBudget",
    ("budgets", "DeleteBudget"): "ModifyBudget",
    ("budgets", "DeleteNotification"): "ModifyBudget",
    ("budgets", "DeleteSubscriber"): "ModifyBudget",
    ("budgets", "DescribeBudget"): "ViewBudget",
    ("budgets", "DescribeBudgetPerformanceHistory"): "ViewBudget",
    ("budgets", "DescribeBudgets"): "ViewBudget",
    ("budgets", "DescribeNotificationsForBudget"): "ViewBudget",
    ("budgets", "DescribeSubscribersForNotification"): "ViewBudget",
    ("budgets", "UpdateBudget"): "ModifyBudget",
    ("budgets", "UpdateNotification"): "ModifyBudget",
    ("budgets", "UpdateSubscriber"): "ModifyBudget",
    ("sns", "PublishBatch"): "Publish",
}
# What creating a resource with tags requires besides. Sources: API references of the operations, "Tags"; for IAM, IAM
# User Guide, "Tags for IAM resources". PutParameter and CreateBudget name no such permission.
TAGGING_AT_CREATION: Mapping[str, str] = {
    "cloudwatch:PutMetricAlarm": "cloudwatch:TagResource",
    "iam:CreateInstanceProfile": "iam:TagInstanceProfile",
    "iam:CreatePolicy": "iam:TagPolicy",
    "iam:CreateRole": "iam:TagRole",
    "logs:CreateLogGroup": "logs:TagResource",
    "secretsmanager:CreateSecret": "secretsmanager:TagResource",
    "sns:CreateTopic": "sns:TagResource",
}


def actions_required_by(environ: Mapping[str, Any], call: Call, body: bytes) -> tuple[RequiredAction, ...]:
    """The actions that the call requires."""
    base = {"aws:requestedregion": call.region, "aws:securetransport": "true"}
    if call.service == "s3":
        return tuple(s3_actions_required_by(environ, call, body, base))
    fields = call_fields(environ, body)
    if call.service == "ec2":
        return tuple(required_actions_ec2.ec2_actions_required_by(call, fields, base))
    prefix, path = _PREFIXES.get(call.service, call.service), str(environ.get("PATH_INFO", ""))
    action = iam_action(call)
    resources = tuple(managed_node_resources(action, call, fields)) or (
        *tagged_resources(prefix, call, fields, path),
        *named_resources(prefix, action.partition(":")[2], call, fields, path),
    )
    context = {**base, **request_keys(prefix, fields, body)}
    own = [
        RequiredAction(action=action, resource=one.arn, context={**base, **one.context, **context})
        for one in resources or (TaggedResource(arn="*"),)
    ]
    return (*own, *_tagging(own, fields), *dependent_actions(action, call, fields, path, base))


def iam_action(call: Call) -> str:
    """The IAM action of a call of another service than S3 and EC2."""
    name = _RENAMED.get((call.service, call.action), call.action)
    return f"{_PREFIXES.get(call.service, call.service)}:{name}"


def _tagging(own: Sequence[RequiredAction], fields: Fields) -> Iterator[RequiredAction]:
    """The permission to tag what a call creates with tags."""
    for one in own:
        if request_tags(fields) and (action := TAGGING_AT_CREATION.get(one.action)) is not None:
            yield replace(one, action=action)


def call_fields(environ: Mapping[str, Any], body: bytes) -> Fields:
    """The parameters of a call: JSON as it is, a form by its flat names (`InstanceId.1`), XML by element."""
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode("utf-8", "replace")))
    if body[:1] == b"{":
        with suppress(ValueError):
            found: Fields = json.loads(body)
            return found
    query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
    return {**query, **xml_texts(body)}
