"""Addresses that a zone has, and that a cluster may take of them."""

from corral.forecast.addresses import free_addresses, taken_addresses
from worked_example import BASE, CLUSTER


def test_free_are_neither_those_for_heads_nor_those_of_aws() -> None:
    assert free_addresses(BASE.zones[0]) == 8192 - 64 - 1


def test_node_takes_one_address_and_none_for_its_efa_only_interfaces() -> None:
    assert taken_addresses(CLUSTER, "use1-az1") == 4 * 1 + 2


def test_zone_without_an_offer_gives_no_address_away() -> None:
    assert taken_addresses(CLUSTER, "use1-az2") == 0
