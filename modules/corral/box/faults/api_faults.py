"""Faults of API calls: throttling and errors, with AWS's status and text. Hold the cloud's lock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from corral.box.account import OWNER_ARN
from corral.box.api_errors import ApiError
from corral.box.faults import store
from corral.box.faults.matching import FaultContext
from corral.box.faults.records import Refuse, Throttle

# HTTP status and text of errors; other codes have status 400. Source: EC2 API reference, "Error codes"; the texts of
# quotas and permissions as SDKs print them.
ERRORS: Mapping[str, tuple[int, str]] = {
    "RequestLimitExceeded": (503, "Request limit exceeded."),
    "VcpuLimitExceeded": (
        400,
        "You have requested more vCPU capacity than your current vCPU limit of 0 allows for the instance bucket that"
        " the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request"
        " an adjustment to this limit.",
    ),
    "MaxSpotInstanceCountExceeded": (400, "Max spot instance count exceeded"),
    "InstanceLimitExceeded": (400, "Your quota allows for 0 more running instance(s). You requested at least 1"),
    "UnauthorizedOperation": (
        403,
        "You are not authorized to perform this operation. User: {user} is not authorized to perform: {call} because"
        " no identity-based policy allows the {call} action",
    ),
    "AccessDenied": (403, "User: {user} is not authorized to perform: {call}"),
    "AccessDeniedException": (400, "User: {user} is not authorized to perform: {call}"),
    "Throttling": (400, "Rate exceeded"),
    "ThrottlingException": (400, "Rate exceeded"),
    "SpotMaxPriceTooLow": (400, "Your Spot request price is lower than the minimum required Spot request price."),
    "InsufficientFreeAddressesInSubnet": (400, "There are not enough free addresses in the subnet."),
    "InsufficientInstanceCapacity": (500, "Insufficient capacity."),
    "InsufficientHostCapacity": (500, "Insufficient host capacity."),
    "InsufficientReservedInstanceCapacity": (500, "Insufficient reserved instance capacity."),
    "InsufficientVolumeCapacity": (500, "Insufficient volume capacity."),
    "UnfulfillableCapacity": (400, "Unfulfillable capacity."),  # a client error, unlike the others
    "InternalError": (500, "An internal error has occurred"),
    "InternalFailure": (500, "The request processing has failed because of an unknown error, exception, or failure."),
    "Unavailable": (503, "The service is unavailable. Please try again shortly."),
    "ServiceUnavailable": (503, "The request has failed due to a temporary failure of the server."),
}


def raise_api_faults(context: FaultContext, now: datetime) -> None:
    """Raises ApiError if a fault refuses this call."""
    if store.consume(Throttle, context, now):
        raise fault_error("RequestLimitExceeded", context.call)
    if hit := store.consume(Refuse, context, now):
        raise fault_error(hit.code, context.call, hit.message)


def fault_error(code: str, call: str, message: str | None = None) -> ApiError:
    """The error with this code; without a message, with AWS's text."""
    status, text = ERRORS.get(code, (400, "The box refuses {call} because of a fault."))
    return ApiError(code, message or text.format(call=call, user=OWNER_ARN), status)
