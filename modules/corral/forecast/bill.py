"""The bill of an environment before it comes: what costs, how much, by which source, and the sums."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.money import HOURS_PER_MONTH, Sum, Usd
from corral.model.markets import Market

GATEWAY = "NAT gateway"  # the item of a base that has one of its own
STATIC = "static"  # the unit of nodes that are always there


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that costs money as long as it exists. `usd_per_hour` is for all of it; None: no price is known."""

    what: str
    count: int
    unit: str
    usd_per_hour: Usd | None
    source: str | None

    @property
    def usd_per_month(self) -> Usd | None:
        """What all of it costs in a month."""
        return self.usd_per_hour.times(HOURS_PER_MONTH) if self.usd_per_hour else None

    @property
    def named(self) -> str:
        """What it is, and how much of it where that is more than a number of pieces."""
        return f"{self.what} ({self.count:,} {self.unit})" if self.unit else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCost:
    """The nodes of a queue that one market can give, for an hour. `starts`: false where its limits let none start."""

    queue: str
    instance_type: str
    market: Market
    nodes: int
    usd_per_node_hour: Usd | None
    source: str | None
    starts: bool = True

    @property
    def usd_per_hour(self) -> Usd | None:
        """What all of them cost together."""
        return self.usd_per_node_hour.times(self.nodes) if self.usd_per_node_hour else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsePrice:
    """Something that is paid for by use: `usd` for each `unit`. `kept`: it stays, and costs, after `down`.

    None: no price is known.
    """

    what: str
    usd: float | None
    unit: str
    source: str | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """The whole bill, before it comes. `kept` is what a base that is down still costs, without the data stored.

    `full` has for each queue what all its nodes cost an hour, `static` what those cost that are always there,
    `reserved` what each of its reservations and blocks costs, used or not.
    """

    base: tuple[Item, ...]
    cluster: tuple[Item, ...]
    queues: tuple[QueueCost, ...]
    by_use: tuple[UsePrice, ...]
    kept: tuple[Item, ...]
    full: tuple[Sum, ...]
    static: tuple[Sum, ...]
    reserved: tuple[Sum, ...] = ()

    @property
    def idle_base_usd_per_month(self) -> Sum:
        """A base without a cluster, for a month."""
        return _sum(self.base).times(HOURS_PER_MONTH)

    @property
    def idle_cluster_usd_per_hour(self) -> Sum:
        """A cluster without a job, for an hour, without its base."""
        return Sum.together([_sum(self._fixed), *self.static])

    @property
    def maximum_usd_per_hour(self) -> Sum:
        """Base, cluster and every node, for an hour: from the cheapest market of each queue to the dearest."""
        return Sum.together([_sum(self.base), _sum(self._fixed), *self.full])

    @property
    def reserved_usd_per_hour(self) -> Sum:
        """All reservations and blocks for an hour, nodes or not; nodes that run there cost nothing beside it."""
        return Sum.together(self.reserved)

    @property
    def kept_usd_per_month(self) -> Sum:
        """What stays after `down --with-base`, for a month, without the data stored."""
        return _sum(self.kept).times(HOURS_PER_MONTH)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What has no price in the list, so that the sums are too low."""
        return self.maximum_usd_per_hour.missing

    @property
    def unknown_by_use(self) -> tuple[str, ...]:
        """What is paid for by use, is in no sum, and has no price in the list."""
        return tuple(use.what for use in self.by_use if use.usd is None)

    @property
    def _fixed(self) -> tuple[Item, ...]:
        return tuple(item for item in self.cluster if item.unit != STATIC)


def _sum(items: tuple[Item, ...]) -> Sum:
    return Sum.of((item.named, item.usd_per_hour) for item in items)
