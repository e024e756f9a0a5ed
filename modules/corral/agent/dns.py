"""Publish the nodes' names in the cluster's private zone: one address for each node that has a machine.

`record_changes` is pure. A request carries as many changes as Route 53 accepts, never one node at a time.
Sources: Route 53 API reference, ChangeResourceRecordSets; Route 53 Developer Guide, "Quotas" (requests) and "NS and SOA
records that Route 53 creates for a public hosted zone" (the SOA's fields).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.model.cluster import LOGIN
from corral.model.node_names import number_of, queue_of

TTL_S = 10  # short, because a node's next machine has another address
ELEMENTS_AT_ONCE = 1000  # per request; an UPSERT counts twice
_NODE = re.compile(r"[a-z][a-z0-9-]*-(?:0|[1-9][0-9]{0,4})")
# A resolver caches a missing name for the lesser of the SOA's TTL and of its last field (RFC 2308, 5). Route 53's own
# 900 s would hide a node for a quarter of an hour from a client that queried a moment too early.
_NEGATIVE_TTL_FIELD = 6


class DnsError(AgentError):
    """Route 53 failed to read or change the zone; the call can be repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of the zone. `name`: fully qualified, no trailing dot. `values`: addresses, or the type's data."""

    name: str
    type: str
    ttl_s: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordChange:
    """A record to write (UPSERT), or to delete as it is (DELETE)."""

    action: str
    record: Record


def records(addresses: Mapping[str, str], zone: str) -> tuple[Record, ...]:
    """The records of nodes at these addresses, sorted by queue and number."""
    nodes = sorted(addresses, key=lambda node: (queue_of(node), number_of(node)))
    return tuple(Record(name=f"{node}.{zone}", type="A", ttl_s=TTL_S, values=(addresses[node],)) for node in nodes)


def record_changes(addresses: Mapping[str, str], present: Sequence[Record], zone: str) -> tuple[RecordChange, ...]:
    """Return the changes after which the zone names these nodes and no others.

    Other records - those of head and login nodes, a user's own - are left alone, except for the SOA's negative TTL.
    """
    current = {record.name: record for record in present if record.type == "A"}
    wanted = {record.name: record for record in records(addresses, zone)}
    put = [
        RecordChange(action="UPSERT", record=record) for record in wanted.values() if current.get(record.name) != record
    ]
    gone = [record for name, record in current.items() if name not in wanted and _is_nodes(name, zone)]
    drop = [RecordChange(action="DELETE", record=record) for record in gone]
    return (*drop, *put, *_short_negative_ttl(present, zone))


class Zone:
    """The cluster's zone, by its id and its name. The client retries throttled calls and pending earlier changes."""

    def __init__(self, client: Any, zone_id: str, name: str) -> None:
        self._client = client
        self._id = zone_id
        self._name = name

    def publish(self, addresses: Mapping[str, str]) -> None:
        """Add the names of nodes that were just launched; other names stay. Idempotent. Raises DnsError."""
        self._apply([RecordChange(action="UPSERT", record=record) for record in records(addresses, self._name)])

    def prune(self, addresses: Callable[[], Mapping[str, str]]) -> tuple[RecordChange, ...]:
        """Make the zone name these nodes only, and return the changes. Raises DnsError.

        `addresses` is called after the zone is read, so a node that is published meanwhile is included and stays.
        """
        present = self._present()
        wanted = record_changes(addresses(), present, self._name)
        self._apply(wanted)
        return wanted

    def _present(self) -> tuple[Record, ...]:
        with aws_errors_as(DnsError, f"update the names in zone {self._id}"):
            pages = self._client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=self._id)
            return tuple(_read(held) for page in pages for held in page["ResourceRecordSets"])

    def _apply(self, wanted: Sequence[RecordChange]) -> None:
        for batch in change_batches(wanted):
            with aws_errors_as(DnsError, f"update the names in zone {self._id}"):
                body = {"Changes": [_written(change) for change in batch]}
                self._client.change_resource_record_sets(HostedZoneId=self._id, ChangeBatch=body)


def change_batches(
    wanted: Sequence[RecordChange], at_once: int = ELEMENTS_AT_ONCE
) -> Iterator[tuple[RecordChange, ...]]:
    """Split the changes into batches for one request each."""
    batch: list[RecordChange] = []
    weight = 0
    for change in wanted:
        if weight + _weight(change) > at_once:
            yield tuple(batch)
            batch, weight = [], 0
        batch.append(change)
        weight += _weight(change)
    if batch:
        yield tuple(batch)


def _weight(change: RecordChange) -> int:
    return len(change.record.values) * (2 if change.action == "UPSERT" else 1)


def _is_nodes(name: str, zone: str) -> bool:
    label = name.removesuffix(f".{zone}")
    return bool(_NODE.fullmatch(label)) and queue_of(label) != LOGIN


def _short_negative_ttl(present: Sequence[Record], zone: str) -> Iterator[RecordChange]:
    for record in present:
        if record.type == "SOA" and record.name == zone and record.values:
            fields = record.values[0].split()
            fields[_NEGATIVE_TTL_FIELD:] = [str(TTL_S)]
            short = replace(record, ttl_s=TTL_S, values=(" ".join(fields),))
            if short != record:
                yield RecordChange(action="UPSERT", record=short)


def _read(held: Mapping[str, Any]) -> Record:
    return Record(
        name=str(held["Name"]).rstrip("."),
        type=held["Type"],
        ttl_s=held.get("TTL", 0),
        values=tuple(value["Value"] for value in held.get("ResourceRecords", ())),
    )


def _written(change: RecordChange) -> Mapping[str, Any]:
    record = change.record
    values = [{"Value": value} for value in record.values]
    body = {"Name": record.name, "Type": record.type, "TTL": record.ttl_s, "ResourceRecords": values}
    return {"Action": change.action, "ResourceRecordSet": body}
