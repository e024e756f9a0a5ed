"""How likely spot machines are, and at what price."""

from __future__ import annotations

from dataclasses import replace

from judging import bad, dev, on_demand, said

from corral.preflight.findings import Wanted
from corral.preflight.spot import Facts, judge

SCORES = {("train", "use1-az1"): 1, ("train", "use1-az2"): 3}


def limited(usd: float) -> Wanted:
    """`dev` with a price limit on its spot offers."""
    (queue,) = dev().cluster.queues
    offers = tuple(
        replace(offer, max_price_usd_per_hour=usd) if offer.market == "spot" else offer for offer in queue.offers
    )
    return dev(replace(dev().cluster, queues=(replace(queue, offers=offers),)))


def test_one_likely_zone_is_enough() -> None:
    assert said(judge(dev(), Facts(scores=SCORES))) == [
        "ok queue train: 4 p4d.24xlarge at once: 1 of 10 in use1-az1, 3 of 10 in use1-az2"
    ]


def test_a_queue_that_is_unlikely_everywhere_is_warned_of() -> None:
    found = bad(judge(dev(), Facts(scores={**SCORES, ("train", "use1-az2"): 1})))
    assert found == [
        "warn queue train: 4 p4d.24xlarge at once are unlikely now: 1 of 10 in use1-az1, 1 of 10 in use1-az2"
    ]


def test_zones_without_a_score_are_told() -> None:
    found = bad(judge(dev(), Facts()))
    assert found == ["warn queue train: AWS gives no score for 4 p4d.24xlarge at once in its zones"]


def test_a_limit_below_todays_price_is_told_by_zone() -> None:
    facts = Facts(scores=SCORES, prices={("train", "use1-az1"): 8.0, ("train", "use1-az2"): 2.5})
    assert bad(judge(limited(3.0), facts)) == [
        "warn queue train: costs 8.00 USD an hour in use1-az1, and its limit is 3.00"
    ]


def test_without_a_limit_any_price_is_ok() -> None:
    facts = Facts(scores=SCORES, prices={("train", "use1-az1"): 8.0})
    assert said(judge(dev(), facts))[1] == "ok queue train: costs 8.00 USD an hour in use1-az1"


def test_nothing_is_said_of_queues_without_spot_offers() -> None:
    assert said(judge(on_demand(dev()), Facts())) == []
