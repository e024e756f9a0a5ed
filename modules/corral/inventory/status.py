"""What an environment is now: up or not, its machines, file systems, end, and what it costs at this moment."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from corral.forecast.money import HOURS_PER_MONTH, Sum, Usd, total
from corral.forecast.prices import PriceList
from corral.inventory.account import read_end, read_environment_things
from corral.inventory.things import NODES_TAG, OFFER_TAG, QUEUE_TAG, Kind, Thing
from corral.inventory.worth import sum_per_month, usd_per_hour
from corral.model.node_names import fold, name_at


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroup:
    """Instances of one queue, offer and state. `nodes`: what Slurm calls them, folded into one list."""

    queue: str
    offer: str
    type: str
    state: str
    count: int
    nodes: tuple[str, ...]
    usd_per_hour: Usd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """An environment as the account shows it. `head` is None where no machine is there to be one."""

    cluster: str
    base: str
    region: str
    base_is_up: bool
    cluster_is_up: bool
    head: Thing | None
    groups: tuple[InstanceGroup, ...]
    file_systems: tuple[Thing, ...]
    ends_at: datetime | None
    base_usd_per_hour: Sum
    cluster_usd_per_hour: Sum

    @property
    def usd_per_hour(self) -> Sum:
        """Base and cluster together."""
        return Sum.together([self.base_usd_per_hour, self.cluster_usd_per_hour])


def read_status(session: Any, cluster: str, base: str, prices: PriceList) -> Status:
    """The status of this cluster and its base."""
    things = read_environment_things(session, base)
    return find_status(things, cluster, base, session.region_name, read_end(session, cluster), prices)


def find_status(
    things: Iterable[Thing], cluster: str, base: str, region: str, ends_at: datetime | None, prices: PriceList
) -> Status:
    """The status that these things amount to. Pure."""
    found = tuple(things)
    own = tuple(thing for thing in found if thing.cluster == cluster)
    ground = tuple(thing for thing in found if thing.cluster is None and thing.base == base)
    machines = [thing for thing in own if thing.kind is Kind.INSTANCE]
    return Status(
        cluster=cluster,
        base=base,
        region=region,
        base_is_up=any(thing.kind is Kind.VPC for thing in ground),
        cluster_is_up=bool(own),
        head=next((one for one in machines if QUEUE_TAG not in one.tags), None),
        groups=group_instances([one for one in machines if QUEUE_TAG in one.tags], prices),
        file_systems=tuple(thing for thing in (*ground, *own) if thing.kind in (Kind.HOME, Kind.LUSTRE)),
        ends_at=ends_at,
        base_usd_per_hour=_cost(ground, prices),
        cluster_usd_per_hour=_cost(own, prices),
    )


def group_instances(instances: Iterable[Thing], prices: PriceList) -> tuple[InstanceGroup, ...]:
    """The instances by queue, offer and state, in that order."""
    groups: dict[tuple[str, str, str], list[Thing]] = {}
    for one in instances:
        key = (one.tags[QUEUE_TAG], one.tags.get(OFFER_TAG, ""), one.state or "")
        groups.setdefault(key, []).append(one)
    return tuple(_group(*key, groups[key], prices) for key in sorted(groups))


def _group(queue: str, offer: str, state: str, members: list[Thing], prices: PriceList) -> InstanceGroup:
    costs = [usd_per_hour(one, prices) for one in members]
    return InstanceGroup(
        queue=queue,
        offer=offer,
        type=", ".join(sorted({one.type or "?" for one in members})),
        state=state,
        count=len(members),
        nodes=tuple(filter(None, (fold(_nodes(members)),))),
        usd_per_hour=None if None in costs else total(cost for cost in costs if cost),
    )


def _nodes(members: Iterable[Thing]) -> Iterator[str]:
    """The nodes that these instances are: a launch's list has one for each of its instances, by their index."""
    for one in members:
        with contextlib.suppress(ValueError):  # somebody else's tag
            yield name_at(one.tags.get(NODES_TAG, ""), one.launch_index or 0)


def _cost(things: Iterable[Thing], prices: PriceList) -> Sum:
    """What they cost an hour, but for what is stored in buckets, which is not measured here: `plan` has its price."""
    measured = (thing for thing in things if thing.size_gib is not None or thing.kind not in (Kind.BUCKET, Kind.FILES))
    return sum_per_month(measured, prices).times(1 / HOURS_PER_MONTH)
