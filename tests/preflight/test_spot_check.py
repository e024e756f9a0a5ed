"""Spot placement scores and prices."""

from __future__ import annotations

from dataclasses import replace

from finding_lines import bad, dev, finding_lines, on_demand

from corral.preflight.preflight_findings import PreflightRequest
from corral.preflight.spot_check import SpotFacts, evaluate

SCORES = {("train", "use1-az1"): 1, ("train", "use1-az2"): 3}


def limited(usd: float) -> PreflightRequest:
    """`dev` with a price limit on its spot offers."""
    (queue,) = dev().cluster.queues
    offers = tuple(
        replace(offer, max_price_usd_per_hour=usd) if offer.market == "spot" else offer for offer in queue.offers
    )
    return dev(replace(dev().cluster, queues=(replace(queue, offers=offers),)))


def test_one_likely_zone_is_enough() -> None:
    assert finding_lines(evaluate(dev(), SpotFacts(scores=SCORES))) == [
        "ok queue train: 4 p4d.24xlarge at once: 1 of 10 in use1-az1, 3 of 10 in use1-az2"
    ]


def test_a_queue_that_is_unlikely_everywhere_is_warned_of() -> None:
    found = bad(evaluate(dev(), SpotFacts(scores={**SCORES, ("train", "use1-az2"): 1})))
    assert found == [
        "warn queue train: 4 p4d.24xlarge at once is unlikely now: 1 of 10 in use1-az1, 1 of 10 in use1-az2"
    ]


def test_zones_without_a_score_are_named() -> None:
    found = bad(evaluate(dev(), SpotFacts()))
    assert found == ["warn queue train: no spot score for 4 p4d.24xlarge at once in its zones"]


def test_a_limit_below_todays_price_is_a_finding_by_zone() -> None:
    facts = SpotFacts(scores=SCORES, prices={("train", "use1-az1"): 8.0, ("train", "use1-az2"): 2.5})
    assert bad(evaluate(limited(3.0), facts)) == [
        "warn queue train: costs 8.00 USD an hour in use1-az1, above max_price 3.00"
    ]


def test_without_a_limit_any_price_is_ok() -> None:
    facts = SpotFacts(scores=SCORES, prices={("train", "use1-az1"): 8.0})
    assert finding_lines(evaluate(dev(), facts))[1] == "ok queue train: costs 8.00 USD an hour in use1-az1"


def test_queues_without_spot_offers_have_no_findings() -> None:
    assert finding_lines(evaluate(on_demand(dev()), SpotFacts())) == []
