"""What a forecast asks of a price list. The catalogue's list and a test's literal one both look like this."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from corral.forecast.money import Usd
from corral.model.markets import Market


class Service(StrEnum):
    """What is paid for beside instances; the values are the catalogue's keys."""

    NAT_GATEWAY_HOUR = "nat-gateway-hour"
    NAT_GATEWAY_GB = "nat-gateway-gb"
    PUBLIC_IPV4_HOUR = "public-ipv4-hour"
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
class InstancePrice:
    """USD an hour for one instance; None where the list has no such price. `source` is what a footnote says.

    `capacity_block`: what an hour in a block costs, which is paid for as a whole when it is bought; it is from another
    source than the others, `capacity_block_source`.
    """

    on_demand: float | None
    spot: Usd | None
    source: str | None
    capacity_block: float | None = None
    capacity_block_source: str | None = None

    def known(self, market: Market) -> Usd | None:
        """What an hour costs in this market; in a reservation what on-demand does. None where that is not known."""
        exact = self.capacity_block if market is Market.CAPACITY_BLOCK else self.on_demand
        if market is Market.SPOT:
            return self.spot
        return None if exact is None else Usd.exact(exact)

    def source_of(self, market: Market) -> str | None:
        """Where the price in this market is from; None where there is none."""
        if self.known(market) is None:
            return None
        return self.capacity_block_source if market is Market.CAPACITY_BLOCK else self.source


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePrice:
    """USD for one unit (an hour, a GiB-month, ...)."""

    usd: float
    source: str


class PriceList(Protocol):
    """Prices of one region."""

    def instance(self, instance_type: str) -> InstancePrice | None:
        """The price of this type, None where the list does not have it."""

    def service(self, service: str) -> ServicePrice | None:
        """The price of one unit of this Service, or of another name of the list; None where it does not have it."""
