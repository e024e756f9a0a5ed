"""AWS's price list as far as the catalogue has prices: products with their attributes, in the form of aws_v1. Pure.

Source of the form and the attributes: AWS Price List API, GetProducts; products that public repositories keep as they
got them. What services are called in it is in `price_names`.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from corral.catalog.instances import InstanceType, instance_types
from corral.catalog.price_names import EC2, SERVICES, articles, usage_type
from corral.catalog.prices import instance_price, service_price
from corral.catalog.regions import regions

PUBLISHED = "2026-11-01T00:00:00Z"  # the catalogue's prices have no one day
_TERM, _RATE = "JRTCKXETXF", "6YS6EN2CT7"  # on demand, in every price list


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Something that has a price: USD for one `unit`. `family` is what AWS calls its productFamily."""

    service: str
    family: str
    attributes: Mapping[str, str]
    unit: str
    usd: float
    words: str

    @property
    def sku(self) -> str:
        """AWS's name for it: made up here, but always the same."""
        text = json.dumps([self.service, self.family, sorted(self.attributes.items())])
        return b32encode(sha256(text.encode()).digest()).decode()[:16]

    def field(self, name: str) -> str | None:
        """What a filter looks at; None where the product has no such field."""
        match name:
            case "sku":
                return self.sku
            case "ServiceCode":
                return self.service
            case "productFamily":
                return self.family
        return self.attributes.get(name)

    def written(self) -> str:
        """The product in the form of aws_v1: one JSON document."""
        term, rate = f"{self.sku}.{_TERM}", f"{self.sku}.{_TERM}.{_RATE}"
        price = {
            "unit": self.unit,
            "endRange": "Inf",
            "description": f"${self.usd:g} {self.words}",
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
    """All products by the code of their service, by SKU: in no order that means something, as on AWS."""
    found: dict[str, list[Product]] = {service: [] for service in SERVICES}
    for region in regions():
        for product in (*_instances(region), *_services(region)):
            found[product.service].append(product)
    return {service: tuple(sorted(held, key=lambda one: one.sku)) for service, held in found.items()}


def _instances(region: str) -> Iterator[Product]:
    for machine in instance_types().values():
        price = instance_price(machine.name, region)
        if price is None or price.on_demand_usd_per_hour is None:
            continue
        yield Product(
            service=EC2,
            family="Compute Instance",
            attributes=_place(EC2, region, f"BoxUsage:{machine.name}", "RunInstances") | _machine(machine),
            unit="Hrs",
            usd=price.on_demand_usd_per_hour,
            words=f"per On Demand Linux {machine.name} Instance Hour",
        )


def _machine(machine: InstanceType) -> dict[str, str]:
    gpus = {"gpu": str(machine.accelerator.count)} if machine.accelerator else {}
    return {
        "instanceType": machine.name,
        "vcpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib / 1024:g} GiB",
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
    for name, article in articles().items():
        if (price := service_price(name, region)) is not None:
            yield Product(
                service=article.service,
                family=article.family,
                attributes={**_place(article.service, region, article.usage, article.operation), **article.more},
                unit=article.unit,
                usd=price.usd,
                words=article.words,
            )


def _place(service: str, region: str, usage: str, operation: str) -> dict[str, str]:
    return {
        "servicecode": service,
        "servicename": SERVICES[service],
        "locationType": "AWS Region",
        "regionCode": region,
        "usagetype": usage_type(service, region, usage),
        "operation": operation,
    }
