"""What an environment costs by its plan: idle base, idle cluster, everything running, and what stays after `down`.

Prices are passed in. Traffic, requests and stored data are paid by use: they are named with their unit price and are
in no sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.forecast.money import HOURS_PER_MONTH, ZERO, Usd, span, total
from corral.forecast.prices import PriceList, Service
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, LustrePlan, OfferPlan, QueuePlan
from corral.model.markets import Market


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that costs money as long as it exists. `usd_per_hour` is for all of it; None: no price is known."""

    what: str
    count: int
    unit: str
    usd_per_hour: Usd | None
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCost:
    """All nodes of a queue in one market, for an hour."""

    queue: str
    instance_type: str
    market: Market
    nodes: int
    usd_per_node_hour: Usd | None
    source: str | None

    @property
    def usd_per_hour(self) -> Usd | None:
        """What all of them cost together."""
        return self.usd_per_node_hour.times(self.nodes) if self.usd_per_node_hour else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsePrice:
    """Something that is paid for by use: `usd` for each `unit`. `kept`: it stays, and costs, after `down`."""

    what: str
    usd: float | None
    unit: str
    source: str | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """The whole bill, before it comes. `kept` is what a base that is down still costs, without the data stored."""

    base: tuple[Item, ...]
    cluster: tuple[Item, ...]
    queues: tuple[QueueCost, ...]
    by_use: tuple[UsePrice, ...]
    kept: tuple[Item, ...]

    @property
    def idle_base_usd_per_month(self) -> Usd:
        """A base without a cluster, for a month."""
        return _sum(self.base).times(HOURS_PER_MONTH)

    @property
    def idle_cluster_usd_per_hour(self) -> Usd:
        """A cluster without a job, for an hour, without its base."""
        return _sum(self.cluster)

    @property
    def maximum_usd_per_hour(self) -> Usd:
        """Base, cluster and every node, for an hour: from the cheapest market of each queue to the dearest."""
        by_queue = [self._whole_queue(name) for name in dict.fromkeys(cost.queue for cost in self.queues)]
        fixed = [item for item in self.cluster if not item.unit.startswith("static")]
        return total([_sum(self.base), _sum(fixed), *by_queue])

    @property
    def kept_usd_per_month(self) -> Usd:
        """What stays after `down --with-base`, for a month, without the data stored."""
        return _sum(self.kept).times(HOURS_PER_MONTH)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What has no price in the list, so that the sums are too low."""
        priced: list[tuple[str, Usd | None]] = [(item.what, item.usd_per_hour) for item in (*self.base, *self.cluster)]
        priced += [(f"{cost.instance_type} {cost.market}", cost.usd_per_node_hour) for cost in self.queues]
        return tuple(dict.fromkeys(what for what, usd in priced if usd is None))

    def _whole_queue(self, name: str) -> Usd:
        costs = [cost.usd_per_hour for cost in self.queues if cost.queue == name]
        return span(usd for usd in costs if usd is not None) or ZERO


def forecast_cost(base: BasePlan, cluster: ClusterPlan, prices: PriceList) -> CostForecast:
    """The bill of this cluster on this base."""
    return CostForecast(
        base=tuple(_base_items(base, prices)),
        cluster=tuple(_cluster_items(cluster, prices)),
        queues=tuple(_queue_costs(cluster, prices)),
        by_use=tuple(_use_prices(base, prices)),
        kept=(_monthly("KMS key", 1, Service.KMS_KEY_MONTH, prices),),
    )


def offer_usd_per_hour(offer: OfferPlan, instance_type: str, prices: PriceList) -> Usd | None:
    """What one node of this offer costs an hour; a price limit of the offer caps the range."""
    price = prices.instance(instance_type)
    if price is None:
        return None
    if offer.market is not Market.SPOT:
        return Usd.exact(price.on_demand) if price.on_demand is not None else None
    limit = offer.max_price_usd_per_hour
    if price.spot is None or limit is None:
        return price.spot
    return Usd(min(price.spot.low, limit), min(price.spot.high, limit))


def _base_items(base: BasePlan, prices: PriceList) -> Iterator[Item]:
    yield _hourly("NAT gateway", 1, Service.NAT_GATEWAY_HOUR, prices)
    yield _hourly("public address of the NAT gateway", 1, Service.PUBLIC_IPV4_HOUR, prices)
    if endpoints := len(base.interface_endpoints) * len(base.zones):
        yield _hourly("interface endpoints x zones", endpoints, Service.INTERFACE_ENDPOINT_HOUR, prices)
    yield _monthly("KMS key", 1, Service.KMS_KEY_MONTH, prices)


def _cluster_items(cluster: ClusterPlan, prices: PriceList) -> Iterator[Item]:
    yield _head(cluster, prices)
    yield _monthly("head's volumes", cluster.head.root_gib + cluster.head.state_gib, Service.GP3_GIB_MONTH, prices)
    for system in cluster.lustre:
        yield _lustre(system, prices)
    yield _monthly("private DNS zone", 1, Service.HOSTED_ZONE_MONTH, prices)
    yield _monthly("secret", 1, Service.SECRET_MONTH, prices)
    yield _monthly("alarm", 1, Service.ALARM_MONTH, prices)
    for queue in cluster.queues:
        if queue.min_nodes:
            yield _static_nodes(queue, prices)


def _head(cluster: ClusterPlan, prices: PriceList) -> Item:
    price = prices.instance(cluster.head.instance_type)
    usd = price.on_demand if price else None
    return Item(
        what=f"head, {cluster.head.instance_type}",
        count=1,
        unit="",
        usd_per_hour=None if usd is None else Usd.exact(usd),
        source=price.source if price else None,
    )


def _lustre(system: LustrePlan, prices: PriceList) -> Item:
    what = f"Lustre {system.name}, {system.deployment}"
    if system.deployment == "SCRATCH_2":
        return _monthly(what, system.size_gib, Service.LUSTRE_SCRATCH_2_GIB_MONTH, prices)
    return Item(what=what, count=system.size_gib, unit="GiB", usd_per_hour=None, source=None)


def _static_nodes(queue: QueuePlan, prices: PriceList) -> Item:
    known = [offer_usd_per_hour(offer, queue.instance_type, prices) for offer in queue.offers]
    usd, price = span(u for u in known if u is not None), prices.instance(queue.instance_type)
    return Item(
        what=f"queue {queue.name}, {queue.instance_type}",
        count=queue.min_nodes,
        unit="static nodes",
        usd_per_hour=usd.times(queue.min_nodes) if usd else None,
        source=price.source if price else None,
    )


def _queue_costs(cluster: ClusterPlan, prices: PriceList) -> Iterator[QueueCost]:
    for queue in cluster.queues:
        price = prices.instance(queue.instance_type)
        for market in dict.fromkeys(offer.market for offer in queue.offers):
            known = [
                offer_usd_per_hour(offer, queue.instance_type, prices)
                for offer in queue.offers
                if offer.market is market
            ]
            yield QueueCost(
                queue=queue.name,
                instance_type=queue.instance_type,
                market=market,
                nodes=queue.max_nodes,
                usd_per_node_hour=span(usd for usd in known if usd is not None),
                source=price.source if price else None,
            )


def _use_prices(base: BasePlan, prices: PriceList) -> Iterator[UsePrice]:
    yield _by_use("bucket: objects stored", "GiB and month", Service.S3_GIB_MONTH, prices, kept=True)
    if base.home:
        yield _by_use("home: files stored", "GiB and month", Service.EFS_GIB_MONTH, prices, kept=True)
    yield _by_use("traffic through the NAT gateway", "GB", Service.NAT_GATEWAY_GB, prices, kept=False)


def _hourly(what: str, count: int, service: Service, prices: PriceList) -> Item:
    price = prices.service(service)
    return Item(
        what=what,
        count=count,
        unit="",
        usd_per_hour=Usd.exact(price.usd * count) if price else None,
        source=price.source if price else None,
    )


def _monthly(what: str, count: int, service: Service, prices: PriceList) -> Item:
    price = prices.service(service)
    return Item(
        what=what,
        count=count,
        unit="GiB" if "gib" in service else "",
        usd_per_hour=Usd.exact(price.usd * count / HOURS_PER_MONTH) if price else None,
        source=price.source if price else None,
    )


def _by_use(what: str, unit: str, service: Service, prices: PriceList, *, kept: bool) -> UsePrice:
    price = prices.service(service)
    source = price.source if price else None
    return UsePrice(what=what, usd=price.usd if price else None, unit=unit, source=source, kept=kept)


def _sum(items: tuple[Item, ...] | list[Item]) -> Usd:
    return total(item.usd_per_hour for item in items if item.usd_per_hour is not None)
