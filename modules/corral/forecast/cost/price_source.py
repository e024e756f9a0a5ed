"""The interface of a price list for forecasts. The catalog, live prices and tests implement it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from corral.forecast.cost.cost_range import Usd
from corral.model.enums import Market


class Service(StrEnum):
    """Charges other than instances; the values are the catalog's keys."""

    NAT_GATEWAY_HOUR = "nat-gateway-hour"
    NAT_GATEWAY_GB = "nat-gateway-gb"
    PUBLIC_IPV4_HOUR = "public-ipv4-hour"
    LOAD_BALANCER_HOUR = "load-balancer-hour"
    LOAD_BALANCER_UNIT_HOUR = "load-balancer-unit-hour"
    INTERFACE_ENDPOINT_HOUR = "interface-endpoint-hour"
    GP3_GIB_MONTH = "gp3-gib-month"
    EFS_GIB_MONTH = "efs-gib-month"
    S3_GIB_MONTH = "s3-gib-month"
    KMS_KEY_MONTH = "kms-key-month"
    HOSTED_ZONE_MONTH = "hosted-zone-month"
    SECRET_MONTH = "secret-month"
    ALARM_MONTH = "alarm-month"
    CROSS_ZONE_GB = "cross-zone-gb"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRates:
    """Prices of an instance in USD per hour; None if the list has none. `source`: the text of the footnote.

    `capacity_block`: the price of an hour in a block, which is bought as a whole; `capacity_block_source`: its source.
    """

    on_demand: float | None
    spot: Usd | None
    source: str | None
    capacity_block: float | None = None
    capacity_block_source: str | None = None

    def known(self, market: Market) -> Usd | None:
        """The hourly price in this market; in a reservation the on-demand price. None if unknown."""
        exact = self.capacity_block if market is Market.CAPACITY_BLOCK else self.on_demand
        if market is Market.SPOT:
            return self.spot
        return None if exact is None else Usd.exact(exact)

    def source_of(self, market: Market) -> str | None:
        """The source of the price in this market; None without a price."""
        if self.known(market) is None:
            return None
        return self.capacity_block_source if market is Market.CAPACITY_BLOCK else self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRate:
    """USD for one unit (an hour, a GiB-month, ...)."""

    usd: float
    source: str


class PriceList(Protocol):
    """Prices of one region."""

    def instance(self, instance_type: str) -> InstanceRates | None:
        """The price of this type; None if the list lacks it."""

    def service(self, service: str) -> ServiceRate | None:
        """The price of a unit of this Service, or of another name of the list; None if the list lacks it."""
