"""File systems that a base kept, and those that are wished."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from judging import bad, dev, said, train

from corral.preflight.file_systems import Facts, Kept, judge

ZONE = frozenset({"use1-az1", "us-east-1a"})


def data(**changed: Any) -> Facts:
    """The file system `data` of the base `train`, as it was kept."""
    good = {
        "id": "fs-1",
        "state": "available",
        "places": (("vpc-1", ZONE),),
        "version": "2.15",
        "deployment": "PERSISTENT_2",
        "size_gib": 19200,
    }
    return Facts(vpcs=frozenset({"vpc-1"}), lustre={"data": Kept(**{**good, **changed})})


def test_what_nobody_kept_is_made() -> None:
    assert said(judge(dev(), Facts())) == [
        "ok home: made by the base",
        "ok Lustre scratch: SCRATCH_2 is offered in us-east-1",
    ]


def test_what_was_kept_and_fits_is_ok() -> None:
    assert said(judge(train(), data()))[1:] == [
        "ok Lustre data: PERSISTENT_2 SSD 250 is offered in us-east-1",
        "ok Lustre data: fs-1, which the base keeps, is available",
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"state": "failed"}, "is failed"),
        ({"state": "misconfigured"}, "is misconfigured"),
        ({"places": (("vpc-2", ZONE),)}, "is in vpc-2, and the machines will be in vpc-1"),
        ({"version": "2.10"}, "runs Lustre 2.10, which the images' client 2.15 does not mount"),
        ({"deployment": "PERSISTENT_1"}, "is PERSISTENT_1, the spec says PERSISTENT_2"),
        ({"size_gib": 38400}, "has 38,400 GiB, the spec says 19,200, and Lustre only grows"),
        (
            {"places": (("vpc-1", frozenset({"use1-az2", "us-east-1b"})),)},
            "is in use1-az2, the spec says use1-az1",
        ),
    ],
)
def test_what_is_wrong_with_lustre_that_was_kept_is_told(changed: dict[str, Any], told: str) -> None:
    assert bad(judge(train(), data(**changed))) == [f"fail Lustre data: fs-1, which the base keeps, {told}"]


def test_lustre_that_the_spec_makes_larger_is_ok() -> None:
    assert bad(judge(train(), data(size_gib=4800))) == []


def test_a_home_that_is_reached_in_another_vpc_fails() -> None:
    home = Kept(id="fs-2", state="available", places=(("vpc-9", ZONE),))
    assert bad(judge(dev(), Facts(homes=(home,)))) == [
        "fail home: fs-2, which the base keeps, has mount targets in vpc-9, and the machines will be in a VPC that the"
        " base makes"
    ]


def test_a_home_that_is_being_deleted_fails() -> None:
    (line,) = bad(judge(dev(), Facts(homes=(Kept(id="fs-2", state="deleting"),))))
    assert line == "fail home: fs-2, which the base keeps, is deleting"


def test_a_deployment_without_a_price_in_the_region_is_a_warning() -> None:
    far = replace(dev(), cluster=replace(dev().cluster, region="mx-central-9"))
    assert bad(judge(far, Facts())) == [
        "warn Lustre scratch: the price list has no SCRATCH_2 in mx-central-9: FSx may not offer it there"
    ]
