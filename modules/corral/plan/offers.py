"""Plan offers from pools and zones, in the order in which they are tried."""

from collections.abc import Collection, Mapping, Sequence

from corral.model.cluster import OfferPlan, PlacementGroupPlan
from corral.spec.models.queues import PoolSpec, QueueSpec

_ID_END = 6  # characters of a reservation's id in its offer's key, if that distinguishes the queue's ids


def plan_offers(queue: QueueSpec, zone_ids: Sequence[str], *, grouped: bool) -> tuple[OfferPlan, ...]:
    """Return one offer per pool and zone: pools in declared order, zones in the pool's order, by default the base's.

    A reservation or capacity block has one offer per id, since a launch names the one that it uses.

    `grouped`: launch into the cluster placement group of the zone, as EFA nodes should.
    """
    ends = _ends({id for pool in queue.capacity for id in pool.ids})
    return tuple(
        _offer(queue.name, number, pool, zone_id, reservation, end=ends.get(reservation or ""), grouped=grouped)
        for number, pool in enumerate(queue.capacity, start=1)
        for zone_id in (pool.zones or zone_ids)
        for reservation in (pool.ids or (None,))
    )


def plan_placement_groups(queue: str, offers: Sequence[OfferPlan]) -> tuple[PlacementGroupPlan, ...]:
    """Return the placement groups of these offers, by zone: a cluster placement group cannot span zones."""
    zones = sorted({(offer.zone_id, offer.placement_group) for offer in offers if offer.placement_group})
    return tuple(PlacementGroupPlan(key=key, queue=queue, zone_id=zone_id) for zone_id, key in zones if key)


def _ends(ids: Collection[str]) -> Mapping[str, str]:
    """Return a short form of each id for offer keys: its shortest unique ending of at least six characters."""
    return {id: next(end for end in _longer_ends(id) if sum(other.endswith(end) for other in ids) == 1) for id in ids}


def _longer_ends(id: str) -> tuple[str, ...]:
    return tuple(id[-length:] for length in range(_ID_END, len(id) + 1))


def _offer(
    queue: str, number: int, pool: PoolSpec, zone_id: str, reservation: str | None, *, end: str | None, grouped: bool
) -> OfferPlan:
    key = f"{queue}-{pool.market}-{zone_id}"
    # A capacity block places its instances together and rejects a group; a reservation requires its own group.
    own_group = grouped and not pool.market.is_reserved
    return OfferPlan(
        key=f"{key}-{end}" if end else key,
        pool=number,
        market=pool.market,
        zone_id=zone_id,
        max_price_usd_per_hour=pool.max_price,
        placement_group=f"{queue}-{zone_id}" if own_group else None,
        reservation=reservation,
        reserved_group=pool.placement_group,
    )
