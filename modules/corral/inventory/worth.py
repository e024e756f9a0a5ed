"""What a thing costs a month as long as it exists, by the price list. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from corral.catalog.lustre import lustre_choices
from corral.forecast.money import HOURS_PER_MONTH, ZERO, Sum, Usd
from corral.forecast.prices import PriceList, Service
from corral.inventory.things import Kind, Thing

_HOURLY = {Kind.NAT_GATEWAY: Service.NAT_GATEWAY_HOUR, Kind.ADDRESS: Service.PUBLIC_IPV4_HOUR}
_MONTHLY = {
    Kind.DNS_ZONE: Service.HOSTED_ZONE_MONTH,
    Kind.SECRET: Service.SECRET_MONTH,
    Kind.ALARM: Service.ALARM_MONTH,
    Kind.KEY: Service.KMS_KEY_MONTH,
}
_BY_SIZE = {
    Kind.VOLUME: Service.GP3_GIB_MONTH,
    Kind.HOME: Service.EFS_GIB_MONTH,
    Kind.BUCKET: Service.S3_GIB_MONTH,
    Kind.FILES: Service.S3_GIB_MONTH,
}


def usd_per_month(thing: Thing, prices: PriceList) -> Usd | None:
    """What the thing costs for a month as it is now: zero for what is free, None where that is not known."""
    if thing.kind is Kind.INSTANCE:
        return _instance(thing, prices)
    if thing.kind is Kind.ENDPOINT:
        return _priced(Service.INTERFACE_ENDPOINT_HOUR, HOURS_PER_MONTH, prices) if thing.type == "Interface" else ZERO
    if service := _HOURLY.get(thing.kind):
        return _priced(service, HOURS_PER_MONTH, prices)
    if service := _MONTHLY.get(thing.kind):
        return _priced(service, 1, prices)
    by_size = _lustre(thing) if thing.kind is Kind.LUSTRE else _BY_SIZE.get(thing.kind)
    if by_size is not None:
        return None if thing.size_gib is None else _priced(by_size, thing.size_gib, prices)
    return None if thing.kind is Kind.OTHER else ZERO


def usd_per_hour(thing: Thing, prices: PriceList) -> Usd | None:
    """The same for an hour."""
    month = usd_per_month(thing, prices)
    return month.times(1 / HOURS_PER_MONTH) if month else None


def sum_per_month(things: Iterable[Thing], prices: PriceList) -> Sum:
    """What all of them cost for a month as they are now, and which of them have no known price."""
    return Sum.of((_named(thing), usd_per_month(thing, prices)) for thing in things)


def _named(thing: Thing) -> str:
    if thing.kind is Kind.INSTANCE:
        return f"{thing.type or 'instance'} {thing.market or ''}".strip()
    size = f" ({thing.size_gib:,.0f} GiB)" if thing.size_gib else ""
    return f"{thing.kind.value} {thing.name}{size}"


def _lustre(thing: Thing) -> str:
    """The price's name: what a Lustre file system costs depends on its deployment, disks and throughput."""
    names = {row.name: row.price_name for row in lustre_choices()}
    names |= {row.cached_name: row.cached_price_name for row in lustre_choices()}
    return names.get(thing.type or "", "lustre-unknown")


def _instance(thing: Thing, prices: PriceList) -> Usd | None:
    price = prices.instance(thing.type or "")
    if price is None or thing.state in ("stopped", "stopping"):
        return None if price is None else ZERO
    if thing.market == "spot":
        return price.spot.times(HOURS_PER_MONTH) if price.spot else None
    return Usd.exact(price.on_demand * HOURS_PER_MONTH) if price.on_demand is not None else None


def _priced(service: str, count: float, prices: PriceList) -> Usd | None:
    price = prices.service(service)
    return Usd.exact(price.usd * count) if price else None
