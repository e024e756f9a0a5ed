"""Capacity reservations and their state over time.

`reservation_matching` decides whether a launch may use one; `blocks` creates those of Capacity Blocks.
Sources: EC2 API reference, CapacityReservation; EC2 user guide, "On-Demand Capacity Reservations".
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.utils import random_id

from corral.box.api_errors import ApiError

ID = re.compile(r"cr-[0-9a-f]{17}")
ID_FORMAT = "cr-xxxxxxxxxxxxxxxxx"
# The states of instances that use capacity. Those that end use theirs until EC2 has cleaned it: EC2 user guide, "Launch
# instances using Capacity Blocks".
CAPACITY_STATES = ("pending", "running", "stopping", "shutting-down")
BLOCK_DRAIN = timedelta(minutes=30)  # before a block's end, when AWS begins to terminate its instances
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S.000Z"


@dataclass(kw_only=True, eq=False)
class CapacityReservation:
    """Capacity for instances of one type in one zone. Times are UTC. The EC2 backend holds its tags."""

    ec2_backend: Any
    id: str
    instance_type: str
    platform: str
    zone: str
    count: int
    criteria: str = "open"
    tenancy: str = "default"
    ebs_optimized: bool = False
    ephemeral_storage: bool = False
    placement_group_arn: str | None = None
    created: datetime
    start: datetime
    end: datetime | None = None
    block_id: str | None = None
    cancelled: bool = False
    drained: bool = False  # of a block: its instances were terminated

    @property
    def arn(self) -> str:
        """The Amazon resource name."""
        backend = self.ec2_backend
        return f"arn:{backend.partition}:ec2:{backend.region_name}:{backend.account_id}:capacity-reservation/{self.id}"

    @property
    def is_over(self) -> bool:
        """True once it is cancelled or expired; it is still listed."""
        return self.state_at(utcnow()) in ("cancelled", "expired")

    def state_at(self, now: datetime) -> str:
        """The state at a time."""
        if self.cancelled:
            return "cancelled"
        if now < self.start:
            return "scheduled"
        return "expired" if self.end and now >= self.end else "active"

    def free_at(self, now: datetime, used: int) -> int:
        """The free capacity at a time with `used` instances; none in the last minutes of a block."""
        ending = self.block_id and self.end and now >= self.end - BLOCK_DRAIN
        return self.count - used if self.state_at(now) == "active" and not ending else 0

    def get_filter_value(self, name: str, _method: str | None = None) -> Any:
        """The value for a filter of DescribeCapacityReservations."""
        shown = self.describe(utcnow(), 0)
        if name in ("start-date", "end-date"):
            moment = self.start if name == "start-date" else self.end
            return moment.strftime(TIME_FORMAT) if moment else ""
        field = "".join(word.capitalize() for word in name.split("-"))
        if field not in shown:
            raise NotImplementedError(f"The filter '{name}'")
        return shown[field] or ""

    def describe(self, now: datetime, used: int) -> dict[str, Any]:
        """The reservation as in the API, at a time with `used` instances.

        A block has no capacity before its start: its size is in a tag (EC2 user guide, "View Capacity Blocks").
        """
        state, backend = self.state_at(now), self.ec2_backend
        return {
            "CapacityReservationId": self.id,
            "OwnerId": backend.account_id,
            "CapacityReservationArn": self.arn,
            "AvailabilityZone": self.zone,
            "AvailabilityZoneId": backend.get_zone_by_name(self.zone).zone_id,
            "InstanceType": self.instance_type,
            "InstancePlatform": self.platform,
            "Tenancy": self.tenancy,
            "TotalInstanceCount": 0 if state == "scheduled" else self.count,
            "AvailableInstanceCount": self.free_at(now, used),
            "EbsOptimized": self.ebs_optimized,
            "EphemeralStorage": self.ephemeral_storage,
            "State": state,
            "StartDate": self.start,
            "EndDate": self.end,
            "EndDateType": "limited" if self.end else "unlimited",
            "InstanceMatchCriteria": self.criteria,
            "CreateDate": self.created,
            "Tags": [{"Key": key, "Value": value} for key, value in backend.tags.get(self.id, {}).items()],
            "PlacementGroupArn": self.placement_group_arn,
            "CapacityAllocations": [{"AllocationType": "used", "Count": used}] if used else [],
            "ReservationType": "capacity-block" if self.block_id else "default",
            "CapacityBlockId": self.block_id,
        }


class CapacityReservations:
    """The EC2 backend's capacity reservations, by id."""

    capacity_reservations: dict[str, CapacityReservation]
    reservation_tokens: dict[str, tuple[str, CapacityReservation]]

    def get_capacity_reservation(self, reservation_id: str) -> CapacityReservation:
        """The reservation of that id. Raises ApiError if there is none (EC2 API reference, error codes)."""
        if not ID.fullmatch(reservation_id):
            raise ApiError("InvalidCapacityReservationId.Malformed", "The ID for the Capacity Reservation is malformed."
                          f" Ensure that you specify the Capacity Reservation ID in the form {ID_FORMAT}.")  # fmt: skip
        if reservation_id not in self.capacity_reservations:
            raise ApiError("InvalidCapacityReservationId.NotFound", "The specified Capacity Reservation ID does not"
                          f" exist: {reservation_id}")  # fmt: skip
        return self.capacity_reservations[reservation_id]

    def reserve_capacity(self: Any, tags: dict[str, str], **fields: Any) -> CapacityReservation:
        """Create a reservation."""
        made = CapacityReservation(ec2_backend=self, id=random_id("cr", 17), **fields)
        self.capacity_reservations[made.id] = made
        self.create_tags([made.id], tags)
        return made

    def used_capacity(self: Any) -> Counter[str]:
        """The number of instances, by reservation id."""
        instances = self.all_instances()
        return Counter(
            i.capacity_reservation_id for i in instances if i.capacity_reservation_id and i.state in CAPACITY_STATES
        )

    def instances_in(self: Any, reservation: CapacityReservation) -> list[Any]:
        """The pending and running instances of a reservation."""
        return [
            i
            for i in self.all_instances()
            if i.capacity_reservation_id == reservation.id and i.state in ("pending", "running")
        ]

    def reservations_in_group(self, group_arn: str) -> list[CapacityReservation]:
        """The active reservations in a placement group; they prevent its deletion."""
        held = [held for held in self.capacity_reservations.values() if held.placement_group_arn == group_arn]
        return [reservation for reservation in held if not reservation.is_over]

    def check_zone_of_group(self: Any, group: Any, zone: str) -> None:
        """Raises ApiError if a cluster placement group already has instances or reservations in another zone.

        Source of code and text: bcbio/bcbio-nextgen-vm#45, hashicorp/terraform#16183.
        """
        held = [reservation.zone for reservation in self.reservations_in_group(group.arn)]
        held += [instance.placement.zone for instance in self.all_instances() if _is_in(instance, group)]
        for other in held:
            if other != zone:
                raise ApiError("InvalidPlacementGroup.InUse", f"The placement group '{group.name}' is in use in another"
                              f" availability zone: {other}")  # fmt: skip

    def iter_tagged_resources(self: Any) -> Iterator[Any]:
        """The tagged resources that still exist, with reservations and blocks."""
        yield from super().iter_tagged_resources()  # type: ignore[misc]
        for kind in ("capacity-reservation", "capacity-block"):
            for held in getattr(self, f"{kind.replace('-', '_')}s").values():
                if not held.is_over:
                    yield self._tagged(kind, held.id)


def _is_in(instance: Any, group: Any) -> bool:
    return bool(instance.placement.group_name == group.name and instance.state != "terminated")
