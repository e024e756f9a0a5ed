"""The cost of an environment from its plan: idle base, idle cluster, everything running, and after `down`.

Callers pass in prices. Traffic, requests and stored data are billed by use: they are listed with their unit price and
are in no sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from corral.catalog.aws.lustre import find_lustre_deployment, metadata_iops
from corral.forecast.cost.cost_model import BALANCER, GATEWAY, STATIC, CostForecast, Item, QueueCost, UsePrice
from corral.forecast.cost.cost_range import HOURS_PER_MONTH, Sum, Usd, total
from corral.forecast.cost.pool_capacity import (
    NO_COUNTS,
    Counts,
    MarketCapacity,
    cost_of,
    market_capacities,
    offer_usd_per_hour,
)
from corral.forecast.cost.price_source import PriceList, Service
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, QueuePlan
from corral.model.enums import Market
from corral.model.lustre import LustrePlan
from corral.model.monitoring import ClusterPrices, PriceRange


def forecast_cost(base: BasePlan, cluster: ClusterPlan, prices: PriceList, counts: Counts = NO_COUNTS) -> CostForecast:
    """The cost of this cluster on this base. `counts`: instances in its reservations and blocks, where known."""
    found = [(queue, market_capacities(queue, prices, counts)) for queue in cluster.queues]
    static = [(queue, given) for queue, given in found if queue.min_nodes]
    return CostForecast(
        base=tuple(_base_items(base, prices)),
        cluster=(*_cluster_items(cluster, prices), *(_static_nodes(queue, given) for queue, given in static)),
        queues=tuple(row for queue, given in found for row in _queue_costs(queue, given)),
        by_use=tuple(_use_prices(base, cluster, prices)),
        retained=tuple(_kept_items(base, prices)),
        full=tuple(cost_of(queue.max_nodes, queue, given) for queue, given in found),
        static=tuple(cost_of(queue.min_nodes, queue, given) for queue, given in static),
        reserved=tuple(one for queue in cluster.queues for one in _reserved(queue, prices, counts)),
    )


def running_prices(cluster: ClusterPlan, prices: PriceList) -> ClusterPrices:
    """What this cluster and the file systems that it mounts cost an hour, for its head, which has no catalog.

    An item without a known price is left out.
    """
    items = [*_cluster_items(cluster, prices)]
    for system in cluster.lustre:
        if system.retained:
            items += _lustre(system, prices)
    known = total(item.usd_per_hour for item in items if item.usd_per_hour)
    offers = {
        offer.key: PriceRange(low=usd.low, high=usd.high)
        for queue in cluster.queues
        for offer in queue.offers
        if (usd := offer_usd_per_hour(offer, queue.instance_type, prices))
    }
    sources = {price.source for queue in cluster.queues if (price := prices.instance(queue.instance_type))}
    return ClusterPrices(
        offers=offers,
        fixed=PriceRange(low=known.low, high=known.high),
        source="; ".join(sorted(source for source in sources if source)),
    )


def _reserved(queue: QueuePlan, prices: PriceList, counts: Counts) -> Iterator[Sum]:
    """The hourly cost of each reservation and block of the queue; unknown if the spec gives no count."""
    for pool, market in dict.fromkeys((offer.pool, offer.market) for offer in queue.offers if offer.market.is_reserved):
        count, price = counts.get((queue.name, pool)), prices.instance(queue.instance_type)
        usd = price.known(market) if price else None
        what = f"queue {queue.name}: {market.value} {pool} of {queue.instance_type}"
        yield Sum.of([(what, usd.times(count) if usd and count is not None else None)])


def _base_items(base: BasePlan, prices: PriceList) -> Iterator[Item]:
    if base.public:
        yield _hourly(GATEWAY, 1, Service.NAT_GATEWAY_HOUR, prices)
        yield _hourly("public address of the NAT gateway", 1, Service.PUBLIC_IPV4_HOUR, prices)
    if endpoints := len(base.interface_endpoints) * len(base.zones):
        yield _hourly("interface endpoints x zones", endpoints, Service.INTERFACE_ENDPOINT_HOUR, prices)
    yield _monthly("KMS keys", 2, Service.KMS_KEY_MONTH, prices)
    for system in base.lustre:
        yield from _lustre(system, prices)


def _kept_items(base: BasePlan, prices: PriceList) -> Iterator[Item]:
    yield _monthly("KMS key", 1, Service.KMS_KEY_MONTH, prices)
    for system in base.lustre:
        yield from _lustre(system, prices)


def _cluster_items(cluster: ClusterPlan, prices: PriceList) -> Iterator[Item]:
    yield _machines(f"head, {cluster.head.instance_type}", 1, cluster.head.instance_type, prices)
    yield _monthly("head's volumes", cluster.head.root_gib + cluster.head.state_gib, Service.GP3_GIB_MONTH, prices)
    if login := cluster.login:
        count = len(login.zones)
        yield _machines(f"login nodes, {login.instance_type}", count, login.instance_type, prices)
        yield _monthly("login nodes' volumes", count * login.root_gib, Service.GP3_GIB_MONTH, prices)
        if balancer := login.load_balancer:
            yield _hourly(BALANCER, 1, Service.LOAD_BALANCER_HOUR, prices)
            if not balancer.is_internal:
                addresses = len(balancer.zones)
                yield _hourly(f"{BALANCER}'s public address", addresses, Service.PUBLIC_IPV4_HOUR, prices)
    for system in cluster.own_lustre:
        yield from _lustre(system, prices)
    yield _monthly("private DNS zone", 1, Service.HOSTED_ZONE_MONTH, prices)
    secrets = 2 if cluster.login and cluster.login.load_balancer else 1  # the second: the login nodes' host key
    yield _monthly("secret", secrets, Service.SECRET_MONTH, prices)
    yield _monthly("alarm", 1, Service.ALARM_MONTH, prices)


def _machines(what: str, count: int, instance_type: str, prices: PriceList) -> Item:
    """Machines that always run, on demand."""
    price = prices.instance(instance_type)
    usd = price.on_demand if price else None
    return Item(
        what=what,
        count=count,
        unit="",
        usd_per_hour=None if usd is None else Usd.exact(usd * count),
        source=price.source_of(Market.ON_DEMAND) if price else None,
    )


def _lustre(system: LustrePlan, prices: PriceList) -> Iterator[Item]:
    row = find_lustre_deployment(
        system.deployment, storage=system.disks, throughput_mbps_per_tib=system.throughput_mbps_per_tib
    )
    cached = system.drive_cache
    name, price = (row.cached_name, row.cached_price_name) if cached else (row.name, row.price_name)
    yield _monthly(f"Lustre {system.name}, {name}", system.size_gib, price, prices)
    # The price of the size includes a base amount. Source: FSx for Lustre pricing page, "Metadata IOPS".
    beyond = (system.metadata_iops or 0) - metadata_iops().included(system.size_gib)
    if beyond > 0:
        yield _monthly(f"Lustre {system.name}, metadata", beyond, "lustre-metadata-iops-month", prices, unit="IOPS")


def _static_nodes(queue: QueuePlan, found: Sequence[MarketCapacity]) -> Item:
    cost = cost_of(queue.min_nodes, queue, found)
    sources = dict.fromkeys(one.source for one in found if one.source and one.starts)
    return Item(
        what=f"queue {queue.name}, {queue.instance_type}",
        count=queue.min_nodes,
        unit=STATIC,
        usd_per_hour=None if cost.missing else cost.usd,
        source=" / ".join(sources) or None,
    )


def _queue_costs(queue: QueuePlan, found: Sequence[MarketCapacity]) -> Iterator[QueueCost]:
    for one in found:
        yield QueueCost(
            queue=queue.name,
            instance_type=queue.instance_type,
            market=one.market,
            nodes=one.most,
            usd_per_node_hour=one.usd_per_node_hour,
            source=one.source,
            starts=one.starts,
        )


def _use_prices(base: BasePlan, cluster: ClusterPlan, prices: PriceList) -> Iterator[UsePrice]:
    yield _by_use("bucket: objects stored", "GiB and month", Service.S3_GIB_MONTH, prices, retained=True)
    if base.home:
        yield _by_use("home: files stored", "GiB and month", Service.EFS_GIB_MONTH, prices, retained=True)
        if base.home.throughput == "elastic":
            for way in ("read", "written"):
                yield _by_use(f"home: files {way}", "GB", f"efs-elastic-{way}-gb", prices, retained=False)
    for system in (*base.lustre, *cluster.own_lustre):
        if system.backup_days:
            days = f"{system.backup_days} {'day' if system.backup_days == 1 else 'days'}"
            what = f"backups of Lustre {system.name}: {days}, of up to {system.size_gib:,} GiB each"
            yield _by_use(what, "GiB and month", "lustre-backup-gib-month", prices, retained=system.retained)
    for size in sorted({queue.root_gib for queue in cluster.queues}):
        yield _by_use(
            f"root volume of a node: {size} GiB", "GiB and month", Service.GP3_GIB_MONTH, prices, retained=False
        )
    if cluster.login and cluster.login.load_balancer:
        # Source: Elastic Load Balancing's pricing page, "NLCU details": of TCP, 1 GB an hour, 800 new connections a
        # second, or 100,000 open ones. Sessions of people meet the first alone.
        what = f"{BALANCER}: a capacity unit is 1 GB of ssh in an hour"
        yield _by_use(what, "unit and hour", Service.LOAD_BALANCER_UNIT_HOUR, prices, retained=False)
    yield _by_use("traffic through the NAT gateway", "GB", Service.NAT_GATEWAY_GB, prices, retained=False)


def _hourly(what: str, count: int, service: Service, prices: PriceList) -> Item:
    price = prices.service(service)
    return Item(
        what=what,
        count=count,
        unit="",
        usd_per_hour=Usd.exact(price.usd * count) if price else None,
        source=price.source if price else None,
    )


def _monthly(what: str, count: int, service: str, prices: PriceList, *, unit: str | None = None) -> Item:
    price = prices.service(service)
    return Item(
        what=what,
        count=count,
        unit=unit or ("GiB" if "gib" in service else ""),
        usd_per_hour=Usd.exact(price.usd * count / HOURS_PER_MONTH) if price else None,
        source=price.source if price else None,
    )


def _by_use(what: str, unit: str, service: str, prices: PriceList, *, retained: bool) -> UsePrice:
    price = prices.service(service)
    source = price.source if price else None
    return UsePrice(what=what, usd=price.usd if price else None, unit=unit, source=source, retained=retained)
