"""The catalogue's price snapshot as a forecast's price list: amounts, and where each is from, in words."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog import prices
from corral.catalog.project import Catalogue, shipped_catalogue
from corral.forecast.money import Usd
from corral.forecast.prices import InstancePrice, PriceList, ServicePrice

HOME_REGION = "us-east-1"  # the one region whose service prices the snapshot has


@dataclass(frozen=True, slots=True)
class _Catalogue:
    region: str
    own: Catalogue

    def instance(self, instance_type: str) -> InstancePrice | None:
        """The snapshot's prices of this type in the region."""
        found = self.own.instance_price(instance_type, self.region)
        block = self.own.capacity_block_price(instance_type, self.region)
        if found is None and block is None:
            return None
        low, high = (found.spot_min_usd_per_hour, found.spot_max_usd_per_hour) if found else (None, None)
        return InstancePrice(
            on_demand=found.on_demand_usd_per_hour if found else None,
            spot=None if low is None or high is None else Usd(low, high),
            source=f"{_origin(found)}; spot: a moment's cheapest and dearest zone" if found else None,
            capacity_block=block.usd_per_hour if block else None,
            capacity_block_source=_origin(block) if block else None,
        )

    def service(self, service: str) -> ServicePrice | None:
        """The snapshot's price of this service in the region, else that of us-east-1, which the source then says."""
        here = prices.service_price(service, self.region)
        found = here or prices.service_price(service, HOME_REGION)
        if found is None:
            return None
        borrowed = "" if here else f"; price of {HOME_REGION}, that of {self.region} is not known"
        return ServicePrice(usd=found.usd, source=f"{_origin(found)}{borrowed}")


def _origin(price: prices.InstancePrice | prices.CapacityBlockPrice | prices.ServicePrice) -> str:
    """Where this price is from, of when, and how far to trust it."""
    return f"{price.source}, {price.as_of}, {price.trust}"


def catalogue_prices(region: str, catalogue: Catalogue | None = None) -> PriceList:
    """The price list of this region, by the project's catalogue, or the shipped one."""
    return _Catalogue(region, catalogue or shipped_catalogue())
