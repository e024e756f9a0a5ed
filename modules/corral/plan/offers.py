"""Pools and zones to offers, in the order in which they are tried."""

from collections.abc import Collection, Mapping, Sequence

from corral.model.cluster import OfferPlan, PlacementGroupPlan
from corral.spec.queues import PoolSpec, QueueSpec

_ID_END = 6  # characters of a reservation's id in the key of its offer, where they tell the queue's ids apart


def plan_offers(queue: QueueSpec, zone_ids: Sequence[str], *, grouped: bool) -> tuple[OfferPlan, ...]:
    """One offer per pool and zone: pools in the declared order, zones in the pool's order or else the base's.

    Of a reservation or capacity block, one for each id: a launch names the one that it uses.

    `grouped`: launches go into the cluster placement group of their zone, as nodes that speak EFA should.
    """
    ends = _ends({id for pool in queue.capacity for id in pool.ids})
    return tuple(
        _offer(queue.name, number, pool, zone_id, reservation, end=ends.get(reservation or ""), grouped=grouped)
        for number, pool in enumerate(queue.capacity, start=1)
        for zone_id in (pool.zones or zone_ids)
        for reservation in (pool.ids or (None,))
    )


def plan_placement_groups(queue: str, offers: Sequence[OfferPlan]) -> tuple[PlacementGroupPlan, ...]:
    """The groups that these offers name, by zone: a cluster placement group cannot span zones."""
    zones = sorted({(offer.zone_id, offer.placement_group) for offer in offers if offer.placement_group})
    return tuple(PlacementGroupPlan(key=key, queue=queue, zone_id=zone_id) for zone_id, key in zones if key)


def _ends(ids: Collection[str]) -> Mapping[str, str]:
    """By id, what stands for it in the key of its offer: its shortest end, of six characters or more, of its own."""
    return {id: next(end for end in _longer_ends(id) if sum(other.endswith(end) for other in ids) == 1) for id in ids}


def _longer_ends(id: str) -> tuple[str, ...]:
    return tuple(id[-length:] for length in range(_ID_END, len(id) + 1))


def _offer(
    queue: str, number: int, pool: PoolSpec, zone_id: str, reservation: str | None, *, end: str | None, grouped: bool
) -> OfferPlan:
    key = f"{queue}-{pool.market}-{zone_id}"
    # A block's machines stand together by themselves, and it refuses a group; a reservation must carry its group.
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
