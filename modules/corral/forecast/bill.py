"""The bill of an environment before it comes: what costs, how much, by which source, and the sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corral.forecast.money import HOURS_PER_MONTH, ZERO, Usd, span, total
from corral.model.markets import Market


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something that costs money as long as it exists. `usd_per_hour` is for all of it; None: no price is known."""

    what: str
    count: int
    unit: str
    usd_per_hour: Usd | None
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCost:
    """All nodes of a queue in one market, for an hour."""

    queue: str
    instance_type: str
    market: Market
    nodes: int
    usd_per_node_hour: Usd | None
    source: str | None

    @property
    def usd_per_hour(self) -> Usd | None:
        """What all of them cost together."""
        return self.usd_per_node_hour.times(self.nodes) if self.usd_per_node_hour else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsePrice:
    """Something that is paid for by use: `usd` for each `unit`. `kept`: it stays, and costs, after `down`."""

    what: str
    usd: float | None
    unit: str
    source: str | None
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """The whole bill, before it comes. `kept` is what a base that is down still costs, without the data stored."""

    base: tuple[Item, ...]
    cluster: tuple[Item, ...]
    queues: tuple[QueueCost, ...]
    by_use: tuple[UsePrice, ...]
    kept: tuple[Item, ...]

    @property
    def idle_base_usd_per_month(self) -> Usd:
        """A base without a cluster, for a month."""
        return _sum(self.base).times(HOURS_PER_MONTH)

    @property
    def idle_cluster_usd_per_hour(self) -> Usd:
        """A cluster without a job, for an hour, without its base."""
        return _sum(self.cluster)

    @property
    def maximum_usd_per_hour(self) -> Usd:
        """Base, cluster and every node, for an hour: from the cheapest market of each queue to the dearest."""
        by_queue = [self._whole_queue(name) for name in dict.fromkeys(cost.queue for cost in self.queues)]
        fixed = [item for item in self.cluster if not item.unit.startswith("static")]
        return total([_sum(self.base), _sum(fixed), *by_queue])

    @property
    def kept_usd_per_month(self) -> Usd:
        """What stays after `down --with-base`, for a month, without the data stored."""
        return _sum(self.kept).times(HOURS_PER_MONTH)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What has no price in the list, so that the sums are too low."""
        priced: list[tuple[str, Usd | None]] = [(item.what, item.usd_per_hour) for item in (*self.base, *self.cluster)]
        priced += [(f"{cost.instance_type} {cost.market}", cost.usd_per_node_hour) for cost in self.queues]
        return tuple(dict.fromkeys(what for what, usd in priced if usd is None))

    def _whole_queue(self, name: str) -> Usd:
        costs = [cost.usd_per_hour for cost in self.queues if cost.queue == name]
        return span(usd for usd in costs if usd is not None) or ZERO


def _sum(items: Iterable[Item]) -> Usd:
    return total(item.usd_per_hour for item in items if item.usd_per_hour is not None)
