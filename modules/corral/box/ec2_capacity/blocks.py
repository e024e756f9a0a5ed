"""Capacity Blocks for ML: their purchase and their end. A block comes with a reservation, through which it is used.

Source: EC2 user guide, "Capacity Blocks for ML", "Find and purchase Capacity Blocks", "View Capacity Blocks".
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import StateReason
from moto.ec2.utils import generic_filter, random_id

from corral.box.api_errors import ApiError
from corral.box.ec2_capacity.block_offerings import VALID_HOURS, Offering, offerings
from corral.box.ec2_capacity.reservation_api import parse_time
from corral.box.ec2_capacity.reservations import BLOCK_DRAIN, TIME_FORMAT, CapacityReservation
from corral.box.zones import zones_offering

MAX_INSTANCES = 64  # instances in a block
MAX_OFFERINGS = 6  # offerings in a response
PURCHASE_WINDOW = timedelta(minutes=30)  # after the start of an offering; AWS documents none
QUANTITY = "aws:ec2capacityreservation:incrementalRequestedQuantity"
TYPE = "aws:ec2capacityreservation:capacityReservationType"


@dataclass(kw_only=True, eq=False)
class CapacityBlock:
    """A purchased block and its reservation."""

    id: str
    reservation: CapacityReservation

    @property
    def is_over(self) -> bool:
        """True once it has ended; it is still listed."""
        return self.reservation.is_over

    def get_filter_value(self, name: str, _method: str | None = None) -> Any:
        """The value for a filter of DescribeCapacityBlocks."""
        held = self.reservation
        values = {
            "capacity-block-id": self.id,
            "availability-zone": held.zone,
            "ultraserver-type": "instances",
            "state": held.state_at(utcnow()),
            "start-date": held.start.strftime(TIME_FORMAT),
            "end-date": held.end.strftime(TIME_FORMAT) if held.end else "",
            "create-date": held.created.strftime(TIME_FORMAT),
        }
        if name not in values:
            raise NotImplementedError(f"The filter '{name}'")
        return values[name]

    def describe(self, state: str) -> dict[str, Any]:
        """The block as in the API."""
        held = self.reservation
        backend = held.ec2_backend
        return {
            "CapacityBlockId": self.id,
            "AvailabilityZone": held.zone,
            "AvailabilityZoneId": backend.get_zone_by_name(held.zone).zone_id,
            "CapacityReservationIds": [held.id],
            "StartDate": held.start,
            "EndDate": held.end,
            "CreateDate": held.created,
            "State": state,
            "Tags": [{"Key": key, "Value": value} for key, value in backend.tags.get(self.id, {}).items()],
        }


class CapacityBlocks:
    """The EC2 backend's Capacity Blocks."""

    capacity_blocks: dict[str, CapacityBlock]
    block_offerings: dict[str, Offering]
    sold_offerings: set[str]

    def find_offerings(
        self: Any, kind: str, count: int, hours: int, now: datetime, earliest: datetime, latest: datetime
    ) -> list[Offering]:
        """The offerings of a query, available for purchase by id."""
        zones = zones_offering(kind, self.region_name)
        found = offerings(kind, zones, count, hours, now, earliest)
        shown = [self._next_like(offer) for offer in islice((one for one in found if one.end <= latest), MAX_OFFERINGS)]
        self.block_offerings |= {offer.id: offer for offer in shown}
        return shown

    def buy_block(self: Any, offering_id: str, platform: str, tags: dict[str, Any], now: datetime) -> CapacityBlock:
        """Purchase an offering. Returns its block. Raises ApiError (EC2 API reference, error codes)."""
        offer = self._offering(offering_id, now)
        block_id = random_id("cb", 17)
        reserved = {QUANTITY: str(offer.count), TYPE: "capacity-block"}
        reservation = self.reserve_capacity(
            {**reserved, **tags.get("capacity-reservation", {})},
            instance_type=offer.instance_type,
            platform=platform,
            zone=offer.zone,
            count=offer.count,
            criteria="targeted",
            created=now,
            start=offer.start,
            end=offer.end,
            block_id=block_id,
        )
        self.sold_offerings.add(offering_id)
        self.create_tags([block_id], tags.get("capacity-block", {}))
        block = self.capacity_blocks[block_id] = CapacityBlock(id=block_id, reservation=reservation)
        return block

    def end_blocks(self: Any, now: datetime) -> bool:
        """Terminate instances in blocks that end within half an hour. Stopped ones remain, and cannot start.

        Returns True if an instance was terminated.
        """
        ended = False
        for block in self.capacity_blocks.values():
            reservation = block.reservation
            if reservation.drained or now < reservation.end - BLOCK_DRAIN:
                continue
            for instance in self.instances_in(reservation):
                instance.terminate()
                instance.state_reason, instance._reason = StateReason(), ""  # AWS's reason is not documented
                ended = True
            reservation.drained = True  # no instance can start in it
        return ended

    def _next_like(self: Any, offer: Offering) -> Offering:
        """The offering, or the next equal one if it is sold: capacity is unlimited."""
        while offer.id in self.sold_offerings:
            offer = replace(offer, number=offer.number + 1)
        return offer

    def _offering(self: Any, offering_id: str, now: datetime) -> Offering:
        if not offering_id.startswith("cb-"):
            raise ApiError("InvalidCapacityBlockOfferingIdMalformed", "The Capacity Block offering ID is malformed.")
        offer = self.block_offerings.get(offering_id)
        if offer is None:
            text = "The Capacity Block offering ID cannot be found for this account."
            raise ApiError("InvalidCapacityBlockOfferingIdNotFound", text)
        if offering_id in self.sold_offerings or now > offer.start + PURCHASE_WINDOW:
            text = "The Capacity Block offering ID is no longer available."
            raise ApiError("InvalidCapacityBlockOfferingIdExpired", text)
        return offer  # type: ignore[no-any-return]


