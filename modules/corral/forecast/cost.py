"""What an environment costs by its plan: idle base, idle cluster, everything running, and what stays after `down`.

Prices are passed in. Traffic, requests and stored data are paid by use: they are named with their unit price and are
in no sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.catalog.lustre import find_lustre_deployment
from corral.forecast.bill import CostForecast, Item, QueueCost, UsePrice
from corral.forecast.money import HOURS_PER_MONTH, Usd, span
from corral.forecast.prices import PriceList, Service
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, OfferPlan, QueuePlan
from corral.model.lustre import LustrePlan
from corral.model.markets import Market


def forecast_cost(base: BasePlan, cluster: ClusterPlan, prices: PriceList) -> CostForecast:
    """The bill of this cluster on this base."""
    return CostForecast(
        base=tuple(_base_items(base, prices)),
        cluster=tuple(_cluster_items(cluster, prices)),
        queues=tuple(_queue_costs(cluster, prices)),
        by_use=tuple(_use_prices(base, cluster, prices)),
        kept=tuple(_kept_items(base, prices)),
    )


def offer_usd_per_hour(offer: OfferPlan, instance_type: str, prices: PriceList) -> Usd | None:
    """What one node of this offer costs an hour; a price limit of the offer caps the range.

    A capacity block costs its own price, paid when it was bought, used or not. A reservation costs what on-demand does.
    """
    price = prices.instance(instance_type)
    if price is None:
        return None
    if offer.market is Market.CAPACITY_BLOCK:
        return Usd.exact(price.capacity_block) if price.capacity_block is not None else None
    if offer.market is not Market.SPOT:
        return Usd.exact(price.on_demand) if price.on_demand is not None else None
    limit = offer.max_price_usd_per_hour
    if price.spot is None or limit is None:
        return price.spot
    return Usd(min(price.spot.low, limit), min(price.spot.high, limit))


def _base_items(base: BasePlan, prices: PriceList) -> Iterator[Item]:
    if base.public:
        yield _hourly("NAT gateway", 1, Service.NAT_GATEWAY_HOUR, prices)
        yield _hourly("public address of the NAT gateway", 1, Service.PUBLIC_IPV4_HOUR, prices)
    if endpoints := len(base.interface_endpoints) * len(base.zones):
        yield _hourly("interface endpoints x zones", endpoints, Service.INTERFACE_ENDPOINT_HOUR, prices)
    yield _monthly("KMS key", 1, Service.KMS_KEY_MONTH, prices)
    for system in base.lustre:
        yield _lustre(system, prices)


def _kept_items(base: BasePlan, prices: PriceList) -> Iterator[Item]:
    yield _monthly("KMS key", 1, Service.KMS_KEY_MONTH, prices)
    for system in base.lustre:
        yield _lustre(system, prices)


def _cluster_items(cluster: ClusterPlan, prices: PriceList) -> Iterator[Item]:
    yield _head(cluster, prices)
    yield _monthly("head's volumes", cluster.head.root_gib + cluster.head.state_gib, Service.GP3_GIB_MONTH, prices)
    for system in cluster.own_lustre:
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
    row = find_lustre_deployment(
        system.deployment, storage=system.disks, throughput_mbps_per_tib=system.throughput_mbps_per_tib
    )
    return _monthly(f"Lustre {system.name}, {row.name}", system.size_gib, row.price_name, prices)


def _static_nodes(queue: QueuePlan, prices: PriceList) -> Item:
    known = [offer_usd_per_hour(offer, queue.instance_type, prices) for offer in queue.offers]
    usd, price = span(u for u in known if u is not None), prices.instance(queue.instance_type)
    return Item(
        what=f"queue {queue.name}, {queue.instance_type}",
        count=queue.min_nodes,
        unit="static",
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


def _use_prices(base: BasePlan, cluster: ClusterPlan, prices: PriceList) -> Iterator[UsePrice]:
    yield _by_use("bucket: objects stored", "GiB and month", Service.S3_GIB_MONTH, prices, kept=True)
    if base.home:
        yield _by_use("home: files stored", "GiB and month", Service.EFS_GIB_MONTH, prices, kept=True)
    for size in sorted({queue.root_gib for queue in cluster.queues}):
        yield _by_use(f"root volume of a node: {size} GiB", "GiB and month", Service.GP3_GIB_MONTH, prices, kept=False)
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


def _monthly(what: str, count: int, service: str, prices: PriceList) -> Item:
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
