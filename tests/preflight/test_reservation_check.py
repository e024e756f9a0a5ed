"""Reservations and capacity blocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from finding_lines import NOW, bad, finding_lines, train

from corral.preflight.reservation_check import Reservation, ReservationFacts, evaluate

BLOCK_ID, RESERVED_ID = "cr-0123456789abcdef0", "cr-0fedcba9876543210"
BLOCK = Reservation(
    id=BLOCK_ID,
    instance_type="p5.48xlarge",
    zones=frozenset({"use1-az1", "us-east-1b"}),
    state="active",
    total=16,
    free=16,
    is_block=True,
    is_targeted=True,
    begins=NOW - timedelta(days=1),
    ends=NOW + timedelta(days=5),
    group=None,
)


def offered() -> Reservation:
    """The reservation of `train`, as its pool wants it."""
    (queue,) = train().cluster.queues
    (offer,) = {one.reservation: one for one in queue.offers if one.reservation == RESERVED_ID}.values()
    return replace(
        BLOCK, id=RESERVED_ID, is_block=False, begins=None, ends=None, group=offer.reserved_group,
        zones=frozenset({offer.zone_id}),
    )  # fmt: skip


def facts(**changed: object) -> ReservationFacts:
    """With another reservation."""
    return ReservationFacts(found={BLOCK_ID: BLOCK, RESERVED_ID: replace(offered(), **changed)})  # type: ignore[arg-type]  # by name


def test_sufficient_quotas_are_ok() -> None:
    assert finding_lines(evaluate(train(), facts())) == [
        "ok queue train, cr-0123456789abcdef0: 16 of 16 p5.48xlarge free, active",
        "ok queue train, cr-0fedcba9876543210: 16 of 16 p5.48xlarge free, active",
    ]


def test_a_missing_reservation_is_a_finding() -> None:
    found = bad(evaluate(train(), ReservationFacts(found={BLOCK_ID: BLOCK})))
    text = "not found in this account and region, or not shared with it"
    assert found == [f"fail queue train, cr-0fedcba9876543210: {text}"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"instance_type": "p5e.48xlarge"}, "fail holds p5e.48xlarge, but the queue launches p5.48xlarge"),
        ({"zones": frozenset({"use1-az6"})}, "fail is in use1-az6, not in use1-az1"),
        ({"group": "other"}, "fail was made in the placement group other, but the pool sets none"),
        ({"is_targeted": False}, "warn is open: any instance of its type can use it"),
        ({"free": 0}, "warn none of its 16 instances is free"),
        ({"state": "expired"}, "fail is expired"),
        ({"state": "payment-failed"}, "fail is payment-failed"),
        ({"begins": NOW + timedelta(hours=1), "state": "scheduled"}, "warn begins at 2026-11-22 13:00 UTC"),
        ({"ends": NOW + timedelta(hours=23)}, "warn ends at 2026-11-23 11:00 UTC, in less than a day"),
    ],
)  # fmt: skip
def test_defects_of_a_reservation_are_findings(changed: dict[str, object], expected: str) -> None:
    verdict, _, text = expected.partition(" ")
    assert bad(evaluate(train(), facts(**changed))) == [f"{verdict} queue train, {RESERVED_ID}: {text}"]


def test_a_block_declared_as_a_reservation_is_a_finding() -> None:
    found = bad(evaluate(train(), facts(is_block=True, group=None)))
    assert found == [f"fail queue train, {RESERVED_ID}: is a capacity block"]


def only_reserved(total: int) -> list[str]:
    """The findings for `train` without its spot pool, with this many instances in the block and the reservation."""
    (queue,) = train().cluster.queues
    offers = tuple(offer for offer in queue.offers if offer.reservation)
    request = replace(train(), cluster=replace(train().cluster, queues=(replace(queue, offers=offers),)))
    found = {BLOCK_ID: replace(BLOCK, total=total), RESERVED_ID: replace(offered(), total=total)}
    return bad(evaluate(request, ReservationFacts(found=found)))


def test_a_queue_of_reservations_that_hold_less_than_it_may_have_is_warned_of() -> None:
    assert only_reserved(7) == ["warn queue train: its reservations hold 14 instances, but nodes.max is 16"]


def test_reservations_count_together() -> None:
    assert only_reserved(8) == []
