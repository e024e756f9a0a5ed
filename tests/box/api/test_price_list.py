"""The Price List API: the catalog's prices in AWS's format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from vpc_fixtures import Clients

SHARED_LINUX = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}


def parameters(**fields: str) -> list[dict[str, str]]:
    return [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()]


def found(aws: Clients, service: str, **fields: str) -> list[dict[str, Any]]:
    """The products that these fields let through."""
    pages = aws("pricing").get_paginator("get_products").paginate(ServiceCode=service, Filters=parameters(**fields))
    return [json.loads(text) for page in pages for text in page["PriceList"]]


def price(product: dict[str, Any]) -> tuple[str, str]:
    """The price and its unit."""
    (term,) = product["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    return dimension["pricePerUnit"]["USD"], dimension["unit"]


def refused(aws: Clients, region: str = "us-east-1", **named: Any) -> str:
    with pytest.raises(ClientError) as raised:
        aws("pricing", region).get_products(**named)
    return str(raised.value.response["Error"]["Code"])


def test_an_instance_type_is_a_product_with_its_price_on_demand(aws: Clients) -> None:
    (product,) = found(aws, "AmazonEC2", instanceType="p5.48xlarge", regionCode="us-west-2", **SHARED_LINUX)
    sku = product["product"]["sku"]
    assert (product["product"]["attributes"], product["terms"]) == (
        {
            "servicecode": "AmazonEC2",
            "servicename": "Amazon Elastic Compute Cloud",
            "locationType": "AWS Region",
            "regionCode": "us-west-2",
            "usagetype": "USW2-BoxUsage:p5.48xlarge",
            "operation": "RunInstances",
            "instanceType": "p5.48xlarge",
            "vcpu": "192",
            "memory": "2048 GiB",
            "gpu": "8",
            "licenseModel": "No License required",
            "marketoption": "OnDemand",
            "currentGeneration": "Yes",
            **SHARED_LINUX,
        },
        {
            "OnDemand": {
                f"{sku}.JRTCKXETXF": {
                    "sku": sku,
                    "offerTermCode": "JRTCKXETXF",
                    "effectiveDate": "2026-11-01T00:00:00Z",
                    "termAttributes": {},
                    "priceDimensions": {
                        f"{sku}.JRTCKXETXF.6YS6EN2CT7": {
                            "unit": "Hrs",
                            "beginRange": "0",
                            "endRange": "Inf",
                            "description": "$55.04 per On Demand Linux p5.48xlarge Instance Hour",
                            "appliesTo": [],
                            "rateCode": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
                            "pricePerUnit": {"USD": "55.0400000000"},
                        }
                    },
                }
            }
        },
    )


@pytest.mark.parametrize(
    ("service", "fields", "expected"),
    [
        ("AmazonEC2", {"volumeApiName": "gp3"}, ("0.0800000000", "GB-Mo")),
        ("AmazonEC2", {"productFamily": "NAT Gateway", "usagetype": "NatGateway-Hours"}, ("0.0450000000", "Hrs")),
        ("AmazonEC2", {"productFamily": "NAT Gateway", "usagetype": "NatGateway-Bytes"}, ("0.0450000000", "GB")),
        ("AmazonEC2", {"instanceType": "m7i.2xlarge"}, ("0.4032000000", "Hrs")),
        ("AmazonEFS", {"storageClass": "General Purpose"}, ("0.3000000000", "GB-Mo")),
        ("AmazonEFS", {"usagetype": "USE1-ETDataAccess-Bytes", "accessType": "Write"}, ("0.0600000000", "GB")),
        ("AmazonFSx", {"usagetype": "USE1-Storage", "deploymentOption": "Single-AZ"}, ("0.1400000000", "GB-Mo")),
        ("AmazonFSx", {"storageType": "SSD", "throughputCapacity": "250"}, ("0.2100000000", "GB-Mo")),
        ("AmazonFSx", {"storageType": "HDD", "throughputCapacity": "12"}, ("0.0250000000", "GB-Mo")),
        ("AmazonFSx", {"usagetype": "USE1-MetadataIOPS"}, ("0.0550000000", "IOPS-Mo")),
    ],
)
def test_the_price_is_the_catalogs(
    aws: Clients, service: str, fields: dict[str, str], expected: tuple[str, str]
) -> None:
    assert [price(product) for product in found(aws, service, regionCode="us-east-1", **fields)] == [expected]


def test_a_type_without_a_price_on_demand_is_no_product(aws: Clients) -> None:
    assert found(aws, "AmazonEC2", instanceType="p5e.48xlarge") == []


def test_a_filter_on_a_missing_field_matches_nothing(aws: Clients) -> None:
    assert found(aws, "AmazonEC2", instanceType="p5.48xlarge", colour="red") == []


def test_products_come_in_pages(aws: Clients) -> None:
    pages = (
        aws("pricing")
        .get_paginator("get_products")
        .paginate(ServiceCode="AmazonFSx", Filters=parameters(regionCode="us-east-1"), PaginationConfig={"PageSize": 5})
    )
    result = [page["PriceList"] for page in pages]
    assert ([len(page) for page in result], len({text for page in result for text in page})) == ([5, 5, 2], 12)


@pytest.mark.parametrize(
    ("kind", "value", "count"),
    [("EQUALS", "USE1-Storage", 1), ("CONTAINS", "Storage.SSD", 7), ("ANY_OF", "USE1-Storage,USE1-BackupUsage", 2),
     ("NONE_OF", "USE1-Storage,USE1-BackupUsage", 10)],
)  # fmt: skip
def test_the_other_filter_types_match_as_named(aws: Clients, kind: str, value: str, count: int) -> None:
    filters = [*parameters(regionCode="us-east-1"), {"Type": kind, "Field": "usagetype", "Value": value}]
    assert len(aws("pricing").get_products(ServiceCode="AmazonFSx", Filters=filters)["PriceList"]) == count


@pytest.mark.parametrize("region", ["eu-central-1", "ap-south-1"])
def test_the_other_two_regions_return_the_same(aws: Clients, region: str) -> None:
    named = {"ServiceCode": "AmazonEC2", "Filters": parameters(instanceType="p5.48xlarge", regionCode="us-east-1")}
    assert (
        aws("pricing", region).get_products(**named)["PriceList"] == aws("pricing").get_products(**named)["PriceList"]
    )


def test_a_region_without_the_service_is_refused(aws: Clients) -> None:
    assert refused(aws, "us-west-2", ServiceCode="AmazonEC2") == "InvalidSignatureException"


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ({"ServiceCode": "AmazonEverything"}, "NotFoundException"),
        ({"ServiceCode": "AmazonEC2", "NextToken": "x"}, "InvalidNextTokenException"),
        ({"ServiceCode": "AmazonEC2", "MaxResults": 101}, "InvalidParameterException"),
        ({"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v2"}, "InvalidParameterException"),
        ({"ServiceCode": "AmazonEC2", "Filters": parameters(a="b") * 51}, "InvalidParameterException"),
        (
            {"ServiceCode": "AmazonFSx", "Filters": [{"Type": "LIKE", "Field": "usagetype", "Value": "b"}]},
            "InvalidParameterException",
        ),
    ],
)
def test_an_invalid_query_for_products_is_refused(aws: Clients, named: dict[str, Any], code: str) -> None:
    assert refused(aws, **named) == code