class BlockActions:
    """The actions on Capacity Blocks."""

    def describe_capacity_block_offerings(self: Any) -> ActionResult:
        """DescribeCapacityBlockOfferings."""
        now = utcnow()
        kind, count, hours = self._get_param("InstanceType"), self._get_param("InstanceCount", 1), self._block_hours()
        if kind not in INSTANCE_TYPES or "capacity-block" not in INSTANCE_TYPES[kind]["SupportedUsageClasses"]:
            raise ApiError("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType; there are no Capacity"
                          " Blocks of it.")  # fmt: skip
        if not 1 <= int(count) <= MAX_INSTANCES:
            raise ApiError("InvalidParameterValue", f"Invalid value '{count}' for InstanceCount; a Capacity Block has 1"
                          f" to {MAX_INSTANCES} instances.")  # fmt: skip
        self.error_on_dryrun()
        earliest = parse_time(self._get_param("StartDateRange")) or now
        latest = parse_time(self._get_param("EndDateRange")) or datetime.max
        found = self.ec2_backend.find_offerings(kind, int(count), hours, now, earliest, latest)
        page, token = self._reservation_page(found)
        return ActionResult({"CapacityBlockOfferings": [offer.describe() for offer in page], "NextToken": token})

    def purchase_capacity_block(self: Any) -> ActionResult:
        """PurchaseCapacityBlock; the payment is pending in the answer and made right after it."""
        for name in ("CapacityBlockOfferingId", "InstancePlatform"):
            if not self._get_param(name):
                raise ApiError("MissingParameter", f"The request must contain the parameter {name}")
        platform, tags = self._reservation_choice("InstancePlatform", None), self._parse_tag_specification()
        self.error_on_dryrun()
        now = utcnow()
        block = self.ec2_backend.buy_block(self._get_param("CapacityBlockOfferingId"), platform, tags, now)
        unpaid = {"State": "payment-pending", "TotalInstanceCount": 0, "AvailableInstanceCount": 0}
        bought = {**block.reservation.describe(now, 0), **unpaid}
        return ActionResult({"CapacityReservation": bought, "CapacityBlocks": [block.describe("payment-pending")]})

    def describe_capacity_blocks(self: Any) -> ActionResult:
        """DescribeCapacityBlocks."""
        held, now = self.ec2_backend.capacity_blocks, utcnow()
        ids = self._get_param("CapacityBlockIds", [])
        if unknown := [name for name in ids if name not in held]:
            raise ApiError("InvalidCapacityBlockId.NotFound", f"The Capacity Block ID does not exist: {unknown[0]}")
        found = generic_filter(self._filters_from_querystring(), [held[name] for name in ids] or list(held.values()))
        page, token = self._reservation_page(found)
        shown = [block.describe(block.reservation.state_at(now)) for block in page]
        return ActionResult({"CapacityBlocks": shown, "NextToken": token})

    def _block_hours(self: Any) -> int:
        given = self._get_param("CapacityDurationHours")
        if given is None:
            raise ApiError("MissingParameter", "The request must contain the parameter CapacityDurationHours")
        if int(given) not in VALID_HOURS:
            raise ApiError("InvalidParameterValue", f"Invalid value '{given}' for CapacityDurationHours; specify it in"
                          " 1-day increments up to 14 days, and in 7-day increments up to 182 days.")  # fmt: skip
        return int(given)
