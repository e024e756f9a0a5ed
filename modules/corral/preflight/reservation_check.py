"""Whether the queues' instances can launch into their reservations and capacity blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.enums import Market
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="reservations")
_USABLE = ("active", "scheduled", "assessing", "delayed")
ENDS_SOON = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation as EC2 describes it. `zones`: its zone, by id and by name. `group`: its placement group's name."""

    id: str
    instance_type: str
    zones: frozenset[str]
    state: str
    total: int
    free: int
    is_block: bool
    is_targeted: bool
    begins: datetime | None
    ends: datetime | None
    group: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationFacts:
    """The existing reservations by id."""

    found: Mapping[str, Reservation] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> ReservationFacts:
    """One request for each id: a single unknown id fails a request for all."""
    ids = sorted({offer.reservation for _, offer in _offers(request) if offer.reservation})
    call = ("ec2", "describe_capacity_reservations", "CapacityReservations")
    found = [one for id in ids for one in aws.list_existing(*call, CapacityReservationIds=[id])]
    return ReservationFacts(found={str(one["CapacityReservationId"]): _reservation(one) for one in found})


def evaluate(request: PreflightRequest, facts: ReservationFacts) -> Iterator[PreflightFinding]:
    """The findings for each offer with a reservation, then for each queue's count."""
    for queue, offer in _offers(request):
        about = f"queue {queue.name}, {offer.reservation}"
        found = facts.found.get(offer.reservation or "")
        if found is None:
            text = "not found in this account and region, or not shared with it"
            yield _FINDINGS.fail(about, text, "list yours with `aws ec2 describe-capacity-reservations`")
            continue
        problems = [*_misfits(about, queue, offer, found), *_times(about, found, request.now)]
        yield from problems
        if not problems:
            yield _FINDINGS.ok(about, f"{found.free} of {found.total} {found.instance_type} free, {found.state}")
    for queue in request.cluster.queues:
        yield from _count(queue, facts)


def _count(queue: QueuePlan, facts: ReservationFacts) -> Iterator[PreflightFinding]:
    """A queue with reservations only cannot grow beyond their instances."""
    ids = {offer.reservation for offer in queue.offers}
    held = [facts.found[id] for id in sorted(id for id in ids if id) if id in facts.found]
    total = sum(one.total for one in held)
    if held and None not in ids and total < queue.max_nodes:
        text = f"its reservations hold {total} instances, but nodes.max is {queue.max_nodes}"
        yield _FINDINGS.warn(f"queue {queue.name}", text, f"set nodes.max: {total}, or add a pool for the rest")


def _misfits(about: str, queue: QueuePlan, offer: OfferPlan, found: Reservation) -> Iterator[PreflightFinding]:
    if found.instance_type != queue.instance_type:
        text = f"holds {found.instance_type}, but the queue launches {queue.instance_type}"
        yield _FINDINGS.fail(about, text, "change instance_type, or use another reservation")
    if offer.zone_id not in found.zones:
        yield _FINDINGS.fail(
            about, f"is in {' or '.join(sorted(found.zones))}, not in {offer.zone_id}", "change the zones of the pool"
        )
    wants_block = offer.market is Market.CAPACITY_BLOCK
    if found.is_block != wants_block:
        kind = "a capacity block" if found.is_block else "a reservation, not a capacity block"
        yield _FINDINGS.fail(
            about, f"is {kind}", f"set market: {'capacity-block' if found.is_block else 'reservation'}"
        )
    if offer.reserved_group != found.group and not found.is_block:
        has = f"was made in the placement group {found.group}" if found.group else "was made in no placement group"
        fix = f"set placement_group: {found.group}" if found.group else "remove placement_group from the pool"
        yield _FINDINGS.fail(about, f"{has}, but the pool sets {offer.reserved_group or 'none'}", fix)
    if not found.is_targeted and not found.is_block:
        text = "is open: any instance of its type can use it"
        yield _FINDINGS.warn(about, text, "make it targeted")
    if found.total < queue.min_nodes:
        text = f"holds {found.total} instances, but nodes.min is {queue.min_nodes}"
        yield _FINDINGS.warn(about, text, "lower nodes.min, or add a pool for the rest")
    elif not found.free and found.state == "active":
        yield _FINDINGS.warn(
            about, f"none of its {found.total} instances is free", "check who uses it; until then the queue waits"
        )


def _times(about: str, found: Reservation, now: datetime) -> Iterator[PreflightFinding]:
    if found.state not in _USABLE:
        yield _FINDINGS.fail(about, f"is {found.state}", "remove it from the pool, or create a new one")
    elif found.begins and found.begins > now:
        yield _FINDINGS.warn(
            about, f"begins at {found.begins:%Y-%m-%d %H:%M} UTC", "the queue waits, or uses its other pools"
        )
    elif found.ends and found.ends - now < ENDS_SOON:
        text = f"ends at {found.ends:%Y-%m-%d %H:%M} UTC, in less than a day"
        yield _FINDINGS.warn(about, text, "extend it, or add a pool after it")


def _offers(request: PreflightRequest) -> list[tuple[QueuePlan, OfferPlan]]:
    return [(queue, offer) for queue in request.cluster.queues for offer in queue.offers if offer.reservation]


def _reservation(one: Mapping[str, object]) -> Reservation:
    group = one.get("PlacementGroupArn")
    begins, ends = one.get("StartDate"), one.get("EndDate")
    return Reservation(
        id=str(one["CapacityReservationId"]),
        instance_type=str(one["InstanceType"]),
        zones=frozenset(str(one[key]) for key in ("AvailabilityZone", "AvailabilityZoneId") if one.get(key)),
        state=str(one["State"]),
        total=int(str(one["TotalInstanceCount"])),
        free=int(str(one["AvailableInstanceCount"])),
        is_block=one.get("ReservationType") == "capacity-block",
        is_targeted=one.get("InstanceMatchCriteria") == "targeted",
        begins=begins if isinstance(begins, datetime) else None,
        ends=ends if isinstance(ends, datetime) else None,
        group=str(group).rpartition("/")[2] if group else None,
    )
