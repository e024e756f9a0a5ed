"""Whether reservations and capacity blocks are such that the queue's machines can be launched into them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.markets import Market
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="reservations")
_USABLE = ("active", "scheduled", "assessing", "delayed")
ENDS_SOON = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A reservation as EC2 describes it. `zones`: its zone by id and by the account's name. `group`: by name."""

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
class Facts:
    """By id; one that is not there is missing."""

    found: Mapping[str, Reservation] = field(default_factory=dict)


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """A request for each, since one id that is unknown spoils the answer for all."""
    ids = sorted({offer.reservation for _, offer in _offers(wanted) if offer.reservation})
    asked = ("ec2", "describe_capacity_reservations", "CapacityReservations")
    found = [one for id in ids for one in answers.named(*asked, CapacityReservationIds=[id])]
    return Facts(found={str(one["CapacityReservationId"]): _reservation(one) for one in found})


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """Each offer with a reservation, then whether a queue's own count is there."""
    for queue, offer in _offers(wanted):
        about = f"queue {queue.name}, {offer.reservation}"
        found = facts.found.get(offer.reservation or "")
        if found is None:
            text = "is not in this account and region, or not shared with it"
            yield _TELL.fail(about, text, "see `aws ec2 describe-capacity-reservations`")
            continue
        problems = [*_misfits(about, queue, offer, found), *_times(about, found, wanted.now)]
        yield from problems
        if not problems:
            yield _TELL.ok(about, f"{found.free} of {found.total} {found.instance_type} free, {found.state}")
    for queue in wanted.cluster.queues:
        yield from _count(queue, facts)


def _count(queue: QueuePlan, facts: Facts) -> Iterator[Finding]:
    """A queue that launches into nothing but reservations grows to what they hold."""
    ids = {offer.reservation for offer in queue.offers}
    held = [facts.found[id] for id in sorted(id for id in ids if id) if id in facts.found]
    total = sum(one.total for one in held)
    if held and None not in ids and total < queue.max_nodes:
        text = f"its reservations hold {total}, and it may have {queue.max_nodes} nodes"
        yield _TELL.warn(f"queue {queue.name}", text, f"nodes.max: {total}, or a pool that has the rest")


def _misfits(about: str, queue: QueuePlan, offer: OfferPlan, found: Reservation) -> Iterator[Finding]:
    if found.instance_type != queue.instance_type:
        text = f"holds {found.instance_type}, the queue launches {queue.instance_type}"
        yield _TELL.fail(about, text, "queues[].instance_type, or another reservation")
    if offer.zone_id not in found.zones:
        yield _TELL.fail(
            about, f"is in {' or '.join(sorted(found.zones))}, not in {offer.zone_id}", "zones of its pool"
        )
    wants_block = offer.market is Market.CAPACITY_BLOCK
    if found.is_block != wants_block:
        kind = "a capacity block" if found.is_block else "a reservation, no capacity block"
        yield _TELL.fail(about, f"is {kind}", f"market: {'capacity-block' if found.is_block else 'reservation'}")
    if offer.reserved_group != found.group and not found.is_block:
        has = f"was made in the placement group {found.group}" if found.group else "was made in no placement group"
        fix = f"placement_group: {found.group}" if found.group else "take placement_group out of the pool"
        yield _TELL.fail(about, f"{has}, the pool says {offer.reserved_group or 'none'}", fix)
    if not found.is_targeted and not found.is_block:
        text = "is open: any instance of its type takes from it"
        yield _TELL.warn(about, text, "make it a targeted one")
    if found.total < queue.min_nodes:
        text = f"holds {found.total}, and {queue.min_nodes} nodes are always on"
        yield _TELL.warn(about, text, "nodes.min, or a pool that has the rest")
    elif not found.free and found.state == "active":
        yield _TELL.warn(about, f"none of its {found.total} instances is free now", "see who uses it; the queue waits")


def _times(about: str, found: Reservation, now: datetime) -> Iterator[Finding]:
    if found.state not in _USABLE:
        yield _TELL.fail(about, f"is {found.state}", "take it out of the pool, or reserve anew")
    elif found.begins and found.begins > now:
        yield _TELL.warn(
            about, f"begins at {found.begins:%Y-%m-%d %H:%M} UTC", "the queue waits, or takes its other pools"
        )
    elif found.ends and found.ends - now < ENDS_SOON:
        text = f"ends at {found.ends:%Y-%m-%d %H:%M} UTC, in less than a day"
        yield _TELL.warn(about, text, "lengthen it, or add a pool that is tried after it")


def _offers(wanted: Wanted) -> list[tuple[QueuePlan, OfferPlan]]:
    return [(queue, offer) for queue in wanted.cluster.queues for offer in queue.offers if offer.reservation]


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
