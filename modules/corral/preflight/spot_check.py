"""Availability and price of spot instances now: AWS's placement score, and the last day's prices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.enums import Market
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="spot")
# 1 is unlikely, 10 likely, without guarantee. A single type, as a queue has, never scores more than a few points, so
# only the lowest score means anything. Source: EC2 User Guide, "Spot placement score".
UNLIKELY = 1
_DAY = timedelta(days=1)
_LINUX = "Linux/UNIX"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotFacts:
    """By queue and zone id: the score for all its nodes at once, and the latest price in USD an hour."""

    scores: Mapping[tuple[str, str], int] = field(default_factory=dict)
    prices: Mapping[tuple[str, str], float] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> SpotFacts:
    """One request for the scores and one for the prices of each queue with spot offers."""
    scores: dict[tuple[str, str], int] = {}
    prices: dict[tuple[str, str], float] = {}
    for queue in request.cluster.queues:
        if not _spot(queue):
            continue
        scored = aws.call(
            "ec2",
            "get_spot_placement_scores",
            InstanceTypes=[queue.instance_type],
            TargetCapacity=queue.max_nodes,
            SingleAvailabilityZone=True,
            RegionNames=[request.cluster.region],
        )
        for one in scored["SpotPlacementScores"]:
            if "AvailabilityZoneId" in one:
                scores[queue.name, str(one["AvailabilityZoneId"])] = int(one["Score"])
        prices |= {(queue.name, zone): usd for zone, usd in _prices(aws, request, queue).items()}
    return SpotFacts(scores=scores, prices=prices)


def evaluate(request: PreflightRequest, facts: SpotFacts) -> Iterator[PreflightFinding]:
    """The findings for each queue with spot offers: its scores, then its prices."""
    for queue in request.cluster.queues:
        offers = _spot(queue)
        if not offers:
            continue
        about = f"queue {queue.name}"
        found = {zone: facts.scores[queue.name, zone] for zone in _zones(offers) if (queue.name, zone) in facts.scores}
        yield _likely(about, queue, found)
        yield from _price_findings(about, queue, offers, facts)


def _likely(about: str, queue: QueuePlan, scores: Mapping[str, int]) -> PreflightFinding:
    at_once = f"{queue.max_nodes} {queue.instance_type} at once"
    if not scores:
        return _FINDINGS.warn(about, f"no spot score for {at_once} in its zones", "add another zone, type or market")
    listed = ", ".join(f"{score} of 10 in {zone}" for zone, score in scores.items())
    if max(scores.values()) <= UNLIKELY:
        return _FINDINGS.warn(
            about, f"{at_once} is unlikely now: {listed}", "add another zone, type or market, or wait"
        )
    return _FINDINGS.ok(about, f"{at_once}: {listed}")


def _price_findings(
    about: str, queue: QueuePlan, offers: list[OfferPlan], facts: SpotFacts
) -> Iterator[PreflightFinding]:
    for offer in offers:
        price, limit = facts.prices.get((queue.name, offer.zone_id)), offer.max_price_usd_per_hour
        if price is None:
            continue
        text = f"costs {price:.2f} USD an hour in {offer.zone_id}"
        if limit is not None and limit < price:
            yield _FINDINGS.warn(
                about, f"{text}, above max_price {limit:.2f}", "raise max_price, or rely on the later offers"
            )
        else:
            yield _FINDINGS.ok(about, text)


def _prices(aws: AwsQueryCache, request: PreflightRequest, queue: QueuePlan) -> Mapping[str, float]:
    """The latest price by zone id; the price history names zones by the account's names."""
    names = {
        str(one["ZoneName"]): str(one["ZoneId"])
        for one in aws.list_all("ec2", "describe_availability_zones", "AvailabilityZones")
    }
    listed = aws.list_all(
        "ec2",
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=[queue.instance_type],
        ProductDescriptions=[_LINUX],
        StartTime=request.now - _DAY,
        EndTime=request.now,
    )
    newest = sorted(listed, key=lambda one: one["Timestamp"])
    return {names.get(str(one["AvailabilityZone"]), ""): float(one["SpotPrice"]) for one in newest}


def _spot(queue: QueuePlan) -> list[OfferPlan]:
    return [offer for offer in queue.offers if offer.market is Market.SPOT]


def _zones(offers: list[OfferPlan]) -> list[str]:
    return list(dict.fromkeys(offer.zone_id for offer in offers))
