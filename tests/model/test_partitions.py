"""Partitions: botocore's facts, and no name of one partition written out in the code."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import botocore
import pytest

from corral.catalog.aws.regions import regions
from corral.model.partitions import PARTITIONS, Partition, endpoint_service, partition_of, service_principal

ROOT = Path(__file__).parents[2]
DATA = Path(botocore.__file__).parent / "data"
SOURCES = ("modules/corral", "stacks", "templates")
LITERAL = re.compile(r"arn:aws:|amazonaws\.com")
# AWS's archive of Lustre clients is one bucket, for all partitions.
ALLOWED = {
    "modules/corral/model/partitions.py",
    "modules/corral/catalog/data/images.toml",
    "modules/corral/agent/alert_topic.py",  # the XML namespace of SNS's answers, the same in all partitions
}


def of_botocore(file: str, key: str) -> Mapping[str, Any]:
    """botocore's partitions by name."""
    return {one[key]: one for one in json.loads((DATA / file).read_text())["partitions"]}


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda one: one.name)
def test_a_partition_is_botocores(partition: Partition) -> None:
    found = of_botocore("partitions.json", "id")[partition.name]
    assert (found["regionRegex"], found["outputs"]["dnsSuffix"]) == (partition.regions, partition.dns_suffix)


@pytest.mark.parametrize("partition", PARTITIONS, ids=lambda one: one.name)
def test_services_with_one_endpoint_check_requests_in_botocores_region(partition: Partition) -> None:
    services = of_botocore("endpoints.json", "partition")[partition.name]["services"]
    found = [
        services[name]["endpoints"][services[name]["partitionEndpoint"]]["credentialScope"]["region"]
        for name in ("iam", "route53")
    ]
    assert found == [partition.iam_region, partition.route53_region]


def test_every_region_of_the_catalog_is_in_botocores_partition() -> None:
    listed = of_botocore("partitions.json", "id")
    assert [name for name in regions() if name not in listed[partition_of(name).name]["regions"]] == []


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ("eu-west-1", ["ec2.amazonaws.com", "fsx.amazonaws.com"]),
        ("cn-north-1", ["ec2.amazonaws.com.cn", "fsx.amazonaws.com"]),
        ("us-gov-west-1", ["ec2.amazonaws.com", "fsx.amazonaws.com"]),
    ],
)
def test_the_principal_of_a_service_depends_on_the_partition(region: str, expected: list[str]) -> None:
    assert [service_principal(name, region) for name in ("ec2", "fsx")] == expected


@pytest.mark.parametrize(
    ("service", "region", "expected"),
    [
        ("ec2", "us-gov-east-1", "com.amazonaws.us-gov-east-1.ec2"),
        ("ec2", "cn-north-1", "cn.com.amazonaws.cn-north-1.ec2"),
        ("ssm", "cn-north-1", "com.amazonaws.cn-north-1.ssm"),
        ("s3", "cn-northwest-1", "com.amazonaws.cn-northwest-1.s3"),
    ],
)
def test_the_name_of_an_endpoint_service_depends_on_the_partition(service: str, region: str, expected: str) -> None:
    assert endpoint_service(service, region) == expected


def test_no_source_writes_a_partition_out() -> None:
    files = [file for folder in SOURCES for file in (ROOT / folder).rglob("*") if file.suffix not in (".pyc", "")]
    found = {str(file.relative_to(ROOT)) for file in files if LITERAL.search(file.read_text(encoding="utf-8"))}
    assert found - ALLOWED == set()
