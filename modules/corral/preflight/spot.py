"""How likely spot machines are to be had now, and at what price: AWS's own score, and the last day's prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.markets import Market
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="spot")
# 1 is unlikely, 10 likely; AWS promises nothing by it, and a single type, as a queue has, never gets more than a few
# points: only the lowest score says something. Source: EC2 User Guide, "Spot placement score".
UNLIKELY = 1
_DAY = timedelta(days=1)
_LINUX = "Linux/UNIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """By queue and zone: the score for all its nodes at once, the newest price in USD an hour. Zones by id."""

    scores: Mapping[tuple[str, str], int] = field(default_factory=dict)
    prices: Mapping[tuple[str, str], float] = field(default_factory=dict)


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """One request for the scores and one for the prices of each queue with spot offers."""
    scores: dict[tuple[str, str], int] = {}
    prices: dict[tuple[str, str], float] = {}
    for queue in wanted.cluster.queues:
        if not _spot(queue):
            continue
        scored = answers.ask(
            "ec2",
            "get_spot_placement_scores",
            InstanceTypes=[queue.instance_type],
            TargetCapacity=queue.max_nodes,
            SingleAvailabilityZone=True,
            RegionNames=[wanted.cluster.region],
        )
        for one in scored["SpotPlacementScores"]:
            if "AvailabilityZoneId" in one:
                scores[queue.name, str(one["AvailabilityZoneId"])] = int(one["Score"])
        prices |= {(queue.name, zone): usd for zone, usd in _prices(answers, wanted, queue).items()}
    return Facts(scores=scores, prices=prices)


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """Each queue: its likeliest zone, then limits that are below today's price."""
    for queue in wanted.cluster.queues:
        offers = _spot(queue)
        if not offers:
            continue
        about = f"queue {queue.name}"
        found = {zone: facts.scores[queue.name, zone] for zone in _zones(offers) if (queue.name, zone) in facts.scores}
        yield _likely(about, queue, found)
        yield from _prices_judged(about, queue, offers, facts)


def _likely(about: str, queue: QueuePlan, scores: Mapping[str, int]) -> Finding:
    at_once = f"{queue.max_nodes} {queue.instance_type} at once"
    if not scores:
        return _TELL.warn(about, f"AWS gives no score for {at_once} in its zones", "add another zone, type or market")
    told = ", ".join(f"{score} of 10 in {zone}" for zone, score in scores.items())
    if max(scores.values()) <= UNLIKELY:
        return _TELL.warn(about, f"{at_once} are unlikely now: {told}", "add another zone, type or market, or wait")
    return _TELL.ok(about, f"{at_once}: {told}")


def _prices_judged(about: str, queue: QueuePlan, offers: list[OfferPlan], facts: Facts) -> Iterator[Finding]:
    for offer in offers:
        price, limit = facts.prices.get((queue.name, offer.zone_id)), offer.max_price_usd_per_hour
        if price is None:
            continue
        text = f"costs {price:.2f} USD an hour in {offer.zone_id}"
        if limit is not None and limit < price:
            yield _TELL.warn(
                about, f"{text}, and its limit is {limit:.2f}", "raise max_price, or let the offers after it"
            )
        else:
            yield _TELL.ok(about, text)


def _prices(answers: Answers, wanted: Wanted, queue: QueuePlan) -> Mapping[str, float]:
    """The newest price by zone; AWS names zones by their names in this account here."""
    names = {
        str(one["ZoneName"]): str(one["ZoneId"])
        for one in answers.every("ec2", "describe_availability_zones", "AvailabilityZones")
    }
    listed = answers.every(
        "ec2",
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=[queue.instance_type],
        ProductDescriptions=[_LINUX],
        StartTime=wanted.now - _DAY,
        EndTime=wanted.now,
    )
    newest = sorted(listed, key=lambda one: one["Timestamp"])
    return {names.get(str(one["AvailabilityZone"]), ""): float(one["SpotPrice"]) for one in newest}


def _spot(queue: QueuePlan) -> list[OfferPlan]:
    return [offer for offer in queue.offers if offer.market is Market.SPOT]


def _zones(offers: list[OfferPlan]) -> list[str]:
    return list(dict.fromkeys(offer.zone_id for offer in offers))
