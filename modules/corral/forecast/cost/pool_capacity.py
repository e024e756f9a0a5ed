"""The number of nodes that each market can supply to a queue, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from corral.forecast.cost.cost_range import Sum, Usd, span
from corral.forecast.cost.price_source import PriceList
from corral.model.cluster import OfferPlan, QueuePlan
from corral.model.enums import Market
from corral.spec.models.cluster import ClusterSpec

Counts = Mapping[tuple[str, int], int]  # instances by queue and number of the pool, from 1
NO_COUNTS: Counts = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketCapacity:
    """What a market supplies to a queue. `starts`: False if every price limit is below the cheapest known zone."""

    market: Market
    most: int
    usd_per_node_hour: Usd | None
    source: str | None
    starts: bool = True


def pool_counts(cluster: ClusterSpec) -> Counts:
    """The instances in the reservations and blocks that declare a count."""
    return {
        (queue.name, number): pool.count
        for queue in cluster.queues
        for number, pool in enumerate(queue.capacity, start=1)
        if pool.count is not None
    }


def market_capacities(queue: QueuePlan, prices: PriceList, counts: Counts) -> tuple[MarketCapacity, ...]:
    """What each market of the queue can supply, in the order of its offers."""
    return tuple(_supply(queue, market, prices, counts) for market in dict.fromkeys(o.market for o in queue.offers))


def most_nodes(queue: QueuePlan, market: Market, counts: Counts) -> int:
    """The maximum nodes of this market: all of the queue, or what its pools hold if each has a count."""
    pools = {offer.pool for offer in queue.offers if offer.market is market}
    held = [counts.get((queue.name, pool)) for pool in pools]
    return min(queue.max_nodes, sum(count or queue.max_nodes for count in held))


def offer_usd_per_hour(offer: OfferPlan, instance_type: str, prices: PriceList) -> Usd | None:
    """The hourly price of a node of this offer; a price limit of the offer caps the range.

    None if the price is unknown, or if the limit prevents a start. A capacity block costs its purchase price, used or
    not. A reservation costs the on-demand price.
    """
    price = prices.instance(instance_type)
    known, limit = price.known(offer.market) if price else None, offer.max_price_usd_per_hour
    if known is None or limit is None or offer.market is not Market.SPOT:
        return known
    return Usd(known.low, min(known.high, limit)) if limit >= known.low else None


def starts(offer: OfferPlan, instance_type: str, prices: PriceList) -> bool:
    """False if the offer's price limit is below the known price of the cheapest zone."""
    price, limit = prices.instance(instance_type), offer.max_price_usd_per_hour
    spot = price.spot if price else None
    return offer.market is not Market.SPOT or spot is None or limit is None or limit >= spot.low


def cost_of(nodes: int, queue: QueuePlan, found: Sequence[MarketCapacity]) -> Sum:
    """The hourly cost of so many nodes: low with the cheapest market first, high with the most expensive first.

    A market with an unknown price may be the cheapest: it counts as free in the low sum and is listed as missing.
    """
    can = [one for one in found if one.starts]
    unknown = [one for one in can if one.usd_per_node_hour is None]
    known = [(one.most, one.usd_per_node_hour) for one in can if one.usd_per_node_hour is not None]
    missing = (_named(min(nodes, sum(one.most for one in unknown)), queue, unknown),) if unknown else ()
    if missing and not known:
        return Sum(usd=None, missing=missing)
    lowest = [*((one.most, 0.0) for one in unknown), *((most, usd.low) for most, usd in known)]
    dearest = [(most, usd.high) for most, usd in known]
    low = _filled(nodes, sorted(lowest, key=lambda one: one[1]))
    return Sum(usd=Usd(low, _filled(nodes, sorted(dearest, key=lambda one: -one[1]))), missing=missing)


def _supply(queue: QueuePlan, market: Market, prices: PriceList, counts: Counts) -> MarketCapacity:
    offers = [offer for offer in queue.offers if offer.market is market]
    usable = [offer for offer in offers if starts(offer, queue.instance_type, prices)]
    known = [offer_usd_per_hour(offer, queue.instance_type, prices) for offer in usable]
    price = prices.instance(queue.instance_type)
    return MarketCapacity(
        market=market,
        most=most_nodes(queue, market, counts),
        usd_per_node_hour=span(usd for usd in known if usd is not None),
        source=price.source_of(market) if price else None,
        starts=bool(usable),
    )


def _filled(nodes: int, markets: Iterable[tuple[int, float]]) -> float:
    """The cost of the nodes if each market, in this order, supplies as many as it can."""
    left, usd = nodes, 0.0
    for most, price in markets:
        usd, left = usd + min(most, left) * price, left - min(most, left)
    return usd


def _named(nodes: int, queue: QueuePlan, markets: Iterable[MarketCapacity]) -> str:
    sold = " or ".join(one.market.value for one in markets)
    return f"queue {queue.name}: {nodes} {queue.instance_type} {sold}"
