"""Quotas: which one an instance type counts in, and that the table is whole."""

from __future__ import annotations

import pytest

from corral.catalog.aws.instance_types import instance_types
from corral.catalog.aws.quota_defaults import find_quota, quotas, vcpu_quota
from corral.catalog.loader.data_files import read_csv
from corral.catalog.loader.suggestions import UnknownName


@pytest.mark.parametrize(
    ("instance_type", "market", "code"),
    [
        ("p4d.24xlarge", "on-demand", "L-417A185B"),
        ("p5en.48xlarge", "on-demand", "L-417A185B"),
        ("p6-b200.48xlarge", "on-demand", "L-417A185B"),
        ("p4d.24xlarge", "spot", "L-7212CCBC"),
        ("p3dn.24xlarge", "spot", "L-7212CCBC"),
        ("p5.48xlarge", "spot", "L-C4BD4855"),
        ("p5en.48xlarge", "spot", "L-C4BD4855"),
        ("p6-b300.48xlarge", "spot", "L-C4BD4855"),
        ("p4d.24xlarge", "capacity-block", "L-2C8F52B3"),
        ("p5.48xlarge", "capacity-block", "L-DA6814F2"),
        ("p5e.48xlarge", "capacity-block", "L-C45F30BC"),
        ("p5en.48xlarge", "capacity-block", "L-4F9BB70B"),
        ("trn1.32xlarge", "capacity-block", "L-2E30FD7D"),
        ("g6e.12xlarge", "on-demand", "L-DB2E81BA"),
        ("g5.48xlarge", "spot", "L-3819A6DF"),
        ("trn1n.32xlarge", "on-demand", "L-2C3B7624"),
        ("trn2.48xlarge", "spot", "L-6B0D517C"),
        ("m7i.2xlarge", "on-demand", "L-1216C47A"),
        ("t3.large", "spot", "L-34B43A08"),
        ("im4gn.large", "on-demand", "L-1216C47A"),
        ("h1.2xlarge", "on-demand", "L-1216C47A"),
        ("hpc7a.96xlarge", "on-demand", "L-F7808C92"),
        ("dl1.24xlarge", "on-demand", "L-6E869C2A"),
        ("inf2.48xlarge", "spot", "L-B5D1601B"),
    ],
)
def test_a_type_counts_in_the_quota_of_its_family_and_market(instance_type: str, market: str, code: str) -> None:
    found = vcpu_quota(instance_type, market)
    assert found is not None and found.code == code


@pytest.mark.parametrize(
    ("instance_type", "market"), [("mac2.metal", "on-demand"), ("p6-b200.48xlarge", "capacity-block")]
)
def test_a_type_without_a_known_quota_has_none(instance_type: str, market: str) -> None:
    assert vcpu_quota(instance_type, market) is None


@pytest.mark.parametrize("market", ["on-demand", "spot"])
def test_every_type_has_a_quota_on_demand_and_on_spot(market: str) -> None:
    assert [name for name in instance_types() if vcpu_quota(name, market) is None] == []


def test_no_code_is_there_twice() -> None:
    assert len(quotas()) == len(read_csv("quotas.csv")) == 52


def test_every_quota_has_a_source() -> None:
    known = ("ec2-page", "eks-page", "vpc-moto", "list")
    assert [quota.code for quota in quotas().values() if not quota.source.startswith(known)] == []


@pytest.mark.parametrize(
    ("code", "default"),
    [("L-417A185B", 0), ("L-1216C47A", 5), ("L-0263D0A3", 5), ("L-F678F1CE", 5), ("L-FE5A380F", 5),
     ("L-DF5E4CA3", 5_000), ("L-BB24F6E5", 64_000), ("L-7A658B76", 50), ("L-8F1B9C74", 100_800)],
)  # fmt: skip
def test_a_new_account_has_the_default(code: str, default: float) -> None:
    assert find_quota(code).default == default


def test_an_unknown_code_is_reported_with_what_comes_near() -> None:
    with pytest.raises(UnknownName, match=r"'L-417A185C' is not in the catalog - did you mean 'L-417A185B'\?"):
        find_quota("L-417A185C")
