"""What a resource costs a month, by the price list. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from corral.catalog.aws.lustre import lustre_choices
from corral.forecast.cost.cost_range import HOURS_PER_MONTH, ZERO, Sum, Usd, total
from corral.forecast.cost.price_source import PriceList, Service
from corral.inventory.resources import AwsResource, ResourceKind
from corral.model.enums import BalancerScheme

_HOURLY = {ResourceKind.NAT_GATEWAY: Service.NAT_GATEWAY_HOUR, ResourceKind.ADDRESS: Service.PUBLIC_IPV4_HOUR}
_MONTHLY = {
    ResourceKind.DNS_ZONE: Service.HOSTED_ZONE_MONTH,
    ResourceKind.SECRET: Service.SECRET_MONTH,
    ResourceKind.ALARM: Service.ALARM_MONTH,
    ResourceKind.KEY: Service.KMS_KEY_MONTH,
    ResourceKind.SIGNING_KEY: Service.KMS_KEY_MONTH,
}
_BY_SIZE = {
    ResourceKind.VOLUME: Service.GP3_GIB_MONTH,
    ResourceKind.HOME: Service.EFS_GIB_MONTH,
    ResourceKind.BUCKET: Service.S3_GIB_MONTH,
    ResourceKind.FILES: Service.S3_GIB_MONTH,
}


def usd_per_month(resource: AwsResource, prices: PriceList) -> Usd | None:
    """The monthly cost of the resource in its present state: zero if free, None if unknown."""
    if resource.kind is ResourceKind.INSTANCE:
        return _instance(resource, prices)
    if resource.kind is ResourceKind.ENDPOINT:
        return (
            _priced(Service.INTERFACE_ENDPOINT_HOUR, HOURS_PER_MONTH, prices) if resource.type == "Interface" else ZERO
        )
    if resource.kind is ResourceKind.LOAD_BALANCER:
        return _load_balancer(resource, prices)
    if service := _HOURLY.get(resource.kind):
        return _priced(service, HOURS_PER_MONTH, prices)
    if service := _MONTHLY.get(resource.kind):
        return _priced(service, 1, prices)
    by_size = _lustre(resource) if resource.kind is ResourceKind.LUSTRE else _BY_SIZE.get(resource.kind)
    if by_size is not None:
        return None if resource.size_gib is None else _priced(by_size, resource.size_gib, prices)
    return None if resource.kind is ResourceKind.OTHER else ZERO


def usd_per_hour(resource: AwsResource, prices: PriceList) -> Usd | None:
    """The hourly cost of the resource; None if unknown."""
    month = usd_per_month(resource, prices)
    return month.times(1 / HOURS_PER_MONTH) if month else None


def sum_per_month(resources: Iterable[AwsResource], prices: PriceList) -> Sum:
    """The monthly cost of all resources in their present state, and those without a known price."""
    return Sum.of((_named(resource), usd_per_month(resource, prices)) for resource in resources)


def _named(resource: AwsResource) -> str:
    if resource.kind is ResourceKind.INSTANCE:
        return f"{resource.type or 'instance'} {resource.market or ''}".strip()
    size = f" ({resource.size_gib:,.0f} GiB)" if resource.size_gib else ""
    return f"{resource.kind.value} {resource.name}{size}"


def _lustre(resource: AwsResource) -> str:
    """The price name of a Lustre file system, by deployment, disks and throughput."""
    names = {row.name: row.price_name for row in lustre_choices()}
    names |= {row.cached_name: row.cached_price_name for row in lustre_choices()}
    return names.get(resource.type or "", "lustre-unknown")


def _instance(resource: AwsResource, prices: PriceList) -> Usd | None:
    price = prices.instance(resource.type or "")
    if price is None or resource.state in ("stopped", "stopping"):
        return None if price is None else ZERO
    if resource.market == "spot":
        return price.spot.times(HOURS_PER_MONTH) if price.spot else None
    return Usd.exact(price.on_demand * HOURS_PER_MONTH) if price.on_demand is not None else None


def _load_balancer(resource: AwsResource, prices: PriceList) -> Usd | None:
    """Its hours, and those of its public address: an internet-facing one of corral's is in one zone."""
    own = _priced(Service.LOAD_BALANCER_HOUR, HOURS_PER_MONTH, prices)
    address = _priced(Service.PUBLIC_IPV4_HOUR, HOURS_PER_MONTH, prices)
    if resource.type == BalancerScheme.INTERNAL or own is None:
        return own
    return total([own, address]) if address else None


def _priced(service: str, count: float, prices: PriceList) -> Usd | None:
    price = prices.service(service)
    return Usd.exact(price.usd * count) if price else None
