"""The forecast cost of an environment: items, prices with sources, and sums."""

from __future__ import annotations

from dataclasses import dataclass

from corral.forecast.cost.cost_range import HOURS_PER_MONTH, Sum, Usd
from corral.model.enums import Market

BALANCER = "load balancer"
GATEWAY = "NAT gateway"  # the item of a base with its own gateway
STATIC = "static"  # the unit of static nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A resource with an hourly charge. `usd_per_hour`: of all of it; None if unknown."""

    what: str
    count: int
    unit: str
    usd_per_hour: Usd | None
    source: str | None

    @property
    def usd_per_month(self) -> Usd | None:
        """The monthly cost."""
        return self.usd_per_hour.times(HOURS_PER_MONTH) if self.usd_per_hour else None

    @property
    def named(self) -> str:
        """The name, with the amount if it has a unit."""
        return f"{self.what} ({self.count:,} {self.unit})" if self.unit else self.what


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCost:
    """The hourly cost of the nodes that a market can supply to a queue. `starts`: False if price limits prevent it."""

    queue: str
    instance_type: str
    market: Market
    nodes: int
    usd_per_node_hour: Usd | None
    source: str | None
    starts: bool = True

    @property
    def usd_per_hour(self) -> Usd | None:
        """The cost of all of them."""
        return self.usd_per_node_hour.times(self.nodes) if self.usd_per_node_hour else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsePrice:
    """A charge by use: `usd` per `unit`, None if unknown. `retained`: it continues after `down`."""

    what: str
    usd: float | None
    unit: str
    source: str | None
    retained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostForecast:
    """The cost of an environment. `retained`: what remains when the base is down, without the stored data.

    Per queue and hour: `full`, all nodes; `static`, its static nodes; `reserved`, its reservations and blocks, used or
    not.
    """

    base: tuple[Item, ...]
    cluster: tuple[Item, ...]
    queues: tuple[QueueCost, ...]
    by_use: tuple[UsePrice, ...]
    retained: tuple[Item, ...]
    full: tuple[Sum, ...]
    static: tuple[Sum, ...]
    reserved: tuple[Sum, ...] = ()

    @property
    def idle_base_usd_per_month(self) -> Sum:
        """A base without a cluster, per month."""
        return _sum(self.base).times(HOURS_PER_MONTH)

    @property
    def idle_cluster_usd_per_hour(self) -> Sum:
        """A cluster without jobs and without its base, per hour."""
        return Sum.together([_sum(self._fixed), *self.static])

    @property
    def maximum_usd_per_hour(self) -> Sum:
        """Base, cluster and all nodes, per hour: from the cheapest to the most expensive market of each queue."""
        return Sum.together([_sum(self.base), _sum(self._fixed), *self.full])

    @property
    def reserved_usd_per_hour(self) -> Sum:
        """All reservations and blocks, per hour; nodes that run there cost nothing more."""
        return Sum.together(self.reserved)

    @property
    def retained_usd_per_month(self) -> Sum:
        """What remains after `down --with-base`, per month, without the stored data."""
        return _sum(self.retained).times(HOURS_PER_MONTH)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The items without a known price, which the sums lack."""
        return self.maximum_usd_per_hour.missing

    @property
    def unknown_by_use(self) -> tuple[str, ...]:
        """The charges by use without a known price."""
        return tuple(use.what for use in self.by_use if use.usd is None)

    @property
    def _fixed(self) -> tuple[Item, ...]:
        return tuple(item for item in self.cluster if item.unit != STATIC)


def _sum(items: tuple[Item, ...]) -> Sum:
    return Sum.of((item.named, item.usd_per_hour) for item in items)
