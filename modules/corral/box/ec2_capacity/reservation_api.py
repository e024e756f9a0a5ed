"""The actions on capacity reservations: create, describe, modify, cancel, with AWS's errors.

Source: EC2 API reference, the actions of these names; an error that it does not name is likely.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import get_service_model, utcnow
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.utils import generic_filter

from corral.box.api_errors import ApiError
from corral.box.ec2_capacity.quota_enforcement import check_on_demand
from corral.box.ec2_capacity.reservations import CapacityReservation
from corral.box.zones import check_offered

PAGE = 1000  # the largest page of DescribeCapacityReservations
MAX_INSTANCES = 1000  # instances in a reservation
REQUIRED = ("InstanceType", "InstancePlatform", "InstanceCount")
CHOICES = {
    "InstancePlatform": "CapacityReservationInstancePlatform",
    "Tenancy": "CapacityReservationTenancy",
    "InstanceMatchCriteria": "InstanceMatchCriteria",
    "EndDateType": "EndDateType",
}
FUTURE = ("StartDate", "CommitmentDuration", "DeliveryPreference")


class ReservationActions:
    """The actions on capacity reservations."""

    def create_capacity_reservation(self: Any) -> ActionResult:
        """CreateCapacityReservation, for immediate use; the same client token gives the same reservation."""
        backend, now, token = self.ec2_backend, utcnow(), self._get_param("ClientToken")
        fingerprint = repr(sorted((name, repr(value)) for name, value in self.params.items()))
        if token in backend.reservation_tokens:
            known, made = backend.reservation_tokens[token]
            if known != fingerprint:
                raise ApiError("IdempotentParameterMismatch", "The request uses the same client token as a previous,"
                              " but non-identical request.")  # fmt: skip
            return ActionResult({"CapacityReservation": self._shown_reservation(made, now)})
        fields = self._reservation_fields(now)
        tags = self._parse_tag_specification("capacity-reservation").get("capacity-reservation", {})
        self.error_on_dryrun()
        check_on_demand(backend, [fields["instance_type"]] * fields["count"], now)
        made = backend.reserve_capacity(tags, created=now, start=now, **fields)
        backend.adopt_instances(made, now)
        if token:
            backend.reservation_tokens[token] = (fingerprint, made)
        return ActionResult({"CapacityReservation": self._shown_reservation(made, now)})

    def describe_capacity_reservations(self: Any) -> ActionResult:
        """DescribeCapacityReservations, with cancelled and expired ones."""
        backend, now, used = self.ec2_backend, utcnow(), self.ec2_backend.used_capacity()
        named = [backend.get_capacity_reservation(name) for name in self._get_param("CapacityReservationIds", [])]
        held = named or list(backend.capacity_reservations.values())
        found = generic_filter(self._filters_from_querystring(), held)
        page, token = self._reservation_page(found)
        shown = [reservation.describe(now, used[reservation.id]) for reservation in page]
        return ActionResult({"CapacityReservations": shown, "NextToken": token})

    def modify_capacity_reservation(self: Any) -> ActionResult:
        """ModifyCapacityReservation: the count, the end, or the instance eligibility."""
        backend, now = self.ec2_backend, utcnow()
        reservation = backend.get_capacity_reservation(self._get_param("CapacityReservationId"))
        _check_changeable(reservation, now, "modify")
        used = backend.used_capacity()[reservation.id]
        count = self._new_count(reservation, used)
        criteria = self._reservation_choice("InstanceMatchCriteria", reservation.criteria)
        if criteria != reservation.criteria and used:
            raise ApiError("InvalidState", "To modify the instance eligibility, the Capacity Reservation must be"
                          f" completely idle: {used} instances run in {reservation.id}.")  # fmt: skip
        end = (
            self._reservation_end(now)
            if self._get_param("EndDateType") or self._get_param("EndDate")
            else reservation.end
        )
        self.error_on_dryrun()
        check_on_demand(backend, [reservation.instance_type] * (count - reservation.count), now)
        reservation.count, reservation.criteria, reservation.end = count, criteria, end
        backend.adopt_instances(reservation, now)
        return ActionResult({"Return": True})

    def cancel_capacity_reservation(self: Any) -> ActionResult:
        """CancelCapacityReservation; its instances continue."""
        reservation = self.ec2_backend.get_capacity_reservation(self._get_param("CapacityReservationId"))
        _check_changeable(reservation, utcnow(), "cancel")
        self.error_on_dryrun()
        reservation.cancelled = True
        return ActionResult({"Return": True})

    def _shown_reservation(self: Any, reservation: CapacityReservation, now: datetime) -> dict[str, Any]:
        return reservation.describe(now, self.ec2_backend.used_capacity()[reservation.id])

    def _reservation_page(self: Any, items: list[Any]) -> tuple[list[Any], str | None]:
        given = str(self._get_param("NextToken") or 0)
        if not given.isdigit():
            raise ApiError("InvalidPaginationToken", "The specified pagination token is not valid or is expired.")
        end = int(given) + min(self._get_int_param("MaxResults", PAGE), PAGE)
        return items[int(given) : end], str(end) if end < len(items) else None

    def _reservation_fields(self: Any, now: datetime) -> dict[str, Any]:
        for name in REQUIRED:
            if self._get_param(name) is None:
                raise ApiError("MissingParameter", f"The request must contain the parameter {name}")
        if future := [name for name in FUTURE if self._get_param(name)]:
            raise ApiError("UnsupportedOperation", f"The box has no future-dated Capacity Reservations ({future[0]}).")
        kind, zone = str(self._get_param("InstanceType")), self._reservation_zone()
        if kind not in INSTANCE_TYPES:
            raise ApiError("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
        check_offered(kind, zone)
        return {
            "instance_type": kind,
            "platform": self._reservation_choice("InstancePlatform", None),
            "zone": zone,
            "count": _count(self._get_param("InstanceCount")),
            "criteria": self._reservation_choice("InstanceMatchCriteria", "open"),
            "tenancy": self._reservation_choice("Tenancy", "default"),
            "ebs_optimized": bool(self._get_param("EbsOptimized", False)),
            "ephemeral_storage": bool(self._get_param("EphemeralStorage", False)),
            "placement_group_arn": self._group_arn(kind, zone),
            "end": self._reservation_end(now),
        }

    def _reservation_choice(self: Any, name: str, default: str | None) -> str | None:
        value = self._get_param(name, default)
        choices = get_service_model("ec2").shape_for(CHOICES[name]).enum
        if value is not None and value not in choices:
            raise ApiError("InvalidParameterValue", f"Invalid value '{value}' for {name}; valid: {', '.join(choices)}.")
        return value  # type: ignore[no-any-return]

    def _reservation_zone(self: Any) -> str:
        name, zone_id = self._get_param("AvailabilityZone"), self._get_param("AvailabilityZoneId")
        if bool(name) == bool(zone_id):
            code = "InvalidParameterCombination" if name else "MissingParameter"
            raise ApiError(code, "Specify either AvailabilityZone or AvailabilityZoneId.")
        for zone in self.ec2_backend.describe_availability_zones():
            if name == zone.name or zone_id == zone.zone_id:
                return str(zone.name)
        raise ApiError("InvalidAvailabilityZone", f"The specified Availability Zone is not valid: {name or zone_id}")

    def _group_arn(self: Any, kind: str, zone: str) -> str | None:
        """The cluster placement group; those of other strategies have no reservations (user guide)."""
        if not (arn := self._get_param("PlacementGroupArn")):
            return None
        group = self.ec2_backend.get_placement_group(arn.rpartition("/")[2])
        if group.arn != arn:
            raise ApiError("InvalidPlacementGroup.Unknown", f"The Placement Group '{arn}' is unknown.")
        supported = INSTANCE_TYPES[kind].get("PlacementGroupInfo", {}).get("SupportedStrategies", [])
        if group.strategy != "cluster" or group.strategy not in supported:
            raise ApiError("InvalidParameterCombination", f"A Capacity Reservation of '{kind}' cannot be in the"
                          f" {group.strategy} placement group '{group.name}'.")  # fmt: skip
        self.ec2_backend.check_zone_of_group(group, zone)
        return str(group.arn)

    def _reservation_end(self: Any, now: datetime) -> datetime | None:
        given, kind = self._get_param("EndDate"), self._reservation_choice("EndDateType", "unlimited")
        if (kind == "limited") != bool(given):
            raise ApiError("InvalidParameterCombination", "Specify EndDate if EndDateType is limited, and only then.")
        end = parse_time(given)
        if end and end <= now:
            raise ApiError("InvalidParameterValue", f"Invalid value '{end}' for EndDate; it is in the past.")
        return end

    def _new_count(self: Any, reservation: CapacityReservation, used: int) -> int:
        count = _count(self._get_param("InstanceCount", reservation.count))
        if count < used:
            raise ApiError("InvalidParameterValue", f"Invalid value '{count}' for InstanceCount; {used} instances run"
                          f" in {reservation.id}.")  # fmt: skip
        return count


def parse_time(given: Any) -> datetime | None:
    """A time of a request in UTC, naive as moto's times; None if empty."""
    if not given:
        return None
    read = given if isinstance(given, datetime) else datetime.fromisoformat(str(given))
    return read.astimezone(UTC).replace(tzinfo=None) if read.tzinfo else read


def _count(given: Any) -> int:
    """Text: boto/boto3#2962."""
    if not 1 <= int(given) <= MAX_INSTANCES:
        raise ApiError("InvalidParameterValue", f"{given} is an invalid value for InstanceCount. InstanceCount must be"
                      f" between 1 and {MAX_INSTANCES}.")  # fmt: skip
    return int(given)


def _check_changeable(reservation: CapacityReservation, now: datetime, act: str) -> None:
    """Raises ApiError unless the state allows a change.

    Source: API reference, ModifyCapacityReservation and CancelCapacityReservation.
    """
    if reservation.block_id:
        raise ApiError("UnsupportedOperation", f"You can't {act} a Capacity Block: {reservation.id}")
    if (state := reservation.state_at(now)) != "active":
        raise ApiError("InvalidState", f"You can't {act} the Capacity Reservation {reservation.id}: it is {state}.")
