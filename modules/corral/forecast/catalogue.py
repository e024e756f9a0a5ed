"""The catalogue's price snapshot as a forecast's price list: amounts, and where each is from, in words."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog import prices
from corral.forecast.money import Usd
from corral.forecast.prices import InstancePrice, PriceList, Service, ServicePrice

HOME_REGION = "us-east-1"  # the one region whose service prices the snapshot has


@dataclass(frozen=True, slots=True)
class _Catalogue:
    region: str

    def instance(self, instance_type: str) -> InstancePrice | None:
        """The snapshot's prices of this type in the region."""
        found = prices.instance_price(instance_type, self.region)
        if found is None:
            return None
        low, high = found.spot_min_usd_per_hour, found.spot_max_usd_per_hour
        return InstancePrice(
            on_demand=found.on_demand_usd_per_hour,
            spot=None if low is None or high is None else Usd(low, high),
            source=f"{found.source}, {found.as_of}, {found.trust}; spot: a moment's cheapest and dearest zone",
        )

    def service(self, service: Service) -> ServicePrice | None:
        """The snapshot's price of this service in the region, else that of us-east-1, which the source then says."""
        here = prices.service_price(service.value, self.region)
        found = here or prices.service_price(service.value, HOME_REGION)
        if found is None:
            return None
        borrowed = "" if here else f"; price of {HOME_REGION}, that of {self.region} is not known"
        return ServicePrice(usd=found.usd, source=f"{found.source}, {found.as_of}, {found.trust}{borrowed}")


def catalogue_prices(region: str) -> PriceList:
    """The price list of this region."""
    return _Catalogue(region)
