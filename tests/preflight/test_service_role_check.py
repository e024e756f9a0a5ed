"""Roles of AWS's own services."""

from __future__ import annotations

import pytest
from finding_lines import bad, dev, on_demand

from corral.preflight.service_role_check import ServiceRoleFacts, evaluate

EFS = "elasticfilesystem.amazonaws.com"
NAMES = frozenset({"spot.amazonaws.com", "fsx.amazonaws.com", EFS})
ALL = ServiceRoleFacts(existing=NAMES)


def without(service: str, may_create: bool | None = None) -> ServiceRoleFacts:
    return ServiceRoleFacts(existing=NAMES - {service}, creatable={service: may_create})


def test_an_account_with_all_of_them_is_ok() -> None:
    assert bad(evaluate(dev(), ALL)) == []


def test_a_missing_spot_role_is_a_failure() -> None:
    text = "has no role in this account, and the head may not create it: spot launches fail"
    assert bad(evaluate(dev(), without("spot.amazonaws.com"))) == [f"fail spot.amazonaws.com: {text}"]


def test_without_spot_offers_the_spot_role_is_not_required() -> None:
    assert bad(evaluate(on_demand(dev()), without("spot.amazonaws.com"))) == []


@pytest.mark.parametrize(
    ("may_create", "lines"),
    [
        (True, []),
        (
            False,
            [
                f"fail {EFS}: has no role in this account, and these credentials may not create it"
                " (iam:CreateServiceLinkedRole)"
            ],
        ),
        (
            None,
            [
                f"warn {EFS}: has no role in this account; the first file system creates it,"
                " if the caller may create roles"
            ],
        ),
    ],
)
def test_the_first_file_system_creates_a_missing_role_if_the_caller_may(
    may_create: bool | None, lines: list[str]
) -> None:
    assert bad(evaluate(dev(), without(EFS, may_create))) == lines
