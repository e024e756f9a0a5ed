"""Alertmanager's messages for the cluster's topic. It speaks to the agent as to SNS, and the agent publishes.

Only root uses the head's role, which may launch machines, so Alertmanager has no credentials of AWS: what it signs with
is made up. The agent takes a message from it and nothing else: it knows the topic itself.
Source: Amazon SNS API reference, Publish and "Common errors".
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.model.printable import printable

MESSAGE_BYTES = 512 * 1024  # SNS takes 256 KiB; as a form, some characters are three
_SUBJECT = 100  # characters of ASCII
_DONE = """<PublishResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishResult><MessageId>{id}</MessageId>\
</PublishResult><ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata></PublishResponse>"""
_FAILED = """<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>{type}</Type><Code>{code}</Code>\
<Message>{message}</Message></Error><RequestId>none</RequestId></ErrorResponse>"""

log = logging.getLogger("corral.agent")


class AlertTopicError(AgentError):
    """A message cannot be published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTopic:
    """The cluster's topic. `publish`: sends a subject and a text, and returns the message's id or raises AgentError."""

    publish: Callable[[str, str], str]

    def respond(self, form: bytes) -> tuple[int, str]:
        """Publish the message of this form; the status and the document of SNS's answer. Alertmanager repeats a 503."""
        fields = parse_qs(form.decode("utf-8", "replace"), max_num_fields=20)
        if fields.get("Action") != ["Publish"] or not (message := fields.get("Message", [""])[0]):
            return 400, _failed("Sender", "InvalidParameter", "not a message to publish")
        try:
            sent = self.publish(_subject(fields.get("Subject", [""])[0]), message)
        except AgentError as error:
            log.error("alerts: %s", error)
            return 503, _failed("Receiver", "InternalError", str(error))
        return 200, _DONE.format(id=escape(sent))


def topic_of(client: Any, arn: str) -> AlertTopic:
    """The topic with this ARN, by this client of SNS."""

    def publish(subject: str, text: str) -> str:
        with aws_errors_as(AlertTopicError, f"publish an alert to {arn}"):
            return str(client.publish(TopicArn=arn, Subject=subject, Message=text)["MessageId"])

    return AlertTopic(publish=publish)


def _subject(text: str) -> str:
    """A subject that SNS takes: up to a hundred characters of ASCII in one line."""
    return printable(text, _SUBJECT).encode("ascii", "replace").decode() or "corral"


def _failed(kind: str, code: str, message: str) -> str:
    return _FAILED.format(type=kind, code=code, message=escape(message))
