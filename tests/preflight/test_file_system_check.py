"""Retained file systems of a base, and declared ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from finding_lines import bad, dev, finding_lines, train

from corral.preflight.file_system_check import FileSystemFacts, RetainedFileSystem, evaluate

ZONE = frozenset({"use1-az1", "us-east-1a"})


def data(**changed: Any) -> FileSystemFacts:
    """The file system `data` of the base `train`, as it was kept."""
    good = {
        "id": "fs-1",
        "state": "available",
        "locations": (("vpc-1", ZONE),),
        "version": "2.15",
        "deployment": "PERSISTENT_2",
        "size_gib": 19200,
    }
    return FileSystemFacts(vpcs=frozenset({"vpc-1"}), lustre={"data": RetainedFileSystem(**{**good, **changed})})


def test_without_retained_file_systems_they_are_created() -> None:
    assert finding_lines(evaluate(dev(), FileSystemFacts())) == [
        "ok home: created by the base",
        "ok Lustre scratch: SCRATCH_2 is offered in us-east-1",
    ]


def test_matching_retained_file_systems_are_ok() -> None:
    assert finding_lines(evaluate(train(), data()))[1:] == [
        "ok Lustre data: PERSISTENT_2 SSD 250 is offered in us-east-1",
        "ok Lustre data: fs-1, which the base retains, is available",
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"state": "failed"}, "is failed"),
        ({"state": "misconfigured"}, "is misconfigured"),
        ({"locations": (("vpc-2", ZONE),)}, "is in vpc-2, but the machines will be in vpc-1"),
        ({"version": "2.10"}, "runs Lustre 2.10, which the images' client 2.15 cannot mount"),
        ({"deployment": "PERSISTENT_1"}, "is PERSISTENT_1, but the spec declares PERSISTENT_2"),
        ({"size_gib": 38400}, "has 38,400 GiB, but the spec declares 19,200, and Lustre cannot shrink"),
        (
            {"locations": (("vpc-1", frozenset({"use1-az2", "us-east-1b"})),)},
            "is in use1-az2, but the spec declares use1-az1",
        ),
    ],
)
def test_defects_of_retained_lustre_are_findings(changed: dict[str, Any], expected: str) -> None:
    assert bad(evaluate(train(), data(**changed))) == [f"fail Lustre data: fs-1, which the base retains, {expected}"]


def test_lustre_that_the_spec_makes_larger_is_ok() -> None:
    assert bad(evaluate(train(), data(size_gib=4800))) == []


def test_a_home_that_is_reached_in_another_vpc_fails() -> None:
    home = RetainedFileSystem(id="fs-2", state="available", locations=(("vpc-9", ZONE),))
    assert bad(evaluate(dev(), FileSystemFacts(homes=(home,)))) == [
        "fail home: fs-2, which the base retains, has mount targets in vpc-9, but the machines will be in a"
        " VPC that the base creates"
    ]


def test_a_home_that_is_being_deleted_fails() -> None:
    (line,) = bad(evaluate(dev(), FileSystemFacts(homes=(RetainedFileSystem(id="fs-2", state="deleting"),))))
    assert line == "fail home: fs-2, which the base retains, is deleting"


def test_a_deployment_without_a_price_in_the_region_is_a_warning() -> None:
    far = replace(dev(), cluster=replace(dev().cluster, region="mx-central-9"))
    assert bad(evaluate(far, FileSystemFacts())) == [
        "warn Lustre scratch: the price list has no SCRATCH_2 in mx-central-9; FSx may not offer it there"
    ]
