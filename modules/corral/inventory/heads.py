"""A cluster's head as EC2 has it, and commands that Systems Manager runs there: no open port and no key is needed."""

from __future__ import annotations

import base64
import gzip
import shlex
import time
from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from corral.inventory.ec2 import instance_of
from corral.inventory.things import QUEUE_TAG, Thing

_ALIVE = ["pending", "running"]
PAUSE_S = 0.5
# A command is taken back when no agent asked for it so long; Systems Manager allows no less.
# Source: Systems Manager API reference, SendCommand, TimeoutSeconds.
_TAKEN_WITHIN_S = 30
_OVER = frozenset({"Success", "Failed", "Cancelled", "TimedOut", "Undeliverable", "Terminated", "DeliveryTimedOut"})
# GetCommandInvocation shows the first 24,000 characters of what a command printed (API reference). Zipped, that is
# hundreds of jobs; what does not fit cannot be unzipped, and is told.
_ZIPPED = (
    '{ out=$(%s 2>&3 | gzip -9c | base64 -w0; exit "${PIPESTATUS[0]}"); } 3>&2; code=$?; echo "$out"; exit "$code"'
)


class NoAnswer(Exception):
    """A head that did not answer; its text is a sentence."""


def head_of(session: Any, cluster: str) -> Thing | None:
    """The newest instance of the cluster that is none of its queues' and has not ended."""
    filters = [
        {"Name": "tag:corral:cluster", "Values": [cluster]},
        {"Name": "instance-state-name", "Values": _ALIVE},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    found = [instance_of(one) for page in pages for held in page["Reservations"] for one in held["Instances"]]
    heads = sorted((one for one in found if QUEUE_TAG not in one.tags), key=lambda one: str(one.since))
    return heads[-1] if heads else None


def run_by_ssm(
    session: Any, instance_id: str, command: Sequence[str], within_s: float, pause_s: float = PAUSE_S
) -> tuple[int, str, str]:
    """The exit code, output and errors of a command that root runs there. Raises NoAnswer.

    `within_s`: how long to wait for its end; `pause_s`: between two looks.
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
            TimeoutSeconds=_TAKEN_WITHIN_S,
        )
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "AccessDeniedException":
            told = f"AWS does not allow these credentials to ask the head {instance_id} (ssm:SendCommand)"
            raise NoAnswer(told) from None
        if code != "InvalidInstanceId":
            raise
        raise NoAnswer(
            f"the head {instance_id} is not known to Systems Manager - it boots, or its agent is gone"
        ) from None
    command_id = sent["Command"]["CommandId"]
    while time.monotonic() < until:
        answer = _asked(ssm, command_id, instance_id)
        if answer.get("Status") in _OVER:
            return _read(instance_id, answer)
        time.sleep(pause_s)
    raise NoAnswer(f"the head {instance_id} did not answer within {within_s:.0f} s")


def _asked(ssm: Any, command_id: str, instance_id: str) -> dict[str, Any]:
    """The state of a command; nothing in the first moment, when nobody knows it yet."""
    try:
        return dict(ssm.get_command_invocation(CommandId=command_id, InstanceId=instance_id))
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvocationDoesNotExist":
            raise
        return {}


def _read(instance_id: str, answer: dict[str, Any]) -> tuple[int, str, str]:
    code = int(answer["ResponseCode"])
    if code < 0:  # no process has ended there
        raise NoAnswer(f"the head {instance_id} did not take the command: {answer['StatusDetails']}")
    try:
        text = gzip.decompress(base64.b64decode(answer["StandardOutputContent"].strip(), validate=True)).decode()
    except (ValueError, OSError, EOFError) as error:
        raise NoAnswer(f"what the head {instance_id} answered is cut off: {error}") from None
    return code, text, str(answer["StandardErrorContent"])
