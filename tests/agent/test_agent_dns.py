"""The nodes' names: what is changed in a zone, in how many requests; and a zone in the box."""

from __future__ import annotations

from typing import Any

import pytest

from box.vpc_fixtures import Clients
from corral.agent.dns import DnsError, Record, RecordChange, Zone, change_batches, record_changes, records

ZONE = "dev.corral.internal"
SOA = "ns-1.awsdns-01.com awsdns-hostmaster.amazon.com 1 7200 900 1209600"


def record(name: str, address: str = "10.64.1.11", ttl_s: int = 10) -> Record:
    return Record(name=f"{name}.{ZONE}", type="A", ttl_s=ttl_s, values=(address,))


def soa(ttl_s: int, last: int) -> Record:
    return Record(name=ZONE, type="SOA", ttl_s=ttl_s, values=(f"{SOA} {last}",))


def test_a_node_has_one_address_for_ten_seconds() -> None:
    assert records({"train-1": "10.64.1.11"}, ZONE) == (
        Record(name="train-1.dev.corral.internal", type="A", ttl_s=10, values=("10.64.1.11",)),
    )


def test_nodes_are_sorted_by_queue_and_number() -> None:
    found = records({"train-10": "10.64.1.3", "train-9": "10.64.1.2", "cpu-1": "10.64.1.1"}, ZONE)
    assert [one.name.split(".")[0] for one in found] == ["cpu-1", "train-9", "train-10"]


@pytest.mark.parametrize(
    ("addresses", "present", "expected"),
    [
        ({"train-1": "10.64.1.11"}, [record("train-1")], ()),
        ({"train-1": "10.64.1.11"}, [], (RecordChange(action="UPSERT", record=record("train-1")),)),
        (
            {"train-1": "10.64.1.11"},
            [record("train-1", "10.64.1.99")],
            (RecordChange(action="UPSERT", record=record("train-1")),),
        ),
        (
            {"train-1": "10.64.1.11"},
            [record("train-1", ttl_s=300)],
            (RecordChange(action="UPSERT", record=record("train-1")),),
        ),
        ({}, [record("train-1", ttl_s=300)], (RecordChange(action="DELETE", record=record("train-1", ttl_s=300)),)),
        ({}, [record("dev-head"), record("license"), record("a.train-1")], ()),
        ({}, [record("login-1", ttl_s=60)], ()),
        ({}, [Record(name=f"train-1.{ZONE}", type="TXT", ttl_s=10, values=('"mine"',))], ()),
        ({}, [soa(900, 86400)], (RecordChange(action="UPSERT", record=soa(10, 10)),)),
        ({}, [soa(10, 10)], ()),
    ],
    ids=[
        "as it is",
        "new",
        "moved",
        "another time to live",
        "gone: deleted as it stands there",
        "the head, a user's, something below a node",
        "a login node",
        "another type",
        "misses are forgotten soon",
        "misses are forgotten already",
    ],
)
def test_a_zone_names_the_existing_nodes(
    addresses: dict[str, str], present: list[Record], expected: tuple[RecordChange, ...]
) -> None:
    assert record_changes(addresses, present, ZONE) == expected


def test_a_request_has_five_hundred_new_names_at_most() -> None:
    """Route 53 takes 1,000 elements, and counts those of an UPSERT twice."""
    wanted = [RecordChange(action="UPSERT", record=record(f"train-{number}")) for number in range(1200)]
    assert [len(batch) for batch in change_batches(wanted)] == [500, 500, 200]


def test_a_request_has_a_thousand_deletions_at_most() -> None:
    wanted = [RecordChange(action="DELETE", record=record(f"train-{number}")) for number in range(1200)]
    assert [len(batch) for batch in change_batches(wanted)] == [1000, 200]


def test_nothing_to_change_is_no_request() -> None:
    assert list(change_batches([])) == []


@pytest.fixture
def zone_id(aws: Clients) -> str:
    made = aws("route53").create_hosted_zone(Name=ZONE, CallerReference="1")
    return str(made["HostedZone"]["Id"]).rpartition("/")[2]


@pytest.fixture
def zone(aws: Clients, zone_id: str) -> Zone:
    return Zone(aws("route53"), zone_id, ZONE)


def names(aws: Clients, zone_id: str) -> dict[str, str]:
    pages = aws("route53").get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone_id)
    found: list[Any] = [one for page in pages for one in page["ResourceRecordSets"] if one["Type"] == "A"]
    return {one["Name"].split(".")[0]: one["ResourceRecords"][0]["Value"] for one in found}


def test_published_names_are_added_to_the_zone(aws: Clients, zone_id: str, zone: Zone) -> None:
    zone.publish({"train-1": "10.64.1.11"})
    zone.publish({"train-2": "10.64.1.12"})
    assert names(aws, zone_id) == {"train-1": "10.64.1.11", "train-2": "10.64.1.12"}


def test_names_without_a_machine_are_pruned(aws: Clients, zone_id: str, zone: Zone) -> None:
    zone.publish({f"train-{number}": f"10.64.1.{number}" for number in (1, 2, 3)})
    zone.prune(lambda: {"train-2": "10.64.1.77"})
    assert names(aws, zone_id) == {"train-2": "10.64.1.77"}


def test_a_pruned_zone_has_nothing_left_to_prune(zone: Zone) -> None:
    addresses = {f"train-{number}": f"10.65.{number // 250}.{number % 250}" for number in range(1, 701)}
    zone.prune(lambda: addresses)
    assert zone.prune(lambda: addresses) == ()


def test_a_zone_is_read_before_the_addresses(aws: Clients, zone_id: str, zone: Zone) -> None:
    """A name published meanwhile stays."""
    zone.publish({"train-1": "10.64.1.11"})

    def named() -> dict[str, str]:
        zone.publish({"train-2": "10.64.1.12"})
        return {}

    zone.prune(named)
    assert names(aws, zone_id) == {"train-2": "10.64.1.12"}


def test_a_missing_zone_is_named_by_its_id(aws: Clients) -> None:
    with pytest.raises(DnsError, match=r"^cannot update the names in zone Z0: .*NoSuchHostedZone"):
        Zone(aws("route53"), "Z0", ZONE).publish({"train-1": "10.64.1.11"})
