"""The resources of a command or session of Systems Manager: its document and its machines. Hold the cloud's lock.

A call needs permission for each. Without a document, StartSession opens the default shell and needs permission for the
machine alone, unless a statement demands a document by `ssm:SessionDocumentAccessCheck`.
Sources: Service Authorization Reference, AWS Systems Manager; Systems Manager User Guide, "Enforce a session document
permission check" and "Start a session with a document by specifying the session documents in IAM policies".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from corral.box.access.tagged_resources import TaggedResource, tag_context
from corral.box.account import ACCOUNT
from corral.box.api_calls import Call
from corral.model.partitions import partition_of

# Documents of these names are AWS's own, in an ARN without an account.
_OF_AWS = ("AWS-", "AWSEC2-", "AWSFleetManager-", "AmazonCloudWatch-")
_CHECK = "ssm:sessiondocumentaccesscheck"


def managed_node_resources(action: str, call: Call, fields: Mapping[str, Any]) -> Iterator[TaggedResource]:
    """The document and the machines of SendCommand and StartSession; none for other actions."""
    document = str(fields.get("DocumentName") or "")
    if action == "ssm:SendCommand":
        machines = fields.get("InstanceIds") or ("*",)  # targets by tag: on machines whose tags do not count
        yield TaggedResource(arn=document_arn(call, document))
        yield from (_machine(call, str(one)) for one in machines)
    elif action == "ssm:StartSession":
        check = {_CHECK: "true" if document else "false"}
        yield _machine(call, str(fields.get("Target", "*")), check)
        if document:
            yield TaggedResource(arn=document_arn(call, document), context=check)


def document_arn(call: Call, name: str) -> str:
    """The ARN of the document with this name or ARN."""
    if name.startswith("arn:"):
        return name
    owner = "" if name.startswith(_OF_AWS) else ACCOUNT
    return f"arn:{partition_of(call.region).name}:ssm:{call.region}:{owner}:document/{name}"


def _machine(call: Call, instance_id: str, context: Mapping[str, str] | None = None) -> TaggedResource:
    from moto.ec2.models import ec2_backends

    tags = ec2_backends[ACCOUNT][call.region].tags.get(instance_id, {})
    arn = f"arn:{partition_of(call.region).name}:ec2:{call.region}:{ACCOUNT}:instance/{instance_id}"
    return TaggedResource(arn=arn, context={**tag_context(tags, ("aws", "ssm")), **(context or {})})
