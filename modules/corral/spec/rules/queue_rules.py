"""Rules about queues: their names, machines, counts, capacity and times."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta

from corral.catalog.aws.instance_types import type_hint
from corral.model.enums import Market
from corral.spec.models.base import BaseSpec
from corral.spec.models.cluster import LifetimeSpec
from corral.spec.models.durations import format_duration
from corral.spec.models.queues import PoolSpec, QueueSpec
from corral.spec.rules import name_rules
from corral.spec.rules.lustre_rules import directory_problem
from corral.spec.spec_errors import Loc, SpecFinding
from corral.spec.validation_context import ValidationContext

MAX_NODES = 65533  # Slurm's own limit on the nodes of one cluster (TreeWidth, slurm.conf)
_SHORTEST_SUSPEND = timedelta(seconds=60)  # slurmctld checks for idle nodes every minute
_RESERVATION_ID = re.compile(r"cr-[0-9a-f]{17}")
_LOWEST_PRICE = 0.001  # USD an hour. Source: EC2 API reference, LaunchTemplateSpotMarketOptionsRequest, MaxPrice
_MAX_PRICES = 10  # on-demand prices. Source: EC2 User Guide of 2016, "Spot Bid Price Limit"; newer ones: NOT VERIFIED
_BLOCK_INSTANCES, BLOCKS_INSTANCES = 64, 256  # per block, and in all. Source: EC2 User Guide, "Capacity Blocks for ML"
_SHORTEST_LIMIT = timedelta(minutes=1)  # Slurm counts the limits of jobs in minutes


def check(queues: Sequence[QueueSpec], context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about these queues."""
    for number, queue in enumerate(queues):
        yield from _check_queue(("queues", number), queue, context)
    yield from name_rules.check_unique([queue.name for queue in queues], ("queues",), "name", "name")
    total = sum(queue.nodes.max for queue in queues)
    if total > MAX_NODES:
        yield SpecFinding(("queues",), f"have {total} nodes in total", f"Slurm allows {MAX_NODES}")
    yield from _check_reservations_apart(queues)
    yield from _check_blocks_together(queues)


