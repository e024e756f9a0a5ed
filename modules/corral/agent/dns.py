"""The nodes' names in the cluster's private zone: an address for each node that has a machine, and no name else.

`changes` is pure. Everything is a batch, as large as Route 53 takes: no call is about one node.
Sources: Route 53 API reference, ChangeResourceRecordSets; Route 53 Developer Guide, "Quotas" (requests) and "NS and SOA
records that Route 53 creates for a public hosted zone" (the SOA's fields).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from corral.agent.errors import AgentError
from corral.model.node_names import number_of, queue_of

TTL_S = 10  # a node's next machine has another address; a resolver remembers the last one for no longer than this
ELEMENTS_AT_ONCE = 1000  # of one request; an UPSERT counts twice
_NODE = re.compile(r"[a-z][a-z0-9-]*-(?:0|[1-9][0-9]{0,4})")
# What a resolver keeps of a name that is missing is the lesser of the SOA's TTL and of its last field (RFC 2308, 5).
# Route 53's own 900 s would hide a node for a quarter of an hour from whoever asked a moment too early.
_MISS_FIELD = 6


class DnsError(AgentError):
    """Route 53 does not change the zone as it is asked to; what was asked for can be asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of the zone. `name`: in full, without the last dot. `values`: addresses, or what the type has."""

    name: str
    type: str
    ttl_s: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A record that is to be as it is here (UPSERT), or to go exactly as it is (DELETE)."""

    action: str
    record: Record


def records(addresses: Mapping[str, str], zone: str) -> tuple[Record, ...]:
    """The records of nodes at these addresses, sorted by queue and number."""
    nodes = sorted(addresses, key=lambda node: (queue_of(node), number_of(node)))
    return tuple(Record(name=f"{node}.{zone}", type="A", ttl_s=TTL_S, values=(addresses[node],)) for node in nodes)


def changes(addresses: Mapping[str, str], present: Sequence[Record], zone: str) -> tuple[Change, ...]:
    """What makes the zone name these nodes and no others; nothing for a zone that does.

    Records that are no node's - the head's, a user's own - are left alone, but for how long a miss is remembered.
    """
    there = {record.name: record for record in present if record.type == "A"}
    wanted = {record.name: record for record in records(addresses, zone)}
    put = [Change(action="UPSERT", record=record) for record in wanted.values() if there.get(record.name) != record]
    gone = [record for name, record in there.items() if name not in wanted and _is_nodes(name, zone)]
    drop = [Change(action="DELETE", record=record) for record in gone]
    return (*drop, *put, *_short_misses(present, zone))


class Zone:
    """The cluster's zone, by its id and its name, as a Route 53 client reaches it."""

    def __init__(self, client: Any, zone_id: str, name: str) -> None:
        self._client = client
        self._id = zone_id
        self._name = name

    def publish(self, addresses: Mapping[str, str]) -> None:
        """Names nodes that were just launched. It can be repeated; other nodes' names stay. Raises DnsError."""
        self._apply([Change(action="UPSERT", record=record) for record in records(addresses, self._name)])

    def prune(self, addresses: Callable[[], Mapping[str, str]]) -> tuple[Change, ...]:
        """What was changed so that the zone names these nodes alone: all that have a machine. Raises DnsError.

        The nodes are asked for when the zone has been read: what is named meanwhile is among them, and stays.
        """
        present = self._present()
        wanted = changes(addresses(), present, self._name)
        self._apply(wanted)
        return wanted

    def _present(self) -> tuple[Record, ...]:
        with _explained(self._id):
            pages = self._client.get_paginator("list_resource_record_sets").paginate(HostedZoneId=self._id)
            return tuple(_read(held) for page in pages for held in page["ResourceRecordSets"])

    def _apply(self, wanted: Sequence[Change]) -> None:
        for batch in batches(wanted):
            with _explained(self._id):
                told = {"Changes": [_written(change) for change in batch]}
                self._client.change_resource_record_sets(HostedZoneId=self._id, ChangeBatch=told)


def batches(wanted: Sequence[Change], at_once: int = ELEMENTS_AT_ONCE) -> Iterator[tuple[Change, ...]]:
    """What one request each can do."""
    batch: list[Change] = []
    weight = 0
    for change in wanted:
        if weight + _weight(change) > at_once:
            yield tuple(batch)
            batch, weight = [], 0
        batch.append(change)
        weight += _weight(change)
    if batch:
        yield tuple(batch)


def _weight(change: Change) -> int:
    return len(change.record.values) * (2 if change.action == "UPSERT" else 1)


def _is_nodes(name: str, zone: str) -> bool:
    return bool(_NODE.fullmatch(name.removesuffix(f".{zone}")))


def _short_misses(present: Sequence[Record], zone: str) -> Iterator[Change]:
    for record in present:
        if record.type == "SOA" and record.name == zone and record.values:
            fields = record.values[0].split()
            fields[_MISS_FIELD:] = [str(TTL_S)]
            short = replace(record, ttl_s=TTL_S, values=(" ".join(fields),))
            if short != record:
                yield Change(action="UPSERT", record=short)


def _read(held: Mapping[str, Any]) -> Record:
    return Record(
        name=str(held["Name"]).rstrip("."),
        type=held["Type"],
        ttl_s=held.get("TTL", 0),
        values=tuple(value["Value"] for value in held.get("ResourceRecords", ())),
    )


def _written(change: Change) -> Mapping[str, Any]:
    record = change.record
    values = [{"Value": value} for value in record.values]
    told = {"Name": record.name, "Type": record.type, "TTL": record.ttl_s, "ResourceRecords": values}
    return {"Action": change.action, "ResourceRecordSet": told}


@contextmanager
def _explained(zone_id: str) -> Iterator[None]:
    """boto3 has tried several times where Route 53 was throttled or at work on an earlier change."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise DnsError(f"the names in zone {zone_id} cannot be brought up to date: {error}") from error
