"""What somebody should know before they bring an environment up: limits that it meets, costs and places easily missed.

Nothing here is a mistake in the spec: quotas can be raised, and a machine far from its data still works. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.catalog.images import image_profiles
from corral.catalog.instances import instance_types
from corral.catalog.offerings import offered_zones
from corral.catalog.project import Catalogue
from corral.forecast.capacity import NO_COUNTS, Counts, starts
from corral.forecast.limits import Limit
from corral.forecast.money import Usd
from corral.forecast.prices import PriceList, Service
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan, ImagePlan, QueuePlan
from corral.model.markets import Market
from corral.model.zones import is_zone_id
from corral.plan.addresses import free_addresses, taken_addresses

# Amazon VPC User Guide, "Amazon VPC quotas": network interfaces per Region; network address usage, and its maximum.
INTERFACES_PER_REGION = 5_000
UNITS_PER_VPC, MOST_UNITS_PER_VPC = 64_000, 256_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One thing to know. `about`: what of the environment it concerns, such as `queue train`."""

    about: str
    text: str


def notes(base: BasePlan, cluster: ClusterPlan, prices: PriceList, counts: Counts = NO_COUNTS) -> tuple[Note, ...]:
    """The notes by what they can cost: nodes that cannot be had, limits, money, speed.

    `counts`: what reservations and blocks hold, where that is known.
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


def replaced(catalogue: Catalogue) -> tuple[Note, ...]:
    """A note for each shipped type that the project states anew, since all that is computed of it rests on that."""
    text = "is what the project's catalogue.toml says, not what corral ships"
    return tuple(Note(about=f"type {name}", text=text) for name in catalogue.replaced)


def over(limits: Sequence[Limit]) -> tuple[Note, ...]:
    """A note for each limit of the user's that does not hold."""
    return tuple(Note(about="limit", text=limit.refusal) for limit in limits if limit.refusal)


def interfaces(cluster: ClusterPlan) -> int:
    """Network interfaces with every node running, the head's and the file systems' not counted."""
    return sum(queue.max_nodes * len(queue.nics) for queue in cluster.queues)


def address_units(cluster: ClusterPlan) -> int:
    """Network address units with every node running.

    A unit for a machine's address, and one for each further interface. Source: Amazon VPC User Guide, "Network Address
    Usage for your VPC".
    """
    return sum(queue.max_nodes * len(queue.nics) for queue in cluster.queues)


def _installs(image: ImagePlan) -> Iterator[Note]:
    """Of an image that somebody names by its id nobody knows what it lacks."""
    profile = image_profiles().get(image.profile)
    if profile and profile.head_install_s and image.image_id is None:
        node, head = _minutes(profile.node_install_s), _minutes(profile.head_install_s)
        text = f"installs Slurm and what else the image lacks: about {node} min of a node's, {head} min of the head's"
        yield Note(about="boot", text=f"{text}; an image of your own that has them saves it")


def _minutes(seconds: int) -> int:
    return max(1, round(seconds / 60))


def _interfaces(cluster: ClusterPlan) -> Iterator[Note]:
    if (count := interfaces(cluster)) > INTERFACES_PER_REGION:
        text = (
            f"every node together has {count:,} network interfaces, and a region's quota is {INTERFACES_PER_REGION:,}"
        )
        yield Note(about="quota", text=f"{text} unless it was raised")


def _address_units(cluster: ClusterPlan) -> Iterator[Note]:
    count = address_units(cluster)
    text = f"every node together takes {count:,} network address units"
    if count > MOST_UNITS_PER_VPC:
        limit = f"a VPC holds {MOST_UNITS_PER_VPC:,} at most"
        yield Note(about="VPC", text=f"{text}, and {limit}: one VPC cannot hold this - divide it over several bases")
    elif count > UNITS_PER_VPC:
        yield Note(about="VPC", text=f"{text}, and a VPC holds {UNITS_PER_VPC:,} unless its quota was raised")


def _addresses(base: BasePlan, cluster: ClusterPlan) -> Iterator[Note]:
    for zone in base.zones:
        taken, free = taken_addresses(cluster, zone), free_addresses(zone)
        if taken > free:
            text = f"every node that may run there takes {taken:,} addresses, and the subnet has {free:,}"
            yield Note(about=f"zone {zone.zone_id}", text=text)


def _offered(cluster: ClusterPlan) -> Iterator[Note]:
    """Queues whose type the region does not have come first: not one of their nodes can start."""
    for queue in sorted(cluster.queues, key=lambda queue: bool(offered_zones(queue.instance_type, cluster.region))):
        if queue.instance_type not in instance_types():
            continue  # the project's own type, of which no snapshot knows
        known = offered_zones(queue.instance_type, cluster.region)
        zones = dict.fromkeys(offer.zone_id for offer in queue.offers if not offer.market.is_reserved)
        if not all(map(is_zone_id, zones)):
            continue  # which zone a name means only the account knows
        if missing := [zone for zone in zones if zone not in known]:
            there = f"it was in {', '.join(known)}" if known else "nor anywhere else in this region"
            text = f"{queue.instance_type} was not offered in {', '.join(missing)} when last looked; {there}"
            yield Note(about=f"queue {queue.name}", text=text)


