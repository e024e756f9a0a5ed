"""How often EC2 lets itself be called: token buckets of an account and region, by requests and by instances.

`take` is pure. A box has the figures of a default account; what is not as there: of the actions with buckets of their
own only those below have them, others count in their category (docs/fidelity.md).
Source: Amazon EC2 developer guide, "Request throttling for the Amazon EC2 API", both tables of bucket sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from corral.box.calls import READS
from corral.box.refusals import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The size of a bucket, and how many tokens come back each second."""

    most: float
    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """How many tokens a bucket had at a moment, in seconds of the system's clock."""

    tokens: float
    at: float


READING, WHOLE_LISTS, CHANGING = Limit(most=100, per_s=20), Limit(most=50, per_s=10), Limit(most=50, per_s=5)
# What is read in one piece, without a filter and without pages, counts in a smaller bucket.
LISTS = frozenset({
    "DescribeInstances", "DescribeInstanceStatus", "DescribeNetworkInterfaces", "DescribeSecurityGroups",
    "DescribeSnapshots", "DescribeSpotInstanceRequests", "DescribeVolumes",
})  # fmt: skip
OWN: Mapping[str, Limit] = {
    "AssociateIamInstanceProfile": Limit(most=100, per_s=5),
    "CreateLaunchTemplateVersion": Limit(most=100, per_s=5),
    "CreateNetworkInterface": Limit(most=100, per_s=5),
    "CreateTags": Limit(most=100, per_s=10),
    "CreateVolume": Limit(most=100, per_s=5),
    "DeleteNetworkInterface": Limit(most=100, per_s=5),
    "DeleteTags": Limit(most=100, per_s=10),
    "DeleteVolume": Limit(most=100, per_s=5),
    "DescribeInstanceTopology": Limit(most=1, per_s=1),
    "DisassociateIamInstanceProfile": Limit(most=100, per_s=5),
    "ModifyInstanceMetadataOptions": Limit(most=100, per_s=5),
    "ModifyLaunchTemplate": Limit(most=100, per_s=5),
    "ModifyNetworkInterfaceAttribute": Limit(most=100, per_s=5),
    "RunInstances": Limit(most=5, per_s=2),
    "StartInstances": Limit(most=5, per_s=2),
    "TerminateInstances": Limit(most=100, per_s=5),
}
INSTANCES: Mapping[str, Limit] = {
    "RunInstances": Limit(most=1000, per_s=2),
    "StartInstances": Limit(most=1000, per_s=2),
    "StopInstances": Limit(most=1000, per_s=20),
    "TerminateInstances": Limit(most=1000, per_s=20),
}
_PAGED = ("MaxResults", "NextToken")


def limit_of(action: str, parameters: Collection[str]) -> Limit:
    """How often this action may be called with these parameters, by their names on the wire."""
    if own := OWN.get(action):
        return own
    if not READS.match(action):
        return CHANGING
    in_parts = any(name.startswith("Filter") or name in _PAGED for name in parameters)
    return WHOLE_LISTS if action in LISTS and not in_parts else READING


def take(bucket: Bucket | None, limit: Limit, count: float, now: float) -> tuple[Bucket, bool]:
    """The bucket after so many tokens were asked for, and whether it had them; if not, none is gone."""
    held = Bucket(tokens=limit.most, at=now) if bucket is None else bucket
    tokens = min(limit.most, held.tokens + max(0.0, now - held.at) * limit.per_s)
    enough = tokens >= count
    return Bucket(tokens=tokens - count if enough else tokens, at=now), enough


def charge_request(backend: Any, action: str, parameters: Collection[str], now: float) -> None:
    """Counts a request. Raises Refused where there were too many."""
    limit = limit_of(action, parameters)
    name = f"{action} as a whole list" if limit is WHOLE_LISTS else action
    _charge(backend, name, limit, 1, now)


def charge_instances(backend: Any, action: str, count: int, now: float) -> None:
    """Counts the instances that a request is about. Raises Refused where there were too many."""
    _charge(backend, f"instances of {action}", INSTANCES[action], count, now)


def _charge(backend: Any, name: str, limit: Limit, count: int, now: float) -> None:
    buckets: dict[str, Bucket] = vars(backend).setdefault("api_buckets", {})
    buckets[name], enough = take(buckets.get(name), limit, count, now)
    if not enough:
        raise Refused("RequestLimitExceeded", "Request limit exceeded.", 503)
