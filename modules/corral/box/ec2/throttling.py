"""EC2 request throttling: token buckets of an account and region, for requests and for instances.

The limits are those of a default account. Only the actions below have their own buckets; others count in their
category (docs/fidelity.md).
Source: Amazon EC2 developer guide, "Request throttling for the Amazon EC2 API", both tables of bucket sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from corral.box.api_calls import READS
from corral.box.api_errors import ApiError
from corral.model.token_bucket import TokenBucket, full_bucket

NON_MUTATING, UNFILTERED, MUTATING = (
    full_bucket(capacity=100, refill_per_s=20),
    full_bucket(capacity=50, refill_per_s=10),
    full_bucket(capacity=50, refill_per_s=5),
)
# Without a filter and pagination these count in a smaller bucket.
LIST_ACTIONS = frozenset({
    "DescribeInstances", "DescribeInstanceStatus", "DescribeNetworkInterfaces", "DescribeSecurityGroups",
    "DescribeSnapshots", "DescribeSpotInstanceRequests", "DescribeVolumes",
})  # fmt: skip
PER_ACTION: Mapping[str, TokenBucket] = {
    "AssociateIamInstanceProfile": full_bucket(capacity=100, refill_per_s=5),
    "CreateLaunchTemplateVersion": full_bucket(capacity=100, refill_per_s=5),
    "CreateNetworkInterface": full_bucket(capacity=100, refill_per_s=5),
    "CreateTags": full_bucket(capacity=100, refill_per_s=10),
    "CreateVolume": full_bucket(capacity=100, refill_per_s=5),
    "DeleteNetworkInterface": full_bucket(capacity=100, refill_per_s=5),
    "DeleteTags": full_bucket(capacity=100, refill_per_s=10),
    "DeleteVolume": full_bucket(capacity=100, refill_per_s=5),
    "DescribeInstanceTopology": full_bucket(capacity=1, refill_per_s=1),
    "DisassociateIamInstanceProfile": full_bucket(capacity=100, refill_per_s=5),
    "ModifyInstanceMetadataOptions": full_bucket(capacity=100, refill_per_s=5),
    "ModifyLaunchTemplate": full_bucket(capacity=100, refill_per_s=5),
    "ModifyNetworkInterfaceAttribute": full_bucket(capacity=100, refill_per_s=5),
    "RunInstances": full_bucket(capacity=5, refill_per_s=2),
    "StartInstances": full_bucket(capacity=5, refill_per_s=2),
    "TerminateInstances": full_bucket(capacity=100, refill_per_s=5),
}
PER_INSTANCE: Mapping[str, TokenBucket] = {
    "RunInstances": full_bucket(capacity=1000, refill_per_s=2),
    "StartInstances": full_bucket(capacity=1000, refill_per_s=2),
    "StopInstances": full_bucket(capacity=1000, refill_per_s=20),
    "TerminateInstances": full_bucket(capacity=1000, refill_per_s=20),
}
_PAGED = ("MaxResults", "NextToken")


def bucket_of_action(action: str, parameters: Collection[str]) -> TokenBucket:
    """The full bucket of an action with these parameters, by their names on the wire."""
    if own := PER_ACTION.get(action):
        return own
    if not READS.match(action):
        return MUTATING
    in_parts = any(name.startswith("Filter") or name in _PAGED for name in parameters)
    return UNFILTERED if action in LIST_ACTIONS and not in_parts else NON_MUTATING


def charge_request(backend: Any, action: str, parameters: Collection[str], now: float) -> None:
    """Count a request. Raises ApiError if there were too many."""
    full = bucket_of_action(action, parameters)
    name = f"{action} as a whole list" if full is UNFILTERED else action
    _charge(backend, name, full, 1, now)


def charge_instances(backend: Any, action: str, count: int, now: float) -> None:
    """Count the instances of a request. Raises ApiError if there were too many."""
    _charge(backend, f"instances of {action}", PER_INSTANCE[action], count, now)


def _charge(backend: Any, name: str, full: TokenBucket, count: int, now: float) -> None:
    buckets: dict[str, TokenBucket] = vars(backend).setdefault("api_buckets", {})
    buckets[name], has_enough = buckets.get(name, full).take(count, now)
    if not has_enough:
        raise ApiError("RequestLimitExceeded", "Request limit exceeded.", 503)
