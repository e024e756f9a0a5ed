"""The hourly price of each instance, from its launch event, and of everything else. Pure.

A launch event has the market and the instance type. For events of older heads they come from the plan's offer of that
name, otherwise from the offer's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from corral.forecast.cost.cost_model import STATIC, CostForecast, Item
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.pool_capacity import offer_usd_per_hour
from corral.forecast.cost.price_source import PriceList
from corral.model.cluster import ClusterPlan, NodePlan, OfferPlan
from corral.model.enums import Market
from corral.report.timeline.event_lines import ClusterEvent

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRate:
    """The price of a machine. `usd_per_hour`: None if unknown; `market`: empty if unknown."""

    queue: str
    instance_type: str
    market: str
    usd_per_hour: Usd | None
    source: str | None

    @property
    def named(self) -> str:
        """Type and market for display."""
        return f"{self.instance_type} {self.market}".strip()

    def usd(self, seconds: float) -> Usd | None:
        """The cost of so many seconds; None if the price is unknown."""
        return self.usd_per_hour.times(seconds / _SECONDS_PER_HOUR) if self.usd_per_hour else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The prices of an environment: machines in `prices`, everything else in `cost`."""

    cluster: ClusterPlan
    cost: CostForecast
    prices: PriceList

    def rate(self, queue: str, launched: ClusterEvent) -> MachineRate:
        """The price of the machines of this launch. An offer's price limit caps the spot range."""
        name = str(launched.facts.get("offer") or "")
        planned = next((one for one in self.cluster.queues if one.name == queue), None)
        offer = next((one for one in planned.offers if one.key == name), None) if planned else None
        type = str(launched.facts.get("instance_type") or (planned.instance_type if planned else "?"))
        market = _market(launched.facts.get("market"), offer, name.removeprefix(f"{queue}-"))
        price = self.prices.instance(type)
        usd = price.known(market) if price and market else None
        if planned and offer and offer.market is market and planned.instance_type == type:
            usd = offer_usd_per_hour(offer, type, self.prices) or usd
        source = price.source_of(market) if price and market else None
        return MachineRate(queue=queue, instance_type=type, market=market or "", usd_per_hour=usd, source=source)

    def nodes(self) -> Mapping[str, NodePlan]:
        """The nodes of each queue."""
        return {queue.name: queue.node for queue in self.cluster.queues}

    def other_items(self) -> Iterator[Item]:
        """The charges that do not depend on nodes: head, file systems, network."""
        yield from (item for item in (*self.cost.cluster, *self.cost.base) if item.unit != STATIC)


def _market(market: object, offer: OfferPlan | None, rest: str) -> Market | None:
    """The market of the event, otherwise of the plan, otherwise from the offer's name without the queue."""
    named = str(market or (offer.market if offer else ""))
    return next((one for one in Market if one == named or (not named and rest.startswith(f"{one}-"))), None)
