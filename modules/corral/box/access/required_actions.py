"""The actions that a call requires: actions on resources, with their condition keys. Hold the cloud's lock.

Resources are as specific as corral's policies need: `tagged_resources` finds those whose tags count. A call of another
service is on `*`: only a statement about all
resources allows it.
Source: Service Authorization Reference, "Actions, resources, and condition keys" of each service.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote

from corral.box.access import required_actions_ec2
from corral.box.access.dependent_actions import dependent_actions
from corral.box.access.managed_nodes import managed_node_resources
from corral.box.access.policy_evaluator import RequiredAction
from corral.box.access.tagged_resources import TaggedResource, tagged_resources
from corral.box.account import ACCOUNT, PARTITION
from corral.box.api_calls import Call
from corral.model.partitions import partition_of

Fields = Mapping[str, Any]
_PREFIXES = {"efs": "elasticfilesystem", "service-quotas": "servicequotas", "resourcegroupstaggingapi": "tag"}
_S3_ACTIONS = {
    "HeadObject": "GetObject",
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListBuckets": "ListAllMyBuckets",
    "CopyObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "DeleteObjects": "DeleteObject",
}


def actions_required_by(environ: Mapping[str, Any], call: Call, body: bytes) -> tuple[RequiredAction, ...]:
    """The actions that the call requires."""
    base = {"aws:requestedregion": call.region, "aws:securetransport": "true"}
    if call.service == "s3":
        return (_s3(environ, call, base),)
    fields = call_fields(environ, body)
    if call.service == "ec2":
        return tuple(required_actions_ec2.ec2_actions_required_by(call, fields, base))
    prefix = _PREFIXES.get(call.service, call.service)
    name, path = f"{prefix}:{call.action}", str(environ.get("PATH_INFO", ""))
    resources = tuple(tagged_resources(prefix, call, fields, path))
    if (find := _RESOURCES.get(name) or _RESOURCES.get(prefix)) is not None:
        resources = tuple(TaggedResource(arn=arn) for arn in find(call, fields, path))
    resources = tuple(managed_node_resources(name, call, fields)) or resources
    if call.action == "PutMetricData":
        base["cloudwatch:namespace"] = str(fields.get("Namespace", ""))
    own = (
        RequiredAction(action=name, resource=one.arn, context={**base, **one.context})
        for one in resources or (TaggedResource(arn="*"),)
    )
    return (*own, *dependent_actions(name, call, fields, path, base))


def call_fields(environ: Mapping[str, Any], body: bytes) -> Fields:
    """The parameters of a call: JSON as it is, a form by its flat names (`InstanceId.1`)."""
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(body.decode("utf-8", "replace")))
    if body[:1] == b"{":
        with suppress(ValueError):
            found: Fields = json.loads(body)
            return found
    return dict(parse_qsl(environ.get("QUERY_STRING", "")))


def _s3(environ: Mapping[str, Any], call: Call, base: Mapping[str, str]) -> RequiredAction:
    """The action of an S3 call. The bucket is in the path, as clients do for an IP address."""
    bucket, _, key = unquote(str(environ.get("PATH_INFO", ""))).lstrip("/").partition("/")
    action = _S3_ACTIONS.get(call.action, call.action)
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    keys = {"s3:prefix": query["prefix"]} if "prefix" in query else {}
    arn = f"arn:{PARTITION}:s3:::{bucket}/{key}" if key else f"arn:{PARTITION}:s3:::{bucket}" if bucket else "*"
    return RequiredAction(action=f"s3:{action}", resource=arn, context={**base, **keys})


def _role(_: Call, fields: Fields, __: str) -> Iterator[str]:
    yield str(fields.get("RoleArn", "*"))


def _simulated(_: Call, fields: Fields, __: str) -> Iterator[str]:
    yield str(fields.get("PolicySourceArn", "*"))


def _topic(_: Call, fields: Fields, __: str) -> Iterator[str]:
    yield str(fields.get("TopicArn", "*"))


def _zone(_: Call, __: Fields, path: str) -> Iterator[str]:
    """.../hostedzone/Z0123/rrset"""
    parts = path.strip("/").split("/")
    if "hostedzone" in parts[:-1]:
        yield f"arn:{PARTITION}:route53:::hostedzone/{parts[parts.index('hostedzone') + 1]}"


def _secret(call: Call, fields: Fields, _: str) -> Iterator[str]:
    """The secret's ARN, which ends in six random characters."""
    from moto.secretsmanager.models import secretsmanager_backends

    named = str(fields.get("SecretId", ""))
    for secret in secretsmanager_backends[ACCOUNT][call.region].secrets.values():
        if named in (secret.arn, secret.name):
            yield secret.arn
            return
    arn = f"arn:{partition_of(call.region).name}:secretsmanager:{call.region}:{ACCOUNT}:secret:{named}-??????"
    yield named if named.startswith("arn:") else arn.replace("??????", "AbCdEf")


def _parameter(call: Call, fields: Fields, _: str) -> Iterator[str]:
    for name in (fields.get("Name", fields.get("Path")), *fields.get("Names", ())):
        if name is not None:
            yield f"arn:{partition_of(call.region).name}:ssm:{call.region}:{ACCOUNT}:parameter/{str(name).lstrip('/')}"


def _repository(call: Call, fields: Fields, _: str) -> Iterator[str]:
    aws, owner = partition_of(call.region).name, fields.get("registryId", ACCOUNT)
    yield f"arn:{aws}:ecr:{call.region}:{owner}:repository/{fields.get('repositoryName', '')}"


def _log_stream(call: Call, fields: Fields, _: str) -> Iterator[str]:
    group, stream = fields.get("logGroupName", ""), fields.get("logStreamName", "")
    yield f"arn:{partition_of(call.region).name}:logs:{call.region}:{ACCOUNT}:log-group:{group}:log-stream:{stream}"


_RESOURCES: Mapping[str, Callable[[Call, Fields, str], Iterator[str]]] = {
    "iam:SimulatePrincipalPolicy": _simulated,
    "sts:AssumeRole": _role,
    "sns:Publish": _topic,
    "route53": _zone,
    "secretsmanager:GetSecretValue": _secret,
    "secretsmanager:PutSecretValue": _secret,
    "secretsmanager:DescribeSecret": _secret,
    "ssm:GetParameter": _parameter,
    "ssm:GetParameters": _parameter,
    "ssm:GetParametersByPath": _parameter,
    "ecr:BatchCheckLayerAvailability": _repository,
    "ecr:BatchGetImage": _repository,
    "ecr:GetDownloadUrlForLayer": _repository,
    "logs:CreateLogStream": _log_stream,
    "logs:PutLogEvents": _log_stream,
}