def _over_zones(cluster: ClusterPlan) -> Iterator[Note]:
    for queue in cluster.queues:
        zones = tuple(dict.fromkeys(offer.zone_id for offer in queue.offers))
        if queue.efa and len(zones) > 1:
            text = f"EFA does not join nodes of {', '.join(zones)}: a job that needs it needs all its nodes in one zone"
            yield Note(about=f"queue {queue.name}", text=text)


def _far_from_data(cluster: ClusterPlan, prices: PriceList) -> Iterator[Note]:
    price = prices.service(Service.CROSS_ZONE_GB)
    cost = f" and costs {price.usd:g} USD for each GB" if price else ""
    for system in cluster.lustre:
        if readers := _far_readers(cluster.queues, system.zone_id):
            yield Note(
                about=f"Lustre {system.name}",
                text=f"is in {system.zone_id}, nodes of {readers}: reading from there is slower{cost}",
            )


def _far_readers(queues: Sequence[QueuePlan], zone: str) -> str:
    """The queues whose nodes may run in other zones, those with the same zones together; empty where there are none."""
    by_zones: dict[tuple[str, ...], list[str]] = {}
    for queue in queues:
        if far := _other_zones(queue, zone):
            by_zones.setdefault(far, []).append(queue.name)
    return ", of ".join(f"{', '.join(names)} may run in {', '.join(far)}" for far, names in by_zones.items())


def _other_zones(queue: QueuePlan, zone: str) -> tuple[str, ...]:
    return tuple(other for other in dict.fromkeys(offer.zone_id for offer in queue.offers) if other != zone)


def _beyond_counts(cluster: ClusterPlan, counts: Counts) -> Iterator[Note]:
    for queue in cluster.queues:
        pools = {(queue.name, offer.pool) for offer in queue.offers}
        if all(pool in counts for pool in pools) and queue.max_nodes > (held := sum(counts[pool] for pool in pools)):
            text = f"nodes.max is {queue.max_nodes}, and its capacity counts {held}: the others can never start"
            yield Note(about=f"queue {queue.name}", text=text)


def _reservations(cluster: ClusterPlan) -> Iterator[Note]:
    for queue in cluster.queues:
        for offer in queue.offers:
            if offer.market is Market.RESERVATION and queue.efa and offer.reserved_group is None:
                text = "was made in no placement group that is declared: its machines may stand far from each other"
                yield Note(about=f"queue {queue.name}", text=f"reservation {offer.reservation} {text}")


def _too_low_limits(cluster: ClusterPlan, prices: PriceList) -> Iterator[Note]:
    for queue in cluster.queues:
        price = prices.instance(queue.instance_type)
        limits = dict.fromkeys(
            offer.max_price_usd_per_hour for offer in queue.offers if not starts(offer, queue.instance_type, prices)
        )
        for limit in limits:
            if price and price.spot and limit is not None:
                text = (
                    f"spot at {limit:.2f} USD an hour at most is not expected to start: the cheapest zone known took"
                    f" {price.spot.low:.2f}"
                )
                yield Note(about=f"queue {queue.name}", text=text)


def _paid_anyway(cluster: ClusterPlan, prices: PriceList, counts: Counts) -> Iterator[Note]:
    """What reserved capacity costs whether its machines run or not. How long a block lasts, the spec does not say."""
    for queue in cluster.queues:
        pools = {offer.pool: offer for offer in queue.offers if offer.market.is_reserved}
        for pool, offer in pools.items():
            count, price = counts.get((queue.name, pool)), prices.instance(queue.instance_type)
            usd = price.known(offer.market) if price else None
            yield Note(about=f"queue {queue.name}", text=_bound(offer.market, queue.instance_type, count, usd))


def _bound(market: Market, instance_type: str, count: int | None, usd: Usd | None) -> str:
    if usd is None:
        cost = f"at a price of {instance_type} that is not known"
    elif count is None:
        cost = f"{usd.low:,.2f} USD an hour for each instance (`count` does not say how many)"
    else:
        cost = f"{count:,} x {usd.low:,.2f} = {usd.low * count:,.2f} USD an hour"
    if market is Market.CAPACITY_BLOCK:
        return f"its capacity block is paid for as a whole when it is bought, used or not: {cost}, for all its hours"
    return f"its reservation costs money as long as there is one, with no node running, too: {cost}"
