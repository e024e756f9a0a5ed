"""Rules about queues: their names, machines, counts, capacity and times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

from corral.catalog.instances import type_hint
from corral.model.markets import Market
from corral.spec import rules_names
from corral.spec.base import BaseSpec
from corral.spec.cluster import LifetimeSpec
from corral.spec.durations import format_duration
from corral.spec.errors import Finding, Loc
from corral.spec.queues import PoolSpec, QueueSpec
from corral.spec.rules_lustre import directory_problem
from corral.spec.surroundings import Surroundings

MOST_NODES = 65533  # Slurm's own limit on the nodes of one cluster (TreeWidth, slurm.conf)
_SHORTEST_SUSPEND = timedelta(seconds=60)  # slurmctld looks for idle nodes every minute
_RESERVATION_ID = re.compile(r"cr-[0-9a-f]{17}")
_LOWEST_PRICE = 0.001  # USD an hour. Source: EC2 API reference, LaunchTemplateSpotMarketOptionsRequest, MaxPrice
_MOST_PRICES = 10  # on-demand prices. Source: EC2 User Guide of 2016, "Spot Bid Price Limit"; newer ones: NOT VERIFIED
_BLOCK_INSTANCES, BLOCKS_INSTANCES = 64, 256  # of one block, of all. Source: EC2 User Guide, "Capacity Blocks for ML"
_SHORTEST_LIMIT = timedelta(minutes=1)  # Slurm counts the limits of jobs in minutes


def check(queues: Sequence[QueueSpec], around: Surroundings) -> Iterator[Finding]:
    """What is wrong with these queues."""
    for number, queue in enumerate(queues):
        yield from _check_queue(("queues", number), queue, around)
    yield from rules_names.check_unique([queue.name for queue in queues], ("queues",), "name", "name")
    total = sum(queue.nodes.max for queue in queues)
    if total > MOST_NODES:
        yield Finding(("queues",), f"have {total} nodes together - Slurm takes {MOST_NODES}")
    yield from _check_reservations_apart(queues)
    yield from _check_blocks_together(queues)


def check_type(loc: Loc, name: str, around: Surroundings) -> Iterator[Finding]:
    """What is wrong with the name of an instance type."""
    types = around.catalogue.instance_types
    if name not in types:
        yield Finding(loc, f"{name!r} is not in the catalogue - {type_hint(name, types)}")


def check_time_limits(queues: Sequence[QueueSpec], lifetime: LifetimeSpec) -> Iterator[Finding]:
    """The limits on jobs that no job could use up before the cluster ends."""
    for number, queue in enumerate(queues):
        if queue.time_limit and lifetime.ttl and queue.time_limit > lifetime.ttl:
            yield Finding(
                ("queues", number, "time_limit"),
                f"{format_duration(queue.time_limit)} is longer than the cluster lives"
                f" - use lifetime.ttl {format_duration(lifetime.ttl)} or less",
            )


def _check_queue(loc: Loc, queue: QueueSpec, around: Surroundings) -> Iterator[Finding]:
    yield from rules_names.check_name((*loc, "name"), queue.name)
    yield from check_type((*loc, "instance_type"), queue.instance_type, around)
    yield from _check_machine(loc, queue, around)
    if queue.nodes.min > queue.nodes.max:
        yield Finding((*loc, "nodes", "min"), f"{queue.nodes.min} is more than max {queue.nodes.max} - use max or less")
    yield from _check_static(loc, queue, around)
    yield from _check_times(loc, queue)
    for number, pool in enumerate(queue.capacity):
        yield from _check_pool((*loc, "capacity", number), pool, around)
        yield from _check_price((*loc, "capacity", number, "max_price"), pool, queue.instance_type, around)
    yield from _check_overlaps((*loc, "capacity"), queue.capacity, around.base)
    yield from _check_slurm(loc, queue)


def _check_machine(loc: Loc, queue: QueueSpec, around: Surroundings) -> Iterator[Finding]:
    machine = around.catalogue.instance_types.get(queue.instance_type)
    if machine is None:
        return
    if queue.efa in ("on", "with-ena") and not machine.efa_maximum:
        yield Finding(
            (*loc, "efa"), f"{queue.efa!r}, but {machine.name} has no EFA - use 'auto' or another instance_type"
        )
    if "nvme" in queue.model_fields_set and queue.nvme != "off" and not machine.nvme_count:
        yield Finding((*loc, "nvme"), f"{machine.name} has no disks of its own - leave it out")
    for number, pool in enumerate(queue.capacity):
        if pool.market.usage_class not in machine.markets:
            sold = ", ".join(machine.markets)
            yield Finding(
                (*loc, "capacity", number, "market"), f"{machine.name} is not sold as {pool.market!s} - it is as {sold}"
            )


def _check_static(loc: Loc, queue: QueueSpec, around: Surroundings) -> Iterator[Finding]:
    """Nodes that are always there need a place: where all capacity is counted, its count, and with EFA in one zone."""
    if not all(pool.market.is_reserved and pool.count for pool in queue.capacity):
        return
    counts: Counter[str] = Counter()
    for pool in queue.capacity:
        counts[", ".join(pool.zones or ())] += pool.count or 0
    machine = around.catalogue.instance_types.get(queue.instance_type)
    most = max(counts.values())
    if queue.nodes.min > counts.total():
        yield Finding(
            (*loc, "nodes", "min"),
            f"{queue.nodes.min} is more than the {counts.total()} instances that its capacity counts - use"
            f" {counts.total()} or less, or add another pool",
        )
    elif machine and machine.efa_maximum and queue.efa != "off" and queue.nodes.min > most:
        here = ", ".join(f"{count} in {zone}" for zone, count in counts.items())
        yield Finding(
            (*loc, "nodes", "min"),
            f"{queue.nodes.min} is more than any one zone has, and EFA does not cross zones: its capacity counts {here}"
            f" - use {most} or less, or a queue for each zone",
        )


def _check_times(loc: Loc, queue: QueueSpec) -> Iterator[Finding]:
    if queue.suspend_after < _SHORTEST_SUSPEND:
        yield Finding((*loc, "suspend_after"), f"{format_duration(queue.suspend_after)} is too short - use 1m or more")
    if queue.time_limit is not None and queue.time_limit < _SHORTEST_LIMIT:
        yield Finding((*loc, "time_limit"), f"{format_duration(queue.time_limit)} is too short - use 1m or more")


def _check_pool(loc: Loc, pool: PoolSpec, around: Surroundings) -> Iterator[Finding]:
    zones = pool.zones or ()
    for number, zone in enumerate(zones):
        yield from rules_names.check_base_zone((*loc, "zones", number), zone, around)
        if zone in zones[:number]:
            yield Finding((*loc, "zones", number), f"{zone!r} is listed twice - keep one")
    if pool.max_price is not None and pool.market is not Market.SPOT:
        yield Finding((*loc, "max_price"), f"is for spot only, this pool is {pool.market!s} - leave it out")
    yield from (_check_reserved(loc, pool) if pool.market.is_reserved else _check_bought(loc, pool))


def _check_price(loc: Loc, pool: PoolSpec, instance_type: str, around: Surroundings) -> Iterator[Finding]:
    """What EC2 refuses as a price of spot; without a known on-demand price nothing is said about too high a one."""
    price = pool.max_price
    if price is None or pool.market is not Market.SPOT:
        return
    if price < _LOWEST_PRICE:
        yield Finding(loc, f"{price:g} is less than EC2 takes - use {_LOWEST_PRICE} or more, or leave it out")
    known = around.catalogue.instance_price(instance_type, around.region)
    on_demand = known.on_demand_usd_per_hour if known else None
    if on_demand is not None and price > on_demand * _MOST_PRICES:
        yield Finding(
            loc,
            f"{price:g} is more than {_MOST_PRICES} times the on-demand price of {instance_type} ({on_demand:g}), the"
            " most that EC2 takes - leave it out, and spot costs the on-demand price at most",
        )


def _check_reserved(loc: Loc, pool: PoolSpec) -> Iterator[Finding]:
    if not pool.ids:
        yield Finding((*loc, "ids"), f"is missing - a {pool.market!s} has an id, such as [cr-0123456789abcdef0]")
    for number, id in enumerate(pool.ids):
        if not _RESERVATION_ID.fullmatch(id):
            message = f"{id!r} is not the id of a reservation - it looks like cr-0123456789abcdef0"
            yield Finding((*loc, "ids", number), message)
    if pool.zones is None or len(pool.zones) != 1:
        yield Finding((*loc, "zones"), f"a {pool.market!s} is in one zone - give that one, and other ids another pool")
    if pool.placement_group is not None and pool.market is Market.CAPACITY_BLOCK:
        yield Finding((*loc, "placement_group"), "a capacity block takes no placement group - leave it out")
    if pool.ids and pool.count is not None and pool.count > (most := _most_counted(pool)):
        blocks = "a capacity block holds" if len(pool.ids) == 1 else f"{len(pool.ids)} capacity blocks hold"
        yield Finding((*loc, "count"), f"{pool.count} is more than {blocks} - use {most} or less, or name more blocks")


def _most_counted(pool: PoolSpec) -> int:
    """The largest count that these ids can hold; of reservations EC2 sets no bound, so that it is the count itself."""
    count = pool.count or 0
    return min(count, len(pool.ids) * _BLOCK_INSTANCES) if pool.market is Market.CAPACITY_BLOCK else count


def _check_bought(loc: Loc, pool: PoolSpec) -> Iterator[Finding]:
    for field in ("ids", "count", "placement_group"):
        if field in pool.model_fields_set:
            message = f"is for reservations and capacity blocks, this pool is {pool.market!s} - leave it out"
            yield Finding((*loc, field), message)


def _check_reservations_apart(queues: Sequence[QueueSpec]) -> Iterator[Finding]:
    """One reservation serves one queue once: two would take its instances from each other."""
    seen: dict[str, str] = {}
    for q, queue in enumerate(queues):
        for p, pool in enumerate(queue.capacity):
            for number, id in enumerate(pool.ids):
                if id in seen:
                    message = f"{id!r} is used by {seen[id]} already - name it once"
                    yield Finding(("queues", q, "capacity", p, "ids", number), message)
                seen.setdefault(id, f"queues[{q}].capacity[{p}]")


def _check_blocks_together(queues: Sequence[QueueSpec]) -> Iterator[Finding]:
    """One account has so many instances in capacity blocks at most; what one pool says wrongly is told there."""
    blocks = [pool for queue in queues for pool in queue.capacity if pool.market is Market.CAPACITY_BLOCK]
    if (total := sum(_most_counted(pool) for pool in blocks)) > BLOCKS_INSTANCES:
        yield Finding(
            ("queues",),
            f"count {total} instances in capacity blocks together - EC2 has at most {BLOCKS_INSTANCES} in all blocks"
            " of an account",
        )


def _check_slurm(loc: Loc, queue: QueueSpec) -> Iterator[Finding]:
    if queue.nvme != "off" and (message := directory_problem(queue.nvme)):
        yield Finding((*loc, "nvme"), message)


def _check_overlaps(loc: Loc, pools: Sequence[PoolSpec], base: BaseSpec | None) -> Iterator[Finding]:
    """Pools that would try again what an earlier one has already tried: the same market in the same zone."""
    everywhere = frozenset(base.network.zone_names) if base else None
    for number, pool in enumerate(pools):
        if pool.market.is_reserved:
            continue  # told apart by their ids
        for earlier, other in enumerate(pools[:number]):
            if pool.market is other.market and (common := _common_zones(pool, other, everywhere)):
                yield Finding(
                    (*loc, number),
                    f"{pool.market!s} in {common} is in entry {earlier} already - name other zones, or leave it out",
                )
                break


def _common_zones(one: PoolSpec, other: PoolSpec, everywhere: frozenset[str] | None) -> str:
    """The zones that both pools cover, in words; empty where they share none."""
    if one.zones is None and other.zones is None:
        return "every zone"
    if everywhere is None and (one.zones is None or other.zones is None):
        return ", ".join(sorted(one.zones or other.zones or ()))
    shared = (frozenset(one.zones) if one.zones else everywhere or frozenset()) & (
        frozenset(other.zones) if other.zones else everywhere or frozenset()
    )
    return ", ".join(sorted(shared))
