"""What EC2's refusals mean: by the kind of an error code, what the keeper does about an offer.

Source of the codes: EC2 API reference, "Error codes for the Amazon EC2 API"; of the state reasons: EC2 API reference,
"StateReason".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of refusals."""

    CAPACITY = "no capacity"
    NOT_BEGUN = "its capacity block has not begun"
    EARLY_DEATH = "ended by EC2 after its launch"
    QUOTA = "quota"
    PERMISSION = "permission"
    REQUEST = "bad request"
    STALE = "an older launch with other words"
    THROTTLE = "throttled"
    LATE = "not visible yet"
    OUTAGE = "EC2 cannot be asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """How long an offer is left alone: `first_s`, after each further refusal twice as long, at most `longest_s`."""

    first_s: float
    longest_s: float


# Capacity comes and goes within minutes; a block begins at its minute, and is paid for from then on. A quota, a
# permission or a template changes when somebody changes it, and an hour later it is tried whether somebody has. A new
# configuration ends every rest.
RESTS: Mapping[Kind, Rest] = {
    Kind.CAPACITY: Rest(first_s=600, longest_s=3600),
    Kind.NOT_BEGUN: Rest(first_s=60, longest_s=60),
    Kind.EARLY_DEATH: Rest(first_s=600, longest_s=3600),
    Kind.QUOTA: Rest(first_s=3600, longest_s=3600),
    Kind.PERMISSION: Rest(first_s=3600, longest_s=3600),
    Kind.REQUEST: Rest(first_s=3600, longest_s=3600),
}


def rests(first_s: float) -> Mapping[Kind, Rest]:
    """RESTS where an offer without capacity is left alone for so long at first."""
    longest_s = RESTS[Kind.CAPACITY].longest_s
    rest = Rest(first_s=first_s, longest_s=longest_s * first_s / RESTS[Kind.CAPACITY].first_s)
    return {**RESTS, Kind.CAPACITY: rest, Kind.EARLY_DEATH: rest}


# What says nothing about the offer: the same call is made again.
AGAIN = frozenset({Kind.THROTTLE, Kind.LATE, Kind.OUTAGE})
# What somebody has to mend; an offer that is refused so is told to the user as refused, not as full.
MENDED_BY_SOMEBODY = frozenset({Kind.QUOTA, Kind.PERMISSION, Kind.REQUEST})

_KINDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.CAPACITY: (
        "InsufficientAddressCapacity",
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",  # this type is not in this zone; another offer may be in another
        "InsufficientFreeAddressesInSubnet",
    ),
    Kind.NOT_BEGUN: ("InvalidCapacityReservationState.PendingActivation",),
    Kind.QUOTA: (
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "NetworkInterfaceLimitExceeded",
        "VcpuLimitExceeded",
        "VolumeLimitExceeded",
    ),
    Kind.PERMISSION: (
        "AccessDenied",
        "AuthFailure",
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "OptInRequired",
        "PendingVerification",
        "UnauthorizedOperation",
    ),
    Kind.THROTTLE: (
        "ConcurrentTagAccess",  # somebody changes the tags of the same thing in this moment
        "EC2ThrottledException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
    ),
    Kind.LATE: ("InvalidInstanceID.NotFound",),
    Kind.STALE: ("IdempotentParameterMismatch",),  # the template has changed since; what there is, is shown
    Kind.OUTAGE: (
        # botocore's word for an answer without a code of its own: the HTTP status
        "500",
        "502",
        "503",
        "504",
        "ExpiredToken",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestExpired",  # this machine's clock is wrong, and chrony mends that
        "RequestTimeTooSkewed",
        "ServiceUnavailable",
        "Unavailable",
    ),
}
_KIND_OF = {code: kind for kind, codes in _KINDS.items() for code in codes}

# An instance that EC2 took and then ended. The spot market's own end is no failure of the offer once a node was up.
_EARLY_DEATHS = frozenset(
    {
        "Server.InsufficientInstanceCapacity",
        "Server.InternalError",
        "Server.SpotInstanceShutdown",
        "Server.SpotInstanceTermination",
    }
)
_REFUSED_LATER: Mapping[str, Kind] = {
    "Client.InternalError": Kind.PERMISSION,  # mostly: the key of the root volume may not be used
    "Client.InvalidSnapshot.NotFound": Kind.REQUEST,
    "Client.VolumeLimitExceeded": Kind.QUOTA,
}
_SAID = re.compile(r"([A-Z][A-Za-z]+(?:\.[A-Za-z]+)*): ")  # a code, then EC2's own words
OWN_SHUTDOWN = "Client.InstanceInitiatedShutdown"  # what a machine that cannot boot does


def kind_of(code: str) -> Kind:
    """What a refusal of a call means. A code that nobody knows counts as a bad request: it rests, and is told."""
    return _KIND_OF.get(code, Kind.REQUEST)


def in_short(why: str) -> str:
    """The code of what EC2 said, without its prose, whose advice is for other callers. Our own words stay whole."""
    found = _SAID.match(why)
    return found[1] if found else why


def kind_of_death(reason: str) -> Kind | None:
    """What the end of an instance before its node was up says of its offer; None: nothing."""
    return Kind.EARLY_DEATH if reason in _EARLY_DEATHS else _REFUSED_LATER.get(reason)
