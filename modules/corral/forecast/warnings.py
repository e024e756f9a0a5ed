"""Warnings about a plan before it is deployed: quotas and limits that it exceeds, hidden costs, distance from data.

None is an error in the spec: quotas can be raised, and an instance far from its data still works. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.catalog.aws.images import image_profiles
from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.zone_offerings import has_offerings, offered_zones
from corral.catalog.project_catalog import Catalog
from corral.forecast.cost.budget_limits import CostLimit
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.pool_capacity import NO_COUNTS, Counts, starts
from corral.forecast.cost.price_source import PriceList, Service
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, ImagePlan, QueuePlan
from corral.model.enums import Market
from corral.model.zones import is_zone_id
from corral.plan.addresses import free_addresses, max_addresses

# Amazon VPC User Guide, "Amazon VPC quotas": network interfaces per Region; network address usage, and its maximum.
INTERFACES_PER_REGION = 5_000
UNITS_PER_VPC, MAX_UNITS_PER_VPC = 64_000, 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWarning:
    """A warning. `about`: the part of the environment it concerns, such as `queue train`. `fix`: what to do, or ""."""

    about: str
    message: str
    fix: str = ""

    @property
    def text(self) -> str:
        """The message with its fix, as users read it."""
        return f"{self.message} - {self.fix}" if self.fix else self.message


def plan_warnings(
    base: BasePlan, cluster: ClusterPlan, prices: PriceList, counts: Counts = NO_COUNTS
) -> tuple[PlanWarning, ...]:
    """The warnings, most severe first: unavailable capacity, limits, cost, speed.

    `counts`: instances in each reservation and capacity block, where known.
    """
    return (
        *_offered(cluster),
        *_beyond_counts(cluster, counts),
        *_too_low_limits(cluster, prices),
        *_address_units(cluster),
        *_addresses(base, cluster),
        *_interfaces(cluster),
        *_paid_anyway(cluster, prices, counts),
        *_over_zones(cluster),
        *_reservations(cluster),
        *_far_from_data(cluster, prices),
        *_installs(cluster.image),
    )


def replaced_type_warnings(catalog: Catalog) -> tuple[PlanWarning, ...]:
    """A warning for each shipped instance type that the project overrides: every forecast for it uses those figures."""
    message = "comes from the project's catalog.toml, not from corral's catalog"
    return tuple(PlanWarning(about=f"type {name}", message=message) for name in catalog.replaced)


def limit_warnings(limits: Sequence[CostLimit]) -> tuple[PlanWarning, ...]:
    """A warning for each of the user's limits that the plan exceeds."""
    return tuple(
        PlanWarning(about="limit", message=f"{error.file}: {error.path}: {error.message}", fix=error.fix)
        for error in (limit.refusal for limit in limits)
        if error
    )


def interfaces(cluster: ClusterPlan) -> int:
    """Network interfaces with all nodes running, without those of head and file systems."""
    return sum(queue.max_nodes * len(queue.nics) for queue in cluster.queues)


def address_units(cluster: ClusterPlan) -> int:
    """Network address units with all nodes running.

    One per machine address, and one per further interface. Source: Amazon VPC User Guide, "Network Address
    Usage for your VPC".
    """
    return sum(queue.max_nodes * len(queue.nics) for queue in cluster.queues)


def _installs(image: ImagePlan) -> Iterator[PlanWarning]:
    """What boot installs. An image declared by its id is skipped: its contents are unknown."""
    profile = image_profiles().get(image.profile)
    if profile and profile.head_install_s and image.image_id is None:
        node, head = _minutes(profile.node_install_s), _minutes(profile.head_install_s)
        message = f"installs Slurm and other missing packages: about {node} min per node, {head} min for the head"
        yield PlanWarning(about="boot", message=message, fix="use an image with these packages to save that time")


def _minutes(seconds: int) -> int:
    return max(1, round(seconds / 60))


def _interfaces(cluster: ClusterPlan) -> Iterator[PlanWarning]:
    if (count := interfaces(cluster)) > INTERFACES_PER_REGION:
        quota = f"a region's quota is {INTERFACES_PER_REGION:,}"
        yield PlanWarning(about="quota", message=f"all nodes together have {count:,} network interfaces, but {quota}")


def _address_units(cluster: ClusterPlan) -> Iterator[PlanWarning]:
    count = address_units(cluster)
    needed = f"all nodes together need {count:,} network address units"
    if count > MAX_UNITS_PER_VPC:
        message = f"{needed}, but a VPC holds at most {MAX_UNITS_PER_VPC:,}"
        yield PlanWarning(about="VPC", message=message, fix="divide the cluster over several bases")
    elif count > UNITS_PER_VPC:
        yield PlanWarning(about="VPC", message=f"{needed}, but a VPC holds {UNITS_PER_VPC:,} by default")


def _addresses(base: BasePlan, cluster: ClusterPlan) -> Iterator[PlanWarning]:
    for zone in base.zones:
        taken, free = max_addresses(cluster, zone), free_addresses(zone)
        if taken > free:
            message = f"all nodes that may run there need {taken:,} addresses, but the subnet has {free:,}"
            yield PlanWarning(about=f"zone {zone.zone_id}", message=message)


