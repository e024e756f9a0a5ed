"""Whether each instance type is offered in the zones where it shall run, by what EC2 says today."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from corral.model.cluster import ClusterPlan
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="types")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The zones of each type, by id and by the account's name. `zones`: all that the account may use."""

    zones: frozenset[str]
    offered: Mapping[str, frozenset[str]] = field(default_factory=dict)


def ask(answers: Answers, wanted: Wanted) -> Facts:
    """One request for the zones, one for all types."""
    zones = answers.every("ec2", "describe_availability_zones", "AvailabilityZones")
    ids = {str(one["ZoneName"]): str(one["ZoneId"]) for one in zones if one.get("State", "available") == "available"}
    places = answers.every(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone-id",
        Filters=[{"Name": "instance-type", "Values": _types(wanted.cluster)}],
    )
    names = {id: name for name, id in ids.items()}
    offered: dict[str, set[str]] = {}
    for one in places:
        id = str(one["Location"])
        offered.setdefault(str(one["InstanceType"]), set()).update({id, names.get(id, id)})
    return Facts(
        zones=frozenset({*ids, *ids.values()}),
        offered={name: frozenset(found) for name, found in offered.items()},
    )


def judge(wanted: Wanted, facts: Facts) -> Iterator[Finding]:
    """The head, then each queue."""
    cluster = wanted.cluster
    head = cluster.head
    yield from _judged("head", head.instance_type, [head.zone_id], facts, "head.instance_type, or head.zone")
    for queue in cluster.queues:
        zones = list(dict.fromkeys(offer.zone_id for offer in queue.offers))
        yield from _judged(f"queue {queue.name}", queue.instance_type, zones, facts, "zones of its capacity")


def _judged(about: str, instance_type: str, zones: Collection[str], facts: Facts, field: str) -> Iterator[Finding]:
    offered = facts.offered.get(instance_type, frozenset())
    if unknown := [zone for zone in zones if zone not in facts.zones]:
        yield _TELL.fail(about, f"{', '.join(unknown)}: no zone that this account may use", f"change the {field}")
    missing = [zone for zone in zones if zone in facts.zones and zone not in offered]
    ids = ", ".join(sorted(zone for zone in offered if "-az" in zone))
    if missing and len(missing) == len(zones):
        where = f"it is in {ids}" if ids else "another region has it: `corral new --region` says which"
        yield _TELL.fail(
            about, f"{instance_type} is not offered in {', '.join(missing)}", f"change the {field}: {where}"
        )
    elif missing:
        text = f"{instance_type} is not offered in {', '.join(missing)}, and these offers only cost time"
        yield _TELL.warn(about, text, f"take them out of the {field}: it is in {ids}")
    elif not unknown:
        yield _TELL.ok(about, f"{instance_type} is offered in {', '.join(zones)}")


def _types(cluster: ClusterPlan) -> list[str]:
    return sorted({cluster.head.instance_type, *(queue.instance_type for queue in cluster.queues)})
