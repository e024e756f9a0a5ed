"""Addresses that a zone has, and that a cluster may take of them."""

from dataclasses import replace

from corral.forecast.addresses import free_addresses, taken_addresses
from worked_example import BASE, CLUSTER


def test_free_are_neither_those_for_heads_nor_those_of_aws() -> None:
    assert free_addresses(BASE.zones[0]) == 8192 - 64 - 1


def test_node_takes_one_address_and_none_for_its_efa_only_interfaces() -> None:
    assert taken_addresses(CLUSTER, BASE.zones[0]) == 4 * 1 + 2 + 1


def test_zone_without_an_offer_gives_an_address_to_the_home_alone() -> None:
    zones = [replace(BASE.zones[0], zone_id="use1-az2")]
    assert [taken_addresses(replace(CLUSTER, home=home), zones[0]) for home in (True, False)] == [1, 0]


def test_head_takes_an_address_of_an_adopted_subnet() -> None:
    adopted = replace(BASE.zones[0], heads=None)
    assert taken_addresses(CLUSTER, adopted) == taken_addresses(CLUSTER, BASE.zones[0]) + 1