def _offered(cluster: ClusterPlan) -> Iterator[PlanWarning]:
    """Zones that do not offer a queue's type. Queues whose type the region lacks come first."""
    if not has_offerings(cluster.region):
        message = f"which instance types {cluster.region} offers is unknown to the catalog"
        yield PlanWarning(about="region", message=message, fix="`corral check` queries AWS")
        return
    for queue in sorted(cluster.queues, key=lambda queue: bool(offered_zones(queue.instance_type, cluster.region))):
        if queue.instance_type not in instance_types():
            continue  # the project's own type, which the snapshot lacks
        known = offered_zones(queue.instance_type, cluster.region)
        zones = dict.fromkeys(offer.zone_id for offer in queue.offers if not offer.market.is_reserved)
        if not all(map(is_zone_id, zones)):
            continue  # the zone of a name depends on the account
        if missing := [zone for zone in zones if zone not in known]:
            message = f"{queue.instance_type} is not offered in {', '.join(missing)} by the catalog's snapshot"
            yield PlanWarning(
                about=f"queue {queue.name}",
                message=message if known else f"{message}, nor in any other zone of the region",
                fix=f"change the zones of its capacity: it is in {', '.join(known)}" if known else "",
            )


def _over_zones(cluster: ClusterPlan) -> Iterator[PlanWarning]:
    for queue in cluster.queues:
        zones = tuple(dict.fromkeys(offer.zone_id for offer in queue.offers))
        if queue.efa and len(zones) > 1:
            message = f"EFA does not connect {', '.join(zones)}: a job with EFA needs all its nodes in one zone"
            yield PlanWarning(about=f"queue {queue.name}", message=message)


def _far_from_data(cluster: ClusterPlan, prices: PriceList) -> Iterator[PlanWarning]:
    price = prices.service(Service.CROSS_ZONE_GB)
    cost = f" and costs {price.usd:g} USD per GB" if price else ""
    for system in cluster.lustre:
        if readers := _far_readers(cluster.queues, system.zone_id):
            yield PlanWarning(
                about=f"Lustre {system.name}",
                message=f"is in {system.zone_id}, nodes of {readers}: reading from there is slower{cost}",
            )


def _far_readers(queues: Sequence[QueuePlan], zone: str) -> str:
    """The queues whose nodes may run in other zones, grouped by these zones; empty without any."""
    by_zones: dict[tuple[str, ...], list[str]] = {}
    for queue in queues:
        if far := _other_zones(queue, zone):
            by_zones.setdefault(far, []).append(queue.name)
    return ", of ".join(f"{', '.join(names)} may run in {', '.join(far)}" for far, names in by_zones.items())


def _other_zones(queue: QueuePlan, zone: str) -> tuple[str, ...]:
    return tuple(other for other in dict.fromkeys(offer.zone_id for offer in queue.offers) if other != zone)


def _beyond_counts(cluster: ClusterPlan, counts: Counts) -> Iterator[PlanWarning]:
    for queue in cluster.queues:
        pools = {(queue.name, offer.pool) for offer in queue.offers}
        if all(pool in counts for pool in pools) and queue.max_nodes > (held := sum(counts[pool] for pool in pools)):
            message = f"nodes.max is {queue.max_nodes}, but its capacity is {held}: the other nodes can never start"
            yield PlanWarning(about=f"queue {queue.name}", message=message)


def _reservations(cluster: ClusterPlan) -> Iterator[PlanWarning]:
    for queue in cluster.queues:
        for offer in queue.offers:
            if offer.market is Market.RESERVATION and queue.efa and offer.reserved_group is None:
                group = "has no declared placement group: its machines may be far from each other"
                yield PlanWarning(about=f"queue {queue.name}", message=f"reservation {offer.reservation} {group}")


def _too_low_limits(cluster: ClusterPlan, prices: PriceList) -> Iterator[PlanWarning]:
    for queue in cluster.queues:
        price = prices.instance(queue.instance_type)
        limits = dict.fromkeys(
            offer.max_price_usd_per_hour for offer in queue.offers if not starts(offer, queue.instance_type, prices)
        )
        for limit in limits:
            if price and price.spot and limit is not None:
                message = (
                    f"spot at a limit of {limit:.2f} USD an hour is not expected to start: the cheapest known zone"
                    f" costs {price.spot.low:.2f}"
                )
                yield PlanWarning(about=f"queue {queue.name}", message=message)


def _paid_anyway(cluster: ClusterPlan, prices: PriceList, counts: Counts) -> Iterator[PlanWarning]:
    """The cost of reserved capacity, used or not. The spec does not give the length of a block."""
    for queue in cluster.queues:
        pools = {offer.pool: offer for offer in queue.offers if offer.market.is_reserved}
        for pool, offer in pools.items():
            count, price = counts.get((queue.name, pool)), prices.instance(queue.instance_type)
            usd = price.known(offer.market) if price else None
            yield PlanWarning(
                about=f"queue {queue.name}",
                message=_reserved_cost(offer.market, queue.instance_type, count, usd),
                fix="set `count` for the total" if usd and count is None else "",
            )


def _reserved_cost(market: Market, instance_type: str, count: int | None, usd: Usd | None) -> str:
    if usd is None:
        cost = f"at an unknown price of {instance_type}"
    elif count is None:
        cost = f"{usd.low:,.2f} USD an hour per instance"
    else:
        cost = f"{count:,} x {usd.low:,.2f} = {usd.low * count:,.2f} USD an hour"
    if market is Market.CAPACITY_BLOCK:
        return f"its capacity block is billed as a whole at purchase, used or not: {cost}, for all its hours"
    return f"its reservation costs money while it exists, even without running nodes: {cost}"
