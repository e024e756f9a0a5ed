"""Current AWS prices: the price list, and the last month's spot prices.

Prices that AWS does not publish (capacity blocks, services with unknown names) come from the fallback list and are
named in `missing`. Prices in the project's catalog.toml take precedence.
Source: AWS Price List API reference, GetProducts; EC2 API reference, DescribeSpotPriceHistory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from corral.catalog.aws.price_names import EC2, price_list_products
from corral.forecast.cost.cost_range import Usd, span
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.price_source import InstanceRates, PriceList, Service, ServiceRate
from corral.forecast.warnings import PlanWarning, plan_warnings
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.preflight.aws_query_cache import AwsQueryCache

PRICING_REGION = "us-east-1"  # one of three regions with an endpoint; each has the prices of all regions
SPOT_DAYS = timedelta(days=30)
_LINUX = "Linux/UNIX"
_SHARED_LINUX = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
_OF_A_RUN = (Service.GP3_GIB_MONTH, Service.S3_GIB_MONTH, Service.EFS_GIB_MONTH, Service.CROSS_ZONE_GB)
_AT_ONCE = 8  # concurrent requests; AWS throttles more
_ON_DEMAND = "OnDemand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A price of the price list: USD for one unit, and the date of publication."""

    usd: float
    published: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrices:
    """A price list of one region. `missing`: the prices that AWS did not return, taken from `fallback`."""

    instances: Mapping[str, InstanceRates]
    services: Mapping[str, ServiceRate]
    fallback: PriceList
    missing: tuple[str, ...]

    def instance(self, instance_type: str) -> InstanceRates | None:
        """The current price of this type, or that of the fallback list."""
        return self.instances.get(instance_type) or self.fallback.instance(instance_type)

    def service(self, service: str) -> ServiceRate | None:
        """The current price of this service, or that of the fallback list."""
        return self.services.get(service) or self.fallback.service(service)

    @property
    def warnings(self) -> tuple[PlanWarning, ...]:
        """A warning if some prices are not current."""
        if not self.missing:
            return ()
        return (
            PlanWarning(
                about="prices", message=f"from the catalog, since AWS did not return them: {', '.join(self.missing)}"
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceQuery:
    """What to look up. `zones`: ids of the zones whose spot prices count; empty for the whole region.

    `own`: the types whose price the project's catalog states.
    """

    region: str
    zones: tuple[str, ...]
    instances: Collection[str]
    services: Collection[str]
    own: Collection[str]
    now: datetime


class RecordingPrices:
    """A price list that records the services that a forecast looks up, and forwards to another list."""

    def __init__(self, fallback: PriceList) -> None:
        self._behind = fallback
        self.services: set[str] = set()

    def instance(self, instance_type: str) -> InstanceRates | None:
        """The other list's price of this type."""
        return self._behind.instance(instance_type)

    def service(self, service: str) -> ServiceRate | None:
        """The other list's price of this service."""
        self.services.add(str(service))
        return self._behind.service(service)


def price_query(
    base: BasePlan,
    cluster: ClusterPlan,
    behind: PriceList,
    *,
    region: str,
    types: Iterable[str],
    own: Collection[str],
    now: datetime,
) -> PriceQuery:
    """The prices that a plan's cost, its warnings and a run use, and these types; for its own region, by zone."""
    recording = RecordingPrices(behind)
    forecast_cost(base, cluster, recording)
    plan_warnings(base, cluster, recording)
    return PriceQuery(
        region=region,
        zones=tuple(zone.zone_id for zone in base.zones) if region == base.region else (),
        instances={*types, cluster.head.instance_type, *((cluster.login.instance_type,) if cluster.login else ())},
        services=recording.services | {str(one) for one in _OF_A_RUN},
        own=own,
        now=now,
    )


def live_prices(aws: AwsQueryCache, query: PriceQuery, behind: PriceList) -> LivePrices:
    """The current prices, fetched by several requests at once. Raises botocore's errors."""
    types = sorted(set(query.instances) - set(query.own))
    names = sorted(name for name in query.services if name in price_list_products())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        spot = pool.map(
            lambda name: _spot(aws, query, name), types
        )  # a timeout of EC2 runs in parallel to one of the price list
        on_demand = pool.map(lambda name: _on_demand(aws, query, name), types)
        services = pool.map(lambda name: _service(aws, query, name), names)
        found = dict(zip(types, zip(on_demand, spot, strict=True), strict=True))
        priced = {name: one for name, one in zip(names, services, strict=True) if one}
    return LivePrices(
        instances={name: _instance(*found[name], behind.instance(name), query) for name in types},
        services={
            name: ServiceRate(usd=one.usd, source=f"AWS Price List API, {one.published}")
            for name, one in priced.items()
        },
        fallback=behind,
        missing=tuple(_missing(found, set(query.services) - set(priced))),
    )


def spot_range(history: Sequence[Mapping[str, Any]], zones: Callable[[Mapping[str, Any]], bool]) -> Usd | None:
    """The lowest and highest price of a history in these zones; None if there is none."""
    return span(Usd.exact(float(row["SpotPrice"])) for row in history if zones(row))


def listed(products: Iterable[str], *, usage: str, unit: str) -> Listed | None:
    """The on-demand price of these products for this usage type and unit; None unless there is exactly one.

    Usage types begin with a region's prefix. Of a tiered price, the first tier.
    """
    found = {one for text in products for one in _prices(json.loads(text), usage, unit)}
    return found.pop() if len(found) == 1 else None


def _on_demand(aws: AwsQueryCache, query: PriceQuery, name: str) -> Listed | None:
    fields = {"instanceType": name, "regionCode": query.region, **_SHARED_LINUX}
    return listed(_products(aws, EC2, fields), usage=f"BoxUsage:{name}", unit="Hrs")


def _service(aws: AwsQueryCache, query: PriceQuery, name: str) -> Listed | None:
    product = price_list_products()[name]
    fields = {"regionCode": query.region, "productFamily": product.family, **product.attributes}
    if product.operation:
        fields["operation"] = product.operation
    return listed(_products(aws, product.service, fields), usage=product.usage, unit=product.unit)


def _products(aws: AwsQueryCache, service: str, fields: Mapping[str, str]) -> Sequence[str]:
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]
    answer = aws.call("pricing", "get_products", PRICING_REGION, ServiceCode=service, Filters=filters)
    products: Sequence[str] = answer["PriceList"]
    return products


def _spot(aws: AwsQueryCache, query: PriceQuery, name: str) -> Usd | None:
    ids = {
        str(one["ZoneName"]): str(one["ZoneId"])
        for one in aws.list_all("ec2", "describe_availability_zones", "AvailabilityZones")
        if one.get("ZoneType", "availability-zone") == "availability-zone"
    }
    counted = {zone for zone, id in ids.items() if not query.zones or id in query.zones or zone in query.zones}
    history = aws.list_all(
        "ec2",
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=[name],
        ProductDescriptions=[_LINUX],
        StartTime=query.now - SPOT_DAYS,
        EndTime=query.now,
    )
    return spot_range(history, lambda row: row["AvailabilityZone"] in counted)


def _instance(
    on_demand: Listed | None, spot: Usd | None, known: InstanceRates | None, query: PriceQuery
) -> InstanceRates:
    before = known or InstanceRates(on_demand=None, spot=None, source=None)
    listed = f"AWS Price List API, {on_demand.published}" if on_demand else before.source
    where = f" in {', '.join(query.zones)}" if query.zones else ""
    days = f"the lowest and the highest price{where} in the {SPOT_DAYS.days} days to {query.now:%Y-%m-%d}"
    sources = (listed, f"spot: DescribeSpotPriceHistory, {days}" if spot else before.source if before.spot else None)
    return replace(
        before,
        on_demand=on_demand.usd if on_demand else before.on_demand,
        spot=spot or before.spot,
        source="; ".join(dict.fromkeys(filter(None, sources))) or None,
    )


def _missing(found: Mapping[str, tuple[Listed | None, Usd | None]], services: Collection[str]) -> Iterator[str]:
    yield from (f"{name} on demand" for name, (on_demand, _) in found.items() if on_demand is None)
    yield from (f"{name} on spot" for name, (_, spot) in found.items() if spot is None)
    yield from sorted(services)


def _prices(document: Mapping[str, Any], usage: str, unit: str) -> Iterator[Listed]:
    attributes = document["product"]["attributes"]
    named = str(attributes.get("usagetype", ""))
    if named != usage and not named.endswith(f"-{usage}"):
        return
    if attributes.get("marketoption", _ON_DEMAND) != _ON_DEMAND:
        return
    for term in document["terms"].get(_ON_DEMAND, {}).values():
        for step in term["priceDimensions"].values():
            if step["unit"] == unit and float(step.get("beginRange", 0)) == 0 and "USD" in step["pricePerUnit"]:
                published = str(document.get("publicationDate") or term.get("effectiveDate", ""))[:10]
                yield Listed(usd=float(step["pricePerUnit"]["USD"]), published=published or "no date")
