"""What a machine of a life costs an hour, by what its launch says of it, and what all else does. Pure.

A head writes the market and the instance type of a launch into its event. Where an older one did not, the plan's offer
of that name tells them, else the offer's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.forecast.bill import STATIC, CostForecast, Item
from corral.forecast.capacity import offer_usd_per_hour
from corral.forecast.money import Usd
from corral.forecast.prices import PriceList
from corral.model.cluster import ClusterPlan, OfferPlan
from corral.model.markets import Market
from corral.report.events import Happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    """A machine as EC2 sold it. `usd_per_hour`: None where no price is known; `market`: empty where it is not told."""

    queue: str
    instance_type: str
    market: str
    usd_per_hour: Usd | None
    source: str | None

    @property
    def named(self) -> str:
        """What it is, for people."""
        return f"{self.instance_type} {self.market}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The prices of an environment: of machines by `prices`, of all else by `cost`."""

    cluster: ClusterPlan
    cost: CostForecast
    prices: PriceList

    def sold(self, queue: str, launched: Happened) -> Sold:
        """What the machines of this launch cost. An offer's price limit caps the range of spot."""
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
        return Sold(queue=queue, instance_type=type, market=market or "", usd_per_hour=usd, source=source)

    def things(self) -> Iterator[Item]:
        """What costs money whether nodes run or not: the head, file systems, the network."""
        yield from (item for item in (*self.cost.cluster, *self.cost.base) if item.unit != STATIC)


def _market(told: object, offer: OfferPlan | None, rest: str) -> Market | None:
    """By the event, else by the plan, else by what follows the queue in the offer's name."""
    named = str(told or (offer.market if offer else ""))
    return next((one for one in Market if one == named or (not named and rest.startswith(f"{one}-"))), None)
