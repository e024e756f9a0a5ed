"""Which capacity reservation a launch uses, by AWS's rules. Pure.

Sources: EC2 user guide, "Launch instances into an existing Capacity Reservation", "Launch instances using Capacity
Blocks" and "Use Capacity Reservations with placement groups"; EC2 API reference, CapacityReservationSpecification and
error codes. Texts seen on AWS have a source; other codes are likely and their texts the box's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from corral.box.api_errors import ApiError
from corral.box.ec2_capacity.reservations import CapacityReservation

BLOCK = "capacity-block"
ONLY = "capacity-reservations-only"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRequest:
    """Instances that need capacity. `group_arn`: their cluster placement group, if any."""

    instance_type: str
    platform: str
    zone: str
    tenancy: str
    group_arn: str | None
    least: int
    most: int

    def fits(self, reservation: CapacityReservation) -> bool:
        """True if the reservation has this type, platform, zone and tenancy; groups are not compared."""
        own = (self.instance_type, self.platform, self.zone, self.tenancy)
        held = (reservation.instance_type, reservation.platform, reservation.zone, reservation.tenancy)
        return own == held


def find_reservation(
    backend: Any, parameters: Mapping[str, Any], wanted: CapacityRequest, used: Counter[str], now: datetime
) -> CapacityReservation | None:
    """The reservation for the instances; None if they run without one.

    Raises ApiError if the requested reservation cannot be used.
    """
    specification = parameters.get("CapacityReservationSpecification") or {}
    preference = specification.get("CapacityReservationPreference")
    target = specification.get("CapacityReservationTarget") or {}
    market = (parameters.get("InstanceMarketOptions") or {}).get("MarketType")
    _check_specification(preference, target, market)
    if target:
        reservation = backend.get_capacity_reservation(target["CapacityReservationId"])
        _check_target(reservation, wanted, market, used, now)
        return reservation  # type: ignore[no-any-return]
    if market == "spot" or preference == "none":
        return None
    found = _open_one(backend, wanted, used, now)
    if found is None and preference == ONLY:
        raise _exceeded()
    return found


def launchable_count(
    reservation: CapacityReservation | None, wanted: CapacityRequest, used: Counter[str], now: datetime
) -> int:
    """How many of the instances can start, limited by the reservation's free capacity."""
    return wanted.most if reservation is None else min(wanted.most, reservation.free_at(now, used[reservation.id]))


def capacity_request_of(backend: Any, instance: Any) -> CapacityRequest:
    """The capacity that a stopped instance needs to start."""
    group = backend.placement_groups.get(instance.placement.group_name)
    return CapacityRequest(
        instance_type=instance.instance_type,
        platform=platform_of(backend.amis.get(instance.image_id)),
        zone=instance.placement.zone,
        tenancy=instance.placement.tenancy,
        group_arn=cluster_arn(group),
        least=1,
        most=1,
    )


def instances_to_adopt(reservation: CapacityReservation, running: list[Any], free: int) -> list[Any]:
    """The running instances that an open reservation adopts when it is created or opened.

    Source: EC2 user guide, "Create a Capacity Reservation", note.
    """
    if reservation.criteria != "open" or reservation.block_id:
        return []
    backend = reservation.ec2_backend
    return [i for i in running if _may_be_taken(i) and _matches(reservation, capacity_request_of(backend, i))][:free]


def platform_of(image: Any) -> str:
    """The platform of an image in a reservation's terms."""
    return "Windows" if getattr(image, "platform", None) == "windows" else "Linux/UNIX"


def cluster_arn(group: Any) -> str | None:
    """The ARN of a cluster placement group; None for other groups, which have no reservations."""
    return str(group.arn) if group is not None and group.strategy == "cluster" else None


def _check_specification(preference: str | None, target: Mapping[str, Any], market: str | None) -> None:
    """Text: gardener/machine-controller-manager-provider-aws#114. A preference of `capacity-reservations-only` is
    allowed with a target (API reference)."""
    if target and preference not in (None, ONLY):
        raise ApiError("InvalidParameterCombination", "The request can include either a CapacityReservationId or a"
                      " CapacityReservationPreference but not both.")  # fmt: skip
    if target.get("CapacityReservationResourceGroupArn"):
        raise ApiError("UnsupportedOperation", "The box has no groups of capacity reservations; target one by its id.")
    if market == "spot" and (target or preference == ONLY):
        raise ApiError("InvalidParameterCombination", "A Spot Instance cannot run in a Capacity Reservation.")
    if market == BLOCK and not target:
        raise ApiError("InvalidParameterCombination", "The market type 'capacity-block' requires a"
                      " CapacityReservationTarget with the ID of the Capacity Block.")  # fmt: skip


def _check_target(
    reservation: CapacityReservation, wanted: CapacityRequest, market: str | None, used: Counter[str], now: datetime
) -> None:
    """Texts: market, terraform-aws-modules/terraform-aws-ec2-instance#404; no capacity or no match,
    hashicorp/terraform-provider-aws#32458; the block's start, error codes."""
    if bool(reservation.block_id) != (market == BLOCK):
        raise ApiError("InvalidParameterValue", "The market type (purchasing) option is not valid. Choose a different"
                      " market type and try again")  # fmt: skip
    if reservation.state_at(now) == "scheduled":
        raise ApiError("InvalidCapacityReservationState.PendingActivation", "Your Capacity Block is not active yet.")
    if not wanted.fits(reservation):
        raise _exceeded()
    _check_group(reservation, wanted)
    if launchable_count(reservation, wanted, used, now) < wanted.least:
        raise _exceeded()


def _check_group(reservation: CapacityReservation, wanted: CapacityRequest) -> None:
    """Reserved instances outside the group are close only by chance: eksctl-io/eksctl#7949 got 11 of 16,
    terraform-aws-modules/terraform-aws-eks#3730 InsufficientInstanceCapacity. The box assumes they are not."""
    if wanted.group_arn and wanted.group_arn != reservation.placement_group_arn:
        raise ApiError("InsufficientInstanceCapacity", f"We currently do not have sufficient {wanted.instance_type}"
                      f" capacity in the Availability Zone you requested ({wanted.zone}).")  # fmt: skip
    if reservation.placement_group_arn and not wanted.group_arn:
        raise _exceeded()


def _open_one(backend: Any, wanted: CapacityRequest, used: Counter[str], now: datetime) -> CapacityReservation | None:
    """The oldest open reservation with capacity for all instances; AWS does not document its choice."""
    for reservation in backend.capacity_reservations.values():
        if reservation.criteria != "open" or not _matches(reservation, wanted):
            continue
        if launchable_count(reservation, wanted, used, now) == wanted.most:
            return reservation  # type: ignore[no-any-return]
    return None


def _matches(reservation: CapacityReservation, wanted: CapacityRequest) -> bool:
    return wanted.fits(reservation) and reservation.placement_group_arn == wanted.group_arn


def _may_be_taken(instance: Any) -> bool:
    specification = instance.capacity_reservation_specification or {}
    is_open = specification.get("CapacityReservationPreference") == "open"
    return is_open and not instance.lifecycle and not instance.capacity_reservation_id


def _exceeded() -> ApiError:
    return ApiError("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and"
                   " available capacity for this request.")  # fmt: skip
