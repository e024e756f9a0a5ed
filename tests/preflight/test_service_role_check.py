"""Roles of AWS's own services."""

from __future__ import annotations

from dataclasses import replace

import pytest
from finding_lines import bad, dev, on_demand

from corral.model.cluster import LoadBalancerPlan
from corral.model.enums import BalancerScheme
from corral.preflight.service_role_check import ServiceRoleFacts, evaluate
from environments import dev_cluster
from render.plans import LOGIN

EFS = "elasticfilesystem.amazonaws.com"
BALANCERS = "elasticloadbalancing.amazonaws.com"
NAMES = frozenset({"spot.amazonaws.com", "fsx.amazonaws.com", EFS, BALANCERS})
BOUNDARY = "arn:aws:iam::123456789012:policy/corral/guards-boundary-us-east-1"
ALL = ServiceRoleFacts(existing=NAMES, boundary=(BOUNDARY, True))


def without(service: str, may_create: bool | None = None) -> ServiceRoleFacts:
    return replace(ALL, existing=NAMES - {service}, creatable={service: may_create})


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


def test_a_load_balancer_needs_the_role_of_its_service_and_others_do_not() -> None:
    balancer = LoadBalancerPlan(scheme=BalancerScheme.INTERNAL, allow=(), zones=("use1-az1",))
    login = replace(LOGIN, load_balancer=balancer)
    clusters = [replace(dev_cluster(), login=login), dev_cluster()]
    found = [bad(evaluate(dev(cluster), without(BALANCERS, may_create=False))) for cluster in clusters]
    text = "has no role in this account, and these credentials may not create it (iam:CreateServiceLinkedRole)"
    assert found == [[f"fail {BALANCERS}: {text}"], []]


@pytest.mark.parametrize(
    ("is_current", "lines"),
    [
        (True, []),
        (
            False,
            [
                f"fail boundary: {BOUNDARY} does not exist or is not this release's; no role of a cluster is created"
                " without it"
            ],
        ),
        (None, [f"warn boundary: {BOUNDARY} cannot be read with these credentials"]),
    ],
)
def test_the_boundary_of_roles_is_required(is_current: bool | None, lines: list[str]) -> None:
    assert bad(evaluate(dev(), replace(ALL, boundary=(BOUNDARY, is_current)))) == lines
