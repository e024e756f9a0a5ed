"""EC2's launch errors: the kind of each error code, and how long an offer backs off for it.

Source of the codes: EC2 API reference, "Error codes for the Amazon EC2 API"; of the state reasons: EC2 API reference,
"StateReason".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from corral.model.access_denials import PolicyType, parse_access_denials


class LaunchErrorKind(StrEnum):
    """The kinds of launch errors. Events and the saved state contain the values."""

    CAPACITY = "no capacity"
    RESERVED = "no capacity in its reservation"
    NOT_BEGUN = "its capacity block has not begun"
    EARLY_TERMINATION = "ended by EC2 after its launch"
    QUOTA = "quota"
    PERMISSION = "permission"
    REQUEST = "bad request"
    NOT_FOUND = "not found"
    STALE = "launch token reused with other parameters"
    THROTTLE = "throttled"
    NOT_VISIBLE = "not visible yet"
    OUTAGE = "EC2 unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffPolicy:
    """How long an offer backs off: `first_s`, twice as long after each further refusal, at most `longest_s`."""

    first_s: float
    longest_s: float


# Capacity changes within minutes. Reserved capacity is paid for, and returns once EC2 has cleaned the place of an
# instance that has ended, which takes minutes. A block begins at a known minute, and is paid for from then on. A
# quota, a permission or a template needs a person, so the offer is tried again after an hour.
BACKOFF_POLICIES: Mapping[LaunchErrorKind, BackoffPolicy] = {
    LaunchErrorKind.CAPACITY: BackoffPolicy(first_s=600, longest_s=3600),
    LaunchErrorKind.RESERVED: BackoffPolicy(first_s=30, longest_s=60),
    LaunchErrorKind.NOT_BEGUN: BackoffPolicy(first_s=60, longest_s=60),
    LaunchErrorKind.EARLY_TERMINATION: BackoffPolicy(first_s=600, longest_s=3600),
    LaunchErrorKind.QUOTA: BackoffPolicy(first_s=3600, longest_s=3600),
    LaunchErrorKind.PERMISSION: BackoffPolicy(first_s=3600, longest_s=3600),
    LaunchErrorKind.REQUEST: BackoffPolicy(first_s=3600, longest_s=3600),
}


def backoff_policies(first_s: float) -> Mapping[LaunchErrorKind, BackoffPolicy]:
    """BACKOFF_POLICIES with this first backoff of an offer without capacity, and others of capacity in proportion."""
    share = first_s / BACKOFF_POLICIES[LaunchErrorKind.CAPACITY].first_s
    scaled = (LaunchErrorKind.CAPACITY, LaunchErrorKind.EARLY_TERMINATION, LaunchErrorKind.RESERVED)
    return {
        kind: BackoffPolicy(first_s=one.first_s * share, longest_s=one.longest_s * share) if kind in scaled else one
        for kind, one in BACKOFF_POLICIES.items()
    }


# Errors that say nothing about the offer: the same call is made again.
RETRYABLE = frozenset({LaunchErrorKind.THROTTLE, LaunchErrorKind.NOT_VISIBLE, LaunchErrorKind.OUTAGE})
# EC2 may not find what `corral up` has just made. Source: EC2 Developer Guide, "Eventual consistency in the Amazon EC2
# API": up to a few minutes; for instance profiles: hashicorp/terraform#1885, hashicorp/terraform-provider-aws#838.
FOUND_WITHIN_S = 300.0
# Errors that a person has to fix.
NEEDS_ACTION = frozenset({LaunchErrorKind.QUOTA, LaunchErrorKind.PERMISSION, LaunchErrorKind.REQUEST})

_KINDS: Mapping[LaunchErrorKind, tuple[str, ...]] = {
    LaunchErrorKind.CAPACITY: (
        "InsufficientAddressCapacity",
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientVolumeCapacity",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "UnfulfillableCapacity",
        "Unsupported",  # this zone lacks the type; another offer may use another zone
        "VolumeTypeNotAvailableInZone",
        "InsufficientFreeAddressesInSubnet",
    ),
    LaunchErrorKind.NOT_BEGUN: ("InvalidCapacityReservationState.PendingActivation",),
    LaunchErrorKind.QUOTA: (
        "InstanceLimitExceeded",
        "MaxIOPSLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "NetworkInterfaceLimitExceeded",
        "VcpuLimitExceeded",
        "VolumeLimitExceeded",
    ),
    LaunchErrorKind.PERMISSION: (
        "AccessDenied",
        "AuthFailure",
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "Blocked",
        "OptInRequired",
        "PendingVerification",
        "UnauthorizedOperation",
    ),
    LaunchErrorKind.THROTTLE: (
        "ConcurrentTagAccess",  # the tags of the same resource are being changed
        "EC2ThrottledException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
    ),
    LaunchErrorKind.NOT_VISIBLE: ("InvalidInstanceID.NotFound",),
    LaunchErrorKind.NOT_FOUND: (
        "InvalidGroup.NotFound",
        "InvalidKeyPair.NotFound",
        "InvalidLaunchTemplateId.NotFound",
        "InvalidLaunchTemplateId.VersionNotFound",
        "InvalidPlacementGroup.Unknown",
        "InvalidSecurityGroupID.NotFound",
        "InvalidSubnetID.NotFound",
    ),
    LaunchErrorKind.STALE: (
        "IdempotentParameterMismatch",
    ),  # the template has changed; existing instances are listed anyway
    LaunchErrorKind.OUTAGE: (
        # botocore uses the HTTP status if a response has no code
        "500",
        "502",
        "503",
        "504",
        "ExpiredToken",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "ServerInternal",
        "RequestExpired",  # this machine's clock is wrong until chrony corrects it
        "RequestTimeTooSkewed",
        "ServiceUnavailable",
        "Unavailable",
    ),
}
_KIND_OF = {code: kind for kind, codes in _KINDS.items() for code in codes}

# State reasons of instances that end before their node is up; afterwards a spot interruption does not count.
_EARLY_TERMINATIONS = frozenset(
    {
        "Server.InsufficientInstanceCapacity",
        "Server.InternalError",
        "Server.SpotInstanceShutdown",
        "Server.SpotInstanceTermination",
    }
)
_LATE_ERRORS: Mapping[str, LaunchErrorKind] = {
    "Client.InternalError": LaunchErrorKind.PERMISSION,  # usually: no permission for the root volume's key
    "Client.InvalidSnapshot.NotFound": LaunchErrorKind.REQUEST,
    "Client.VolumeLimitExceeded": LaunchErrorKind.QUOTA,
}
_PROFILE_NOT_FOUND = "Invalid IAM Instance Profile"  # in the message of InvalidParameterValue
_CODE = re.compile(r"([A-Z][A-Za-z]+(?:\.[A-Za-z]+)*): ")  # a code, then EC2's message
OWN_SHUTDOWN = "Client.InstanceInitiatedShutdown"  # a machine that fails to boot shuts itself down


def launch_error_kind(code: str, message: str = "") -> LaunchErrorKind:
    """The kind of an error. An unknown code counts as a bad request: the offer backs off, an event reports it."""
    if code == "InvalidParameterValue" and _PROFILE_NOT_FOUND in message:
        return LaunchErrorKind.NOT_FOUND
    return _KIND_OF.get(code, LaunchErrorKind.REQUEST)


def is_retryable(kind: LaunchErrorKind, configured_s: float) -> bool:
    """Whether to make the same call again. `configured_s`: how long ago the configuration was new."""
    return kind in RETRYABLE or (kind is LaunchErrorKind.NOT_FOUND and configured_s < FOUND_WITHIN_S)


def of_reserved(kind: LaunchErrorKind) -> LaunchErrorKind:
    """The kind of a launch error of an offer with reserved capacity."""
    lacks_capacity = kind in (LaunchErrorKind.CAPACITY, LaunchErrorKind.EARLY_TERMINATION)
    return LaunchErrorKind.RESERVED if lacks_capacity else kind


def summarize(why: str) -> str:
    """The code of EC2's message, without its text, whose advice is for other callers. Other texts stay whole.

    A denial that is not for want of the head's own policies has the type of the policy that decided.
    """
    found = _CODE.match(why)
    if found is None:
        return why
    limits = [one.policy_type for one in parse_access_denials(why) if one.policy_type is not PolicyType.IDENTITY]
    return f"{found[1]} ({limits[0]})" if limits else found[1]


def termination_error_kind(reason: str) -> LaunchErrorKind | None:
    """The kind of launch error if an instance ends before its node is up; None if its offer is not the cause."""
    return LaunchErrorKind.EARLY_TERMINATION if reason in _EARLY_TERMINATIONS else _LATE_ERRORS.get(reason)
