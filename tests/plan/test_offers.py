"""Offers that launch into bought capacity: each id is one, under a name of its own."""

from __future__ import annotations

from corral.model.enums import Market
from corral.plan.offers import plan_offers
from corral.spec.models.queues import NodesSpec, PoolSpec, QueueSpec

ALIKE, ALSO_ALIKE, OTHER = "cr-0a111111111abc123", "cr-0b222222222abc123", "cr-0c333333333def456"


def keys(*pools: PoolSpec) -> list[str]:
    """The keys of the offers of a queue with these pools."""
    queue = QueueSpec(name="train", instance_type="p5.48xlarge", nodes=NodesSpec(max=8), capacity=pools)
    return [offer.key for offer in plan_offers(queue, ("use1-az1",), grouped=False)]


def bought(market: Market, *ids: str) -> PoolSpec:
    return PoolSpec(market=market, zones=("use1-az1",), ids=ids)


def test_the_last_six_digits_of_an_id_name_its_offer() -> None:
    assert keys(bought(Market.RESERVATION, ALIKE, OTHER)) == [
        "train-reservation-use1-az1-abc123",
        "train-reservation-use1-az1-def456",
    ]


def test_ids_with_the_same_ending_get_more_digits() -> None:
    assert keys(bought(Market.CAPACITY_BLOCK, ALIKE, OTHER), bought(Market.CAPACITY_BLOCK, ALSO_ALIKE)) == [
        "train-capacity-block-use1-az1-1abc123",
        "train-capacity-block-use1-az1-def456",
        "train-capacity-block-use1-az1-2abc123",
    ]
