"""A cluster's head instance, and commands that Systems Manager runs on it. They need no open port and no key."""

from __future__ import annotations

import base64
import gzip
import shlex
import time
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.ec2_resources import instance_of
from corral.inventory.resources import AwsResource
from corral.model.tags import CLUSTER_TAG, QUEUE_TAG, tag_filter

_ALIVE = ["pending", "running"]
PAUSE_S = 0.5
# Systems Manager cancels a command that no agent picks up within this time, its minimum.
# Source: Systems Manager API reference, SendCommand, TimeoutSeconds.
_PICKUP_TIMEOUT_S = 30
_OVER = frozenset({"Success", "Failed", "Cancelled", "TimedOut", "Undeliverable", "Terminated", "DeliveryTimedOut"})
# GetCommandInvocation shows the first 24,000 characters of what a command printed (API reference). Zipped, that is
# hundreds of jobs; longer output cannot be unzipped and is an error.
_ZIPPED = (
    '{ out=$(%s 2>&3 | gzip -9c | base64 -w0; exit "${PIPESTATUS[0]}"); } 3>&2; code=$?; echo "$out"; exit "$code"'
)


class HeadCommandError(Exception):
    """A command on a head failed or timed out; the text is a message for the user."""


def head_of(session: Any, cluster: str) -> AwsResource | None:
    """The newest pending or running instance of the cluster that belongs to no queue."""
    filters = [
        tag_filter(CLUSTER_TAG, cluster),
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    found = [instance_of(one) for page in pages for held in page["Reservations"] for one in held["Instances"]]
    heads = sorted((one for one in found if QUEUE_TAG not in one.tags), key=lambda one: str(one.since))
    return heads[-1] if heads else None


def run_by_ssm(
    session: Any, instance_id: str, command: Sequence[str], within_s: float, pause_s: float = PAUSE_S
) -> tuple[int, str, str]:
    """The exit code, output and errors of a command run as root on the instance. Raises HeadCommandError.

    `within_s`: the timeout; `pause_s`: the polling interval.
    """
    ssm, until = session.client("ssm"), time.monotonic() + within_s
    script = _ZIPPED % shlex.join(command)
    try:
        sent = ssm.send_command(
            InstanceIds=[instance_id],
            DocumentName="AWS-RunShellScript",
            Parameters={
                "commands": [shlex.join(("bash", "-c", script))],
                "executionTimeout": [str(int(within_s) + 30)],
            },
            TimeoutSeconds=_PICKUP_TIMEOUT_S,
        )
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "AccessDeniedException":
            message = f"AWS does not allow these credentials to ask the head {instance_id} (ssm:SendCommand)"
            raise HeadCommandError(message) from None
        if code != "InvalidInstanceId":
            raise
        raise HeadCommandError(
            f"the head {instance_id} is not registered with Systems Manager - it is booting, or its agent has stopped"
        ) from None
    command_id = sent["Command"]["CommandId"]
    while time.monotonic() < until:
        invocation = _invocation(ssm, command_id, instance_id)
        if invocation.get("Status") in _OVER:
            return _result(instance_id, invocation)
        time.sleep(pause_s)
    raise HeadCommandError(f"the head {instance_id} did not answer within {within_s:.0f} s")


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
