"""Rules about queues: their names, machines, counts, capacity and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from corral.catalog.instances import instance_types
from corral.catalog.names import suggestion
from corral.model.markets import Market
from corral.spec import rules_names
from corral.spec.base import BaseSpec
from corral.spec.cluster import LifetimeSpec, PoolSpec, QueueSpec
from corral.spec.durations import format_duration
from corral.spec.errors import Finding, Loc

_MOST_NODES = 65533  # Slurm's own limit on the nodes of one cluster (TreeWidth, slurm.conf)
_SHORTEST_SUSPEND = timedelta(seconds=60)  # slurmctld looks for idle nodes every minute
_SHORTEST_LIMIT = timedelta(minutes=1)  # Slurm counts the limits of jobs in minutes


def check(queues: Sequence[QueueSpec], region: str, base: BaseSpec | None) -> Iterator[Finding]:
    """What is wrong with these queues."""
    for number, queue in enumerate(queues):
        yield from _check_queue(("queues", number), queue, region, base)
    yield from rules_names.check_unique([queue.name for queue in queues], ("queues",), "name", "name")
    total = sum(queue.nodes.max for queue in queues)
    if total > _MOST_NODES:
        yield Finding(("queues",), f"have {total} nodes together - Slurm takes {_MOST_NODES}")


def check_type(loc: Loc, name: str) -> Iterator[Finding]:
    """What is wrong with the name of an instance type."""
    if name not in instance_types():
        yield Finding(loc, f"{name!r} is not in the catalogue - {suggestion(name, instance_types())}")


def check_time_limits(queues: Sequence[QueueSpec], lifetime: LifetimeSpec) -> Iterator[Finding]:
    """The limits on jobs that no job could use up before the cluster ends."""
    for number, queue in enumerate(queues):
        if queue.time_limit and lifetime.ttl and queue.time_limit > lifetime.ttl:
            yield Finding(
                ("queues", number, "time_limit"),
                f"{format_duration(queue.time_limit)} is longer than the cluster lives"
                f" - use lifetime.ttl {format_duration(lifetime.ttl)} or less",
            )


def _check_queue(loc: Loc, queue: QueueSpec, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    yield from rules_names.check_name((*loc, "name"), queue.name)
    yield from check_type((*loc, "instance_type"), queue.instance_type)
    yield from _check_machine(loc, queue)
    if queue.nodes.min > queue.nodes.max:
        yield Finding((*loc, "nodes", "min"), f"{queue.nodes.min} is more than max {queue.nodes.max} - use max or less")
    yield from _check_times(loc, queue)
    for number, pool in enumerate(queue.capacity):
        yield from _check_pool((*loc, "capacity", number), pool, region, base)
    yield from _check_overlaps((*loc, "capacity"), queue.capacity, base)


def _check_machine(loc: Loc, queue: QueueSpec) -> Iterator[Finding]:
    machine = instance_types().get(queue.instance_type)
    if machine is None:
        return
    if queue.efa == "on" and not machine.efa_maximum:
        yield Finding((*loc, "efa"), f"'on', but {machine.name} has no EFA - use 'auto' or another instance_type")
    for number, pool in enumerate(queue.capacity):
        if pool.market not in machine.markets:
            sold = ", ".join(machine.markets)
            yield Finding(
                (*loc, "capacity", number, "market"), f"{machine.name} is not sold as {pool.market!s} - it is as {sold}"
            )


def _check_times(loc: Loc, queue: QueueSpec) -> Iterator[Finding]:
    if queue.suspend_after < _SHORTEST_SUSPEND:
        yield Finding((*loc, "suspend_after"), f"{format_duration(queue.suspend_after)} is too short - use 1m or more")
    if queue.time_limit is not None and queue.time_limit < _SHORTEST_LIMIT:
        yield Finding((*loc, "time_limit"), f"{format_duration(queue.time_limit)} is too short - use 1m or more")


def _check_pool(loc: Loc, pool: PoolSpec, region: str, base: BaseSpec | None) -> Iterator[Finding]:
    zones = pool.zones or ()
    for number, zone in enumerate(zones):
        yield from rules_names.check_base_zone((*loc, "zones", number), zone, region, base)
        if zone in zones[:number]:
            yield Finding((*loc, "zones", number), f"{zone!r} is listed twice - keep one")
    if pool.max_price is not None and pool.market is not Market.SPOT:
        yield Finding((*loc, "max_price"), f"is for spot only, this pool is {pool.market!s} - leave it out")


def _check_overlaps(loc: Loc, pools: Sequence[PoolSpec], base: BaseSpec | None) -> Iterator[Finding]:
    """Pools that would try again what an earlier one has already tried: the same market in the same zone."""
    everywhere = frozenset(base.network.zones) if base else None
    for number, pool in enumerate(pools):
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
