"""A cluster's head instance, and programs that Systems Manager runs on it. They need no open port and no key."""

from __future__ import annotations

import base64
import gzip
import time
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.ec2_resources import instance_of
from corral.inventory.resources import AwsResource
from corral.model.tags import CLUSTER_TAG, is_head, tag_filter
from corral.plan.iam.head_documents import ARGUMENTS, TIMEOUT, HeadDocument, document_of

_ALIVE = ["pending", "running"]
PAUSE_S = 0.5
# Systems Manager cancels a command that no agent picks up within this time, its minimum.
# Source: Systems Manager API reference, SendCommand, TimeoutSeconds.
_PICKUP_TIMEOUT_S = 30
_OVER = frozenset({"Success", "Failed", "Cancelled", "TimedOut", "Undeliverable", "Terminated", "DeliveryTimedOut"})


class HeadCommandError(Exception):
    """A command on a head failed or timed out; the text is a message for the user."""


def head_of(session: Any, cluster: str) -> AwsResource | None:
    """The newest pending or running head of the cluster."""
    filters = [
        tag_filter(CLUSTER_TAG, cluster),
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    found = [instance_of(one) for page in pages for held in page["Reservations"] for one in held["Instances"]]
    heads = sorted((one for one in found if is_head(one.tags)), key=lambda one: str(one.since))
    return heads[-1] if heads else None


def run_by_ssm(
    session: Any, instance_id: str, arguments: Sequence[str], within_s: float, pause_s: float = PAUSE_S
) -> tuple[int, str, str]:
    """The exit code, output and errors of a command of the instance's agent. Raises HeadCommandError.

    `arguments`: the command and its options. `within_s`: the timeout; `pause_s`: the polling interval.
    """
    ssm, until, document = session.client("ssm"), time.monotonic() + within_s, document_of(arguments)
    try:
        sent = ssm.send_command(
            InstanceIds=[instance_id],
            DocumentName=document.name,
            Parameters={ARGUMENTS: [" ".join(arguments)], TIMEOUT: [str(int(within_s) + 30)]},
            TimeoutSeconds=_PICKUP_TIMEOUT_S,
        )
    except ClientError as error:
        raise HeadCommandError(_refused(error, instance_id, "SendCommand", document)) from None
    command_id = sent["Command"]["CommandId"]
    while time.monotonic() < until:
        invocation = _invocation(ssm, command_id, instance_id)
        if invocation.get("Status") in _OVER:
            return _result(instance_id, invocation)
        time.sleep(pause_s)
    raise HeadCommandError(f"the head {instance_id} did not answer within {within_s:.0f} s")


def start_session(session: Any, instance_id: str, document: HeadDocument, parameters: Mapping[str, list[str]]) -> str:
    """The id of a new session on the instance. Raises HeadCommandError."""
    ssm = session.client("ssm")
    try:
        started = ssm.start_session(Target=instance_id, DocumentName=document.name, Parameters=dict(parameters))
    except ClientError as error:
        raise HeadCommandError(_refused(error, instance_id, "StartSession", document)) from None
    return str(started["SessionId"])


def _refused(error: ClientError, instance_id: str, call: str, document: HeadDocument) -> str:
    """Why Systems Manager refuses the call, as a sentence. Raises an error that is not about document and head."""
    match error.response["Error"]["Code"]:
        case "AccessDeniedException":
            return f"AWS does not allow these credentials ssm:{call} with {document.name} on the head {instance_id}"
        case "InvalidDocument" | "InvalidParameters":
            return f"the document {document.name} is missing or old in this region - `corral bootstrap` creates it"
        case "InvalidInstanceId" | "TargetNotConnected":
            why = "it is booting, or its agent has stopped"
            return f"the head {instance_id} is not registered with Systems Manager - {why}"
    raise error


def _invocation(ssm: Any, command_id: str, instance_id: str) -> dict[str, Any]:
    """The state of a command; empty until Systems Manager has registered it."""
    try:
        return dict(ssm.get_command_invocation(CommandId=command_id, InstanceId=instance_id))
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvocationDoesNotExist":
            raise
        return {}


def _result(instance_id: str, invocation: dict[str, Any]) -> tuple[int, str, str]:
    code = int(invocation["ResponseCode"])
    if code < 0:  # no process has ended there
        raise HeadCommandError(f"the head {instance_id} rejected the command: {invocation['StatusDetails']}")
    try:
        text = gzip.decompress(base64.b64decode(invocation["StandardOutputContent"].strip(), validate=True)).decode()
    except (ValueError, OSError, EOFError) as error:
        raise HeadCommandError(f"the response of head {instance_id} is truncated: {error}") from None
    return code, text, str(invocation["StandardErrorContent"])
