"""The quotas that an environment needs at full size, and those that a new account lacks."""

from __future__ import annotations

from corral.forecast.required_quotas import other_needs, quotas_needed, vcpus_needed
from corral.model.cluster import ClusterPlan
from corral.plan.base import plan_base
from corral.plan.cluster import plan_cluster
from corral.spec.yaml.stack_files import read_environment
from environments import PROJECT, dev_base, dev_cluster

STANDARD, P, P4_SPOT, P5_SPOT = "L-1216C47A", "L-417A185B", "L-7212CCBC", "L-C4BD4855"


def train() -> ClusterPlan:
    """The cluster of `train`, which has a capacity block and a reservation."""
    environment = read_environment(PROJECT, "train")
    return plan_cluster(environment.cluster, plan_base(environment.base))


def test_dev_needs_96_vcpus_per_node_in_both_markets_and_8_for_its_head() -> None:
    assert vcpus_needed(dev_cluster()) == {STANDARD: 8, P: 384, P4_SPOT: 384}


def test_reserved_capacity_needs_no_additional_quota() -> None:
    assert vcpus_needed(train()) == {STANDARD: 16, P5_SPOT: 3072}


def test_dev_needs_an_address_a_vpc_a_gateway_a_home_and_1200_gib_of_scratch() -> None:
    assert other_needs(dev_base(), dev_cluster()) == {
        "L-0263D0A3": 1,
        "L-F678F1CE": 1,
        "L-FE5A380F": 1,
        "L-848C634D": 1,
        "L-DF5E4CA3": 21,
        "L-BB24F6E5": 21,
        "L-7A658B76": 1000 / 1024,
        "L-AD2FC696": 1200,
        "L-C48231E5": 1,
    }


def test_vcpus_come_first_with_their_users() -> None:
    needs = quotas_needed(dev_base(), dev_cluster())
    assert [(need.quota.code, need.who) for need in needs[:3]] == [
        (STANDARD, ("the head",)),
        (P, ("queue train",)),
        (P4_SPOT, ("queue train",)),
    ]


def test_a_new_account_lacks_the_vcpus_of_dev_and_nothing_else() -> None:
    needs = quotas_needed(dev_base(), dev_cluster())
    assert [need.quota.code for need in needs if need.beyond_new] == [STANDARD, P, P4_SPOT]
