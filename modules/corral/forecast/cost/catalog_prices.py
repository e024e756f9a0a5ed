"""The catalog's price snapshot as a forecast's price list, each price with its source."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog.aws import prices
from corral.catalog.project_catalog import Catalog, shipped_catalog
from corral.forecast.cost.cost_range import Usd
from corral.forecast.cost.price_source import InstanceRates, PriceList, ServiceRate

HOME_REGION = "us-east-1"  # the snapshot has service prices of this region only


@dataclass(frozen=True, slots=True)
class _Catalog:
    region: str
    own: Catalog

    def instance(self, instance_type: str) -> InstanceRates | None:
        """The prices of this type in the region: the project's own row if it has one, or the snapshot's."""
        found = self.own.instance_price(instance_type, self.region)
        block = self.own.capacity_block_price(instance_type, self.region)
        if found is None and block is None:
            return None
        low, high = (found.spot_min_usd_per_hour, found.spot_max_usd_per_hour) if found else (None, None)
        return InstanceRates(
            on_demand=found.on_demand_usd_per_hour if found else None,
            spot=None if low is None or high is None else Usd(low, high),
            source=f"{_origin(found)}; spot: the cheapest and the most expensive zone at one time" if found else None,
            capacity_block=block.usd_per_hour if block else None,
            capacity_block_source=_origin(block) if block else None,
        )

    def service(self, service: str) -> ServiceRate | None:
        """The snapshot's price of this service in the region, or that of us-east-1, which the source then names."""
        here = prices.service_price(service, self.region)
        found = here or prices.service_price(service, HOME_REGION)
        if found is None:
            return None
        borrowed = "" if here else f"; price of {HOME_REGION}, unknown in {self.region}"
        return ServiceRate(usd=found.usd, source=f"{_origin(found)}{borrowed}")


def _origin(price: prices.InstancePrice | prices.CapacityBlockPrice | prices.ServicePrice) -> str:
    """Source, date and reliability of the price."""
    return f"{price.source}, {price.as_of}, {price.trust}"


def catalog_prices(region: str, catalog: Catalog | None = None) -> PriceList:
    """The price list of this region from the project's catalog, or the shipped one."""
    return _Catalog(region, catalog or shipped_catalog())
