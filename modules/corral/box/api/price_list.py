"""AWS's price list for the prices in the catalog: products with their attributes, as aws_v1. Pure.

Source of the format and the attributes: AWS Price List API, GetProducts; responses in public repositories. The names of
services are in `price_names`.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from corral.catalog.aws.instance_types import InstanceType, instance_types
from corral.catalog.aws.price_names import EC2, SERVICES, price_list_products, usage_type
from corral.catalog.aws.prices import instance_price, service_price
from corral.catalog.aws.regions import regions

PUBLISHED = "2026-11-01T00:00:00Z"  # nominal: the catalog's prices have several dates
_TERM, _RATE = "JRTCKXETXF", "6YS6EN2CT7"  # the on-demand term and rate codes of every price list


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product and its price in USD per `unit`. `family`: AWS's productFamily."""

    service: str
    family: str
    attributes: Mapping[str, str]
    unit: str
    usd: float
    description: str

    @property
    def sku(self) -> str:
        """The SKU: synthetic but stable."""
        text = json.dumps([self.service, self.family, sorted(self.attributes.items())])
        return b32encode(sha256(text.encode()).digest()).decode()[:16]

    def field(self, name: str) -> str | None:
        """The value of a filter's field; None if the product has no such field."""
        match name:
            case "sku":
                return self.sku
            case "ServiceCode":
                return self.service
            case "productFamily":
                return self.family
        return self.attributes.get(name)

    def to_json(self) -> str:
        """The product as an aws_v1 JSON document."""
        term, rate = f"{self.sku}.{_TERM}", f"{self.sku}.{_TERM}.{_RATE}"
        price = {
            "unit": self.unit,
            "endRange": "Inf",
            "description": f"${self.usd:g} {self.description}",
            "appliesTo": [],
            "rateCode": rate,
            "beginRange": "0",
            "pricePerUnit": {"USD": f"{self.usd:.10f}"},
        }
        offer = {
            "priceDimensions": {rate: price},
            "sku": self.sku,
            "effectiveDate": PUBLISHED,
            "offerTermCode": _TERM,
            "termAttributes": {},
        }
        product = {"productFamily": self.family, "attributes": dict(self.attributes), "sku": self.sku}
        return json.dumps(
            {
                "product": product,
                "serviceCode": self.service,
                "terms": {"OnDemand": {term: offer}},
                "version": PUBLISHED.translate({ord(sign): None for sign in "-:TZ"}),
                "publicationDate": PUBLISHED,
            }
        )


@cache
def products() -> Mapping[str, tuple[Product, ...]]:
    """All products by service code, sorted by SKU."""
    found: dict[str, list[Product]] = {service: [] for service in SERVICES}
    for region in regions():
        for product in (*_instances(region), *_services(region)):
            found[product.service].append(product)
    return {service: tuple(sorted(held, key=lambda one: one.sku)) for service, held in found.items()}


def _instances(region: str) -> Iterator[Product]:
    for kind in instance_types().values():
        price = instance_price(kind.name, region)
        if price is None or price.on_demand_usd_per_hour is None:
            continue
        yield Product(
            service=EC2,
            family="Compute Instance",
            attributes=_location(EC2, region, f"BoxUsage:{kind.name}", "RunInstances") | _hardware(kind),
            unit="Hrs",
            usd=price.on_demand_usd_per_hour,
            description=f"per On Demand Linux {kind.name} Instance Hour",
        )


def _hardware(kind: InstanceType) -> dict[str, str]:
    gpus = {"gpu": str(kind.accelerator.count)} if kind.accelerator else {}
    return {
        "instanceType": kind.name,
        "vcpu": str(kind.vcpus),
        "memory": f"{kind.memory_mib / 1024:g} GiB",
        "operatingSystem": "Linux",
        "preInstalledSw": "NA",
        "licenseModel": "No License required",
        "tenancy": "Shared",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
        "currentGeneration": "Yes",
        **gpus,
    }


def _services(region: str) -> Iterator[Product]:
    for name, product in price_list_products().items():
        if (price := service_price(name, region)) is not None:
            yield Product(
                service=product.service,
                family=product.family,
                attributes={
                    **_location(product.service, region, product.usage, product.operation),
                    **product.attributes,
                },
                unit=product.unit,
                usd=price.usd,
                description=product.description,
            )


def _location(service: str, region: str, usage: str, operation: str) -> dict[str, str]:
    return {
        "servicecode": service,
        "servicename": SERVICES[service],
        "locationType": "AWS Region",
        "regionCode": region,
        "usagetype": usage_type(service, region, usage),
        "operation": operation,
    }
