"""Prices as AWS tells them now: its price list, and what spot machines have cost in the last month.

What it does not tell - capacity blocks, and services whose names in its list are not known - stays as the list behind
has it, and is named in `missing`. What the project's own catalogue.toml says is what the project pays: it stays, too.
Source: AWS Price List API reference, GetProducts; EC2 API reference, DescribeSpotPriceHistory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from corral.catalog.price_names import EC2, articles
from corral.forecast.asked import Recording
from corral.forecast.cost import forecast_cost
from corral.forecast.money import Usd, span
from corral.forecast.notes import Note, notes
from corral.forecast.prices import InstancePrice, PriceList, Service, ServicePrice
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.preflight.answers import Answers
from corral.preflight.price_documents import Listed, listed

PRICING_REGION = "us-east-1"  # its endpoints are in three regions, where the prices of all are
SPOT_DAYS = timedelta(days=30)
_LINUX = "Linux/UNIX"
_SHARED_LINUX = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
_OF_A_RUN = (Service.GP3_GIB_MONTH, Service.S3_GIB_MONTH, Service.EFS_GIB_MONTH, Service.CROSS_ZONE_GB)
_AT_ONCE = 8  # requests; AWS throttles callers that ask for more


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrices:
    """A price list of one region. `missing`: what it took from the list behind, as AWS did not tell it."""

    instances: Mapping[str, InstancePrice]
    services: Mapping[str, ServicePrice]
    behind: PriceList
    missing: tuple[str, ...]

    def instance(self, instance_type: str) -> InstancePrice | None:
        """The price of this type now; of one that was not looked up that of the list behind."""
        return self.instances.get(instance_type) or self.behind.instance(instance_type)

    def service(self, service: str) -> ServicePrice | None:
        """The price of this service now, else that of the list behind."""
        return self.services.get(service) or self.behind.service(service)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What somebody should know of these prices: that some are not of now."""
        if not self.missing:
            return ()
        return (Note(about="prices", text=f"by the catalogue, as AWS did not tell them: {', '.join(self.missing)}"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to look up. `zones`: by id, those whose spot prices count; all of the region where there are none.

    `own`: the types whose price the project states itself.
    """

    region: str
    zones: tuple[str, ...]
    instances: Collection[str]
    services: Collection[str]
    own: Collection[str]
    now: datetime


def wanted_of(
    base: BasePlan,
    cluster: ClusterPlan,
    behind: PriceList,
    *,
    region: str,
    types: Iterable[str],
    own: Collection[str],
    now: datetime,
) -> Wanted:
    """All that a plan's bill, its notes and a run in it ask for, and these types. In its own region: by its zones."""
    asked = Recording(behind)
    forecast_cost(base, cluster, asked)
    notes(base, cluster, asked)
    return Wanted(
        region=region,
        zones=tuple(zone.zone_id for zone in base.zones) if region == base.region else (),
        instances={*types, cluster.head.instance_type},
        services=asked.services | {str(one) for one in _OF_A_RUN},
        own=own,
        now=now,
    )


def live_prices(answers: Answers, wanted: Wanted, behind: PriceList) -> LivePrices:
    """All of it, several requests at once. Raises botocore's errors."""
    types = sorted(set(wanted.instances) - set(wanted.own))
    names = sorted(name for name in wanted.services if name in articles())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        spot = pool.map(lambda name: _spot(answers, wanted, name), types)  # EC2's silence beside that of the prices
        on_demand = pool.map(lambda name: _on_demand(answers, wanted, name), types)
        services = pool.map(lambda name: _service(answers, wanted, name), names)
        found = dict(zip(types, zip(on_demand, spot, strict=True), strict=True))
        priced = {name: one for name, one in zip(names, services, strict=True) if one}
    return LivePrices(
        instances={name: _instance(*found[name], behind.instance(name), wanted) for name in types},
        services={
            name: ServicePrice(usd=one.usd, source=f"AWS Price List API, of {one.published}")
            for name, one in priced.items()
        },
        behind=behind,
        missing=tuple(_missing(found, set(wanted.services) - set(priced))),
    )


def spot_range(history: Sequence[Mapping[str, Any]], zones: Callable[[Mapping[str, Any]], bool]) -> Usd | None:
    """The lowest and the highest price of a history in these zones; None where there is none."""
    return span(Usd.exact(float(row["SpotPrice"])) for row in history if zones(row))


def _on_demand(answers: Answers, wanted: Wanted, name: str) -> Listed | None:
    fields = {"instanceType": name, "regionCode": wanted.region, **_SHARED_LINUX}
    return listed(_products(answers, EC2, fields), usage=f"BoxUsage:{name}", unit="Hrs")


def _service(answers: Answers, wanted: Wanted, name: str) -> Listed | None:
    article = articles()[name]
    fields = {"regionCode": wanted.region, "productFamily": article.family, **article.more}
    if article.operation:
        fields["operation"] = article.operation
    return listed(_products(answers, article.service, fields), usage=article.usage, unit=article.unit)


def _products(answers: Answers, service: str, fields: Mapping[str, str]) -> Sequence[str]:
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]
    answer = answers.ask("pricing", "get_products", PRICING_REGION, ServiceCode=service, Filters=filters)
    products: Sequence[str] = answer["PriceList"]
    return products


def _spot(answers: Answers, wanted: Wanted, name: str) -> Usd | None:
    ids = {
        str(one["ZoneName"]): str(one["ZoneId"])
        for one in answers.every("ec2", "describe_availability_zones", "AvailabilityZones")
        if one.get("ZoneType", "availability-zone") == "availability-zone"
    }
    counted = {zone for zone, id in ids.items() if not wanted.zones or id in wanted.zones or zone in wanted.zones}
    history = answers.every(
        "ec2",
        "describe_spot_price_history",
        "SpotPriceHistory",
        InstanceTypes=[name],
        ProductDescriptions=[_LINUX],
        StartTime=wanted.now - SPOT_DAYS,
        EndTime=wanted.now,
    )
    return spot_range(history, lambda row: row["AvailabilityZone"] in counted)


def _instance(on_demand: Listed | None, spot: Usd | None, known: InstancePrice | None, wanted: Wanted) -> InstancePrice:
    before = known or InstancePrice(on_demand=None, spot=None, source=None)
    listed = f"AWS Price List API, of {on_demand.published}" if on_demand else before.source
    where = f" in {', '.join(wanted.zones)}" if wanted.zones else ""
    days = f"the lowest and the highest price{where} in the {SPOT_DAYS.days} days to {wanted.now:%Y-%m-%d}"
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
