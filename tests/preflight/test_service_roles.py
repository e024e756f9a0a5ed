"""Roles of AWS's own services."""

from __future__ import annotations

from judging import bad, dev, on_demand

from corral.preflight.service_roles import judge

ALL = frozenset({"spot.amazonaws.com", "fsx.amazonaws.com", "elasticfilesystem.amazonaws.com"})


def test_an_account_with_all_of_them_is_ok() -> None:
    assert bad(judge(dev(), ALL)) == []


def test_without_spots_role_no_spot_machine_starts() -> None:
    text = "has no role in this account, and the head may not make it: no spot machine can be launched"
    assert bad(judge(dev(), ALL - {"spot.amazonaws.com"})) == [f"fail spot.amazonaws.com: {text}"]


def test_who_launches_no_spot_machine_needs_no_role_of_spot() -> None:
    assert bad(judge(on_demand(dev()), ALL - {"spot.amazonaws.com"})) == []


def test_the_roles_of_file_systems_may_come_with_the_first() -> None:
    text = "has no role in this account; it is made with the first file system by whoever may make roles"
    assert bad(judge(dev(), frozenset({"spot.amazonaws.com", "fsx.amazonaws.com"}))) == [
        f"warn elasticfilesystem.amazonaws.com: {text}"
    ]