def check_type(loc: Loc, name: str, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield findings about the name of an instance type."""
    types = context.catalog.instance_types
    if name not in types:
        yield SpecFinding(loc, f"{name!r} is not in the catalog", type_hint(name, types))


def check_time_limits(queues: Sequence[QueueSpec], lifetime: LifetimeSpec) -> Iterator[SpecFinding]:
    """Yield time limits that exceed the cluster's lifetime."""
    for number, queue in enumerate(queues):
        if queue.time_limit and lifetime.ttl and queue.time_limit > lifetime.ttl:
            yield SpecFinding(
                ("queues", number, "time_limit"),
                f"{format_duration(queue.time_limit)} exceeds the cluster's lifetime",
                f"use lifetime.ttl {format_duration(lifetime.ttl)} or less",
            )


def _check_queue(loc: Loc, queue: QueueSpec, context: ValidationContext) -> Iterator[SpecFinding]:
    yield from name_rules.check_name((*loc, "name"), queue.name)
    yield from check_type((*loc, "instance_type"), queue.instance_type, context)
    yield from _check_machine(loc, queue, context)
    if queue.nodes.min > queue.nodes.max:
        yield SpecFinding(
            (*loc, "nodes", "min"), f"{queue.nodes.min} is more than max {queue.nodes.max}", "use max or less"
        )
    yield from _check_static(loc, queue, context)
    yield from _check_times(loc, queue)
    for number, pool in enumerate(queue.capacity):
        yield from _check_pool((*loc, "capacity", number), pool, context)
        yield from _check_price((*loc, "capacity", number, "max_price"), pool, queue.instance_type, context)
    yield from _check_overlaps((*loc, "capacity"), queue.capacity, context.base)
    yield from _check_slurm(loc, queue)


def _check_machine(loc: Loc, queue: QueueSpec, context: ValidationContext) -> Iterator[SpecFinding]:
    machine = context.catalog.instance_types.get(queue.instance_type)
    if machine is None:
        return
    if queue.efa in ("on", "with-ena") and not machine.efa_maximum:
        yield SpecFinding(
            (*loc, "efa"), f"{queue.efa!r}, but {machine.name} has no EFA", "use 'auto' or another instance_type"
        )
    if "nvme" in queue.model_fields_set and queue.nvme != "off" and not machine.nvme_count:
        yield SpecFinding((*loc, "nvme"), f"{machine.name} has no local disks", "remove it")
    for number, pool in enumerate(queue.capacity):
        if pool.market.usage_class not in machine.markets:
            sold = ", ".join(machine.markets)
            yield SpecFinding(
                (*loc, "capacity", number, "market"), f"{machine.name} is not sold as {pool.market!s}", f"use {sold}"
            )


def _check_static(loc: Loc, queue: QueueSpec, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield `nodes.min` that counted capacity cannot hold: in total, or, with EFA, in one zone."""
    if not all(pool.market.is_reserved and pool.count for pool in queue.capacity):
        return
    counts: Counter[str] = Counter()
    for pool in queue.capacity:
        counts[", ".join(pool.zones or ())] += pool.count or 0
    machine = context.catalog.instance_types.get(queue.instance_type)
    most = max(counts.values())
    if queue.nodes.min > counts.total():
        yield SpecFinding(
            (*loc, "nodes", "min"),
            f"{queue.nodes.min} is more than the {counts.total()} instances counted in its capacity",
            f"use {counts.total()} or less, or add another pool",
        )
    elif machine and machine.efa_maximum and queue.efa != "off" and queue.nodes.min > most:
        here = ", ".join(f"{count} in {zone}" for zone, count in counts.items())
        yield SpecFinding(
            (*loc, "nodes", "min"),
            f"{queue.nodes.min} is more than any one zone has ({here}), and EFA does not cross zones",
            f"use {most} or less, or a queue for each zone",
        )


def _check_times(loc: Loc, queue: QueueSpec) -> Iterator[SpecFinding]:
    if queue.suspend_after < _SHORTEST_SUSPEND:
        yield SpecFinding(
            (*loc, "suspend_after"), f"{format_duration(queue.suspend_after)} is too short", "use 1m or more"
        )
    if queue.time_limit is not None and queue.time_limit < _SHORTEST_LIMIT:
        yield SpecFinding((*loc, "time_limit"), f"{format_duration(queue.time_limit)} is too short", "use 1m or more")


def _check_pool(loc: Loc, pool: PoolSpec, context: ValidationContext) -> Iterator[SpecFinding]:
    zones = pool.zones or ()
    for number, zone in enumerate(zones):
        yield from name_rules.check_base_zone((*loc, "zones", number), zone, context)
        if zone in zones[:number]:
            yield SpecFinding((*loc, "zones", number), f"{zone!r} is listed twice", "keep one")
    if pool.max_price is not None and pool.market is not Market.SPOT:
        yield SpecFinding((*loc, "max_price"), f"applies to spot only; this pool is {pool.market!s}", "remove it")
    yield from (_check_reserved(loc, pool) if pool.market.is_reserved else _check_bought(loc, pool))


def _check_price(loc: Loc, pool: PoolSpec, instance_type: str, context: ValidationContext) -> Iterator[SpecFinding]:
    """Yield spot prices that EC2 rejects. The upper limit requires a known on-demand price."""
    price = pool.max_price
    if price is None or pool.market is not Market.SPOT:
        return
    if price < _LOWEST_PRICE:
        yield SpecFinding(loc, f"{price:g} is below EC2's minimum", f"use {_LOWEST_PRICE} or more, or remove it")
    known = context.catalog.instance_price(instance_type, context.region)
    on_demand = known.on_demand_usd_per_hour if known else None
    if on_demand is not None and price > on_demand * _MAX_PRICES:
        yield SpecFinding(
            loc,
            f"{price:g} is more than {_MAX_PRICES} times the on-demand price of {instance_type} ({on_demand:g}),"
            " EC2's maximum",
            "remove it to pay at most the on-demand price",
        )


def _check_reserved(loc: Loc, pool: PoolSpec) -> Iterator[SpecFinding]:
    if not pool.ids:
        yield SpecFinding(
            (*loc, "ids"), "is missing", f"set the id of the {pool.market!s}, such as [cr-0123456789abcdef0]"
        )
    for number, id in enumerate(pool.ids):
        if not _RESERVATION_ID.fullmatch(id):
            yield SpecFinding(
                (*loc, "ids", number), f"{id!r} is not a reservation id", "write it like cr-0123456789abcdef0"
            )
    if pool.zones is None or len(pool.zones) != 1:
        yield SpecFinding(
            (*loc, "zones"), f"a {pool.market!s} is in one zone", "set that zone, and use another pool for other ids"
        )
    if pool.placement_group is not None and pool.market is Market.CAPACITY_BLOCK:
        yield SpecFinding((*loc, "placement_group"), "does not apply to a capacity block", "remove it")
    if pool.ids and pool.count is not None and pool.count > (most := _most_counted(pool)):
        blocks = "a capacity block holds" if len(pool.ids) == 1 else f"{len(pool.ids)} capacity blocks hold"
        yield SpecFinding((*loc, "count"), f"{pool.count} is more than {blocks}", f"use {most} or less, or add blocks")


def _most_counted(pool: PoolSpec) -> int:
    """Return the largest count that these ids can hold. EC2 does not limit reservations: for them, the count itself."""
    count = pool.count or 0
    return min(count, len(pool.ids) * _BLOCK_INSTANCES) if pool.market is Market.CAPACITY_BLOCK else count


def _check_bought(loc: Loc, pool: PoolSpec) -> Iterator[SpecFinding]:
    for field in ("ids", "count", "placement_group"):
        if field in pool.model_fields_set:
            yield SpecFinding(
                (*loc, field), f"applies to reservations and capacity blocks; this pool is {pool.market!s}", "remove it"
            )


def _check_reservations_apart(queues: Sequence[QueueSpec]) -> Iterator[SpecFinding]:
    """Yield reservations used twice: two pools would compete for the same instances."""
    seen: dict[str, str] = {}
    for q, queue in enumerate(queues):
        for p, pool in enumerate(queue.capacity):
            for number, id in enumerate(pool.ids):
                if id in seen:
                    yield SpecFinding(
                        ("queues", q, "capacity", p, "ids", number),
                        f"{id!r} is already used by {seen[id]}",
                        "list it once",
                    )
                seen.setdefault(id, f"queues[{q}].capacity[{p}]")


def _check_blocks_together(queues: Sequence[QueueSpec]) -> Iterator[SpecFinding]:
    """Yield counts that exceed EC2's limit for an account. Other checks cover errors within one pool."""
    blocks = [pool for queue in queues for pool in queue.capacity if pool.market is Market.CAPACITY_BLOCK]
    if (total := sum(_most_counted(pool) for pool in blocks)) > BLOCKS_INSTANCES:
        yield SpecFinding(
            ("queues",),
            f"count {total} instances in capacity blocks in total",
            f"EC2 allows at most {BLOCKS_INSTANCES} in all blocks of an account",
        )


def _check_slurm(loc: Loc, queue: QueueSpec) -> Iterator[SpecFinding]:
    if queue.nvme != "off" and (problem := directory_problem(queue.nvme)):
        yield problem.at((*loc, "nvme"))


def _check_overlaps(loc: Loc, pools: Sequence[PoolSpec], base: BaseSpec | None) -> Iterator[SpecFinding]:
    """Yield pools that repeat an earlier one: the same market in the same zone."""
    everywhere = frozenset(base.network.zone_names) if base else None
    for number, pool in enumerate(pools):
        if pool.market.is_reserved:
            continue  # their ids distinguish them
        for earlier, other in enumerate(pools[:number]):
            if pool.market is other.market and (common := _common_zones(pool, other, everywhere)):
                yield SpecFinding(
                    (*loc, number),
                    f"{pool.market!s} in {common} is already in entry {earlier}",
                    "use other zones, or remove it",
                )
                break


def _common_zones(one: PoolSpec, other: PoolSpec, everywhere: frozenset[str] | None) -> str:
    """Return the zones that both pools cover, as text; empty if there are none."""
    if one.zones is None and other.zones is None:
        return "every zone"
    if everywhere is None and (one.zones is None or other.zones is None):
        return ", ".join(sorted(one.zones or other.zones or ()))
    shared = (frozenset(one.zones) if one.zones else everywhere or frozenset()) & (
        frozenset(other.zones) if other.zones else everywhere or frozenset()
    )
    return ", ".join(sorted(shared))
