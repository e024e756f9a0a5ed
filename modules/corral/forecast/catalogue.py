"""The catalogue's price snapshot as a forecast's price list: amounts, and where each is from, in words."""

from __future__ import annotations

from dataclasses import dataclass

from corral.catalog import prices
from corral.catalog.prices import CapacityBlockPrice
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
        if found is None:
            return _of_blocks(block) if block else None
        low, high = found.spot_min_usd_per_hour, found.spot_max_usd_per_hour
        return InstancePrice(
            on_demand=found.on_demand_usd_per_hour,
            spot=None if low is None or high is None else Usd(low, high),
            source=f"{found.source}, {found.as_of}, {found.trust}; spot: a moment's cheapest and dearest zone",
            capacity_block=block.usd_per_hour if block else None,
        )

    def service(self, service: str) -> ServicePrice | None:
        """The snapshot's price of this service in the region, else that of us-east-1, which the source then says."""
        here = prices.service_price(service, self.region)
        found = here or prices.service_price(service, HOME_REGION)
        if found is None:
            return None
        borrowed = "" if here else f"; price of {HOME_REGION}, that of {self.region} is not known"
        return ServicePrice(usd=found.usd, source=f"{found.source}, {found.as_of}, {found.trust}{borrowed}")


def _of_blocks(block: CapacityBlockPrice) -> InstancePrice:
    """The price of a type that is known in capacity blocks alone."""
    source = f"{block.source}, {block.as_of}, {block.trust}"
    return InstancePrice(on_demand=None, spot=None, source=source, capacity_block=block.usd_per_hour)


def catalogue_prices(region: str, catalogue: Catalogue | None = None) -> PriceList:
    """The price list of this region, by the project's catalogue, or the shipped one."""
    return _Catalogue(region, catalogue or shipped_catalogue())
