"""Validate the names in a fault: instance types, zones, calls and queues. Hold the cloud's lock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import UnknownServiceError
from moto.core.utils import get_service_model
from moto.ec2.models import ec2_backends
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPES

from corral.box.account import ACCOUNT
from corral.box.faults.records import FaultError
from corral.box.zones import needs_opt_in
from corral.catalog.loader.suggestions import did_you_mean
from corral.model.tags import QUEUE_TAG

# The services that corral's stacks and agents call; a pattern is matched against these.
SERVICES = (
    "budgets", "cloudwatch", "ec2", "efs", "fsx", "iam", "kms", "logs", "pricing", "resourcegroupstaggingapi",
    "route53", "s3", "secretsmanager", "service-quotas", "sns", "sqs", "ssm", "sts",
)  # fmt: skip
_NODE = re.compile(r"(.+)-\d+")


def known_type(text: str) -> str:
    """The instance type. Raises FaultError."""
    if text not in INSTANCE_TYPES:
        raise FaultError(f"{text!r} is not an EC2 instance type{_perhaps(text, INSTANCE_TYPES)}")
    return text


def known_zone(text: str) -> str:
    """The name of a zone, given by name or id. Raises FaultError."""
    zones = [zone for held in RegionsAndZonesBackend.zones.values() for zone in held]
    found = next((zone.name for zone in zones if text in (zone.name, zone.zone_id)), None)
    if found is None:
        perhaps = _perhaps(text, (name for zone in zones for name in (zone.name, zone.zone_id)))
        raise FaultError(f"{text!r} is not an EC2 zone{perhaps or ' - write e.g. us-east-1a or use1-az1'}")
    return str(found)


def opt_in_region(text: str) -> str:
    """The name of a region that an account can opt in to. Raises FaultError."""
    names = [one.name for one in RegionsAndZonesBackend.regions]
    if text not in names:
        raise FaultError(f"{text!r} is not an AWS region{_perhaps(text, names)}")
    if not needs_opt_in(text):
        raise FaultError(f"every account can use {text} - choose a region that needs an opt-in, e.g. ap-east-1")
    return text


def known_call(text: str) -> str:
    """The call as SERVICE:ACTION (default service: EC2); `*` matches any text. Raises FaultError if none matches."""
    service, _, action = text.rpartition(":")
    service = service or "ec2"
    services = [name for name in SERVICES if fnmatchcase(name, service)] if "*" in service else [service]
    actions = [one for name in services for one in _actions(name)]
    if not any(fnmatchcase(one, action) for one in actions):
        raise FaultError(f"{service} has no call {action!r}{_perhaps(action, actions)}")
    return f"{service}:{action}"


def require_queue(text: str) -> None:
    """Raises FaultError unless this is a queue or node. Accepts any name while no cluster exists."""
    if not text:
        raise FaultError("--target is empty - name a queue or node, or omit it")
    queues = set(_queues())
    node = _NODE.fullmatch(text)
    if queues and text not in queues and (node is None or node[1] not in queues):
        known = f"expected {', '.join(sorted(queues))} or a node"
        raise FaultError(f"{text!r} is neither a queue nor a node{_perhaps(text, queues) or f' - {known}'}")


def _queues() -> Iterator[str]:
    """The queues of all clusters: each has launch templates, whose instances get its tag."""
    for _, backend in ec2_backends[ACCOUNT].items():
        for template in backend.launch_templates.values():
            yield from _tagged(template.default_version().data)


def _tagged(data: Any) -> Iterator[str]:
    for specification in data.get("TagSpecifications") or ():
        yield from (str(tag["Value"]) for tag in specification.get("Tags") or () if tag.get("Key") == QUEUE_TAG)


def _actions(service: str) -> tuple[str, ...]:
    try:
        return tuple(get_service_model(service).operation_names)
    except UnknownServiceError:
        raise FaultError(f"unknown service {service!r}{_perhaps(service, SERVICES)}") from None


def _perhaps(text: str, known: Iterable[str]) -> str:
    question = did_you_mean(text, known)
    return f" - {question}" if question else ""
