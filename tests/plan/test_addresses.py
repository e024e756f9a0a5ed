"""Addresses that a zone has, and that a cluster may take of them."""

from dataclasses import replace
from typing import Any

import pytest

from corral.model.lustre import LustrePlan
from corral.plan.addresses import free_addresses, lustre_addresses, max_addresses
from worked_example import BASE, CLUSTER


def test_free_are_neither_those_for_heads_nor_those_of_aws() -> None:
    assert free_addresses(BASE.zones[0]) == 8192 - 64 - 1


def test_node_takes_one_address_and_none_for_its_efa_only_interfaces() -> None:
    assert max_addresses(CLUSTER, BASE.zones[0]) == 4 * 1 + 2 + 1


def test_zone_without_an_offer_gives_an_address_to_the_home_alone() -> None:
    zones = [replace(BASE.zones[0], zone_id="use1-az2")]
    assert [max_addresses(replace(CLUSTER, home=home), zones[0]) for home in (True, False)] == [1, 0]


def test_head_takes_an_address_of_an_adopted_subnet() -> None:
    adopted = replace(BASE.zones[0], heads=None)
    assert max_addresses(CLUSTER, adopted) == max_addresses(CLUSTER, BASE.zones[0]) + 1


LUSTRE = LustrePlan(name="s", zone_id="use1-az1", size_gib=1200, deployment="SCRATCH_2", mount="/s", data=())
PERSISTENT = {"deployment": "PERSISTENT_2", "throughput_mbps_per_tib": 250}
# Storage servers and metadata servers. Source: FSx for Lustre User Guide, "IP addresses for file systems".
SERVERS: dict[str, tuple[dict[str, Any], int]] = {
    "smallest": ({}, 1 + 1),
    "one_full_server": ({"size_gib": 2400}, 1 + 1),
    "two_servers": ({"size_gib": 4800}, 2 + 1),
    "forty_servers": ({"size_gib": 96000}, 40 + 1),
    "persistent_1": ({"deployment": "PERSISTENT_1", "throughput_mbps_per_tib": 100, "size_gib": 2400}, 1 + 1),
    "hdd_of_12": (
        {"deployment": "PERSISTENT_1", "disks": "HDD", "throughput_mbps_per_tib": 12, "size_gib": 12000},
        2 + 1,
    ),
    "hdd_of_40": (
        {"deployment": "PERSISTENT_1", "disks": "HDD", "throughput_mbps_per_tib": 40, "size_gib": 3600},
        2 + 1,
    ),
    "persistent_2": ({**PERSISTENT, "size_gib": 19200}, 8 + 1),
    "efa_of_250": ({**PERSISTENT, "size_gib": 38400, "efa": True}, 2 + 1),
    "efa_of_1000": ({**PERSISTENT, "throughput_mbps_per_tib": 1000, "size_gib": 96000, "efa": True}, 20 + 4),
    "metadata_of_one_server": ({**PERSISTENT, "size_gib": 2400, "metadata_iops": 12000}, 1 + 1),
    "metadata_of_three_servers": ({**PERSISTENT, "size_gib": 2400, "metadata_iops": 36000}, 1 + 3),
}


@pytest.mark.parametrize("name", SERVERS)
def test_each_server_of_a_lustre_takes_an_address(name: str) -> None:
    changes, addresses = SERVERS[name]
    assert lustre_addresses(replace(LUSTRE, **changes)) == addresses
