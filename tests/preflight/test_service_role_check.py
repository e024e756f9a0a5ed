"""Roles of AWS's own services."""

from __future__ import annotations

from finding_lines import bad, dev, on_demand

from corral.preflight.service_role_check import evaluate

ALL = frozenset({"spot.amazonaws.com", "fsx.amazonaws.com", "elasticfilesystem.amazonaws.com"})


def test_an_account_with_all_of_them_is_ok() -> None:
    assert bad(evaluate(dev(), ALL)) == []


def test_a_missing_spot_role_is_a_failure() -> None:
    text = "has no role in this account, and the head may not create it: spot launches fail"
    assert bad(evaluate(dev(), ALL - {"spot.amazonaws.com"})) == [f"fail spot.amazonaws.com: {text}"]


def test_without_spot_offers_the_spot_role_is_not_required() -> None:
    assert bad(evaluate(on_demand(dev()), ALL - {"spot.amazonaws.com"})) == []


def test_the_roles_of_file_systems_may_come_with_the_first() -> None:
    text = "has no role in this account; the first file system creates it, if the caller may create roles"
    assert bad(evaluate(dev(), frozenset({"spot.amazonaws.com", "fsx.amazonaws.com"}))) == [
        f"warn elasticfilesystem.amazonaws.com: {text}"
    ]
