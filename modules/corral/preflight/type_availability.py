"""Whether EC2 offers each instance type in its zones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from corral.model.cluster import ClusterPlan
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="types")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityFacts:
    """`offered`: the zones of each type, by id and by name. `zones`: all zones of the account, by id and by name."""

    zones: frozenset[str]
    offered: Mapping[str, frozenset[str]] = field(default_factory=dict)


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> AvailabilityFacts:
    """One request for the zones, one for all types."""
    zones = aws.list_all("ec2", "describe_availability_zones", "AvailabilityZones")
    ids = {str(one["ZoneName"]): str(one["ZoneId"]) for one in zones if one.get("State", "available") == "available"}
    offerings = aws.list_all(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone-id",
        Filters=[{"Name": "instance-type", "Values": _types(request.cluster)}],
    )
    names = {id: name for name, id in ids.items()}
    offered: dict[str, set[str]] = {}
    for one in offerings:
        id = str(one["Location"])
        offered.setdefault(str(one["InstanceType"]), set()).update({id, names.get(id, id)})
    return AvailabilityFacts(
        zones=frozenset({*ids, *ids.values()}),
        offered={name: frozenset(found) for name, found in offered.items()},
    )


def evaluate(request: PreflightRequest, facts: AvailabilityFacts) -> Iterator[PreflightFinding]:
    """The head, login nodes, then each queue."""
    cluster = request.cluster
    head = cluster.head
    yield from _findings("head", head.instance_type, [head.zone_id], facts, "head.instance_type, or head.zone")
    if login := cluster.login:
        where = list(dict.fromkeys(login.zones.values()))
        yield from _findings("login nodes", login.instance_type, where, facts, "login.instance_type, or login.zones")
    for queue in cluster.queues:
        zones = list(dict.fromkeys(offer.zone_id for offer in queue.offers))
        yield from _findings(f"queue {queue.name}", queue.instance_type, zones, facts, "zones of its capacity")


def _findings(
    about: str, instance_type: str, zones: Collection[str], facts: AvailabilityFacts, field: str
) -> Iterator[PreflightFinding]:
    offered = facts.offered.get(instance_type, frozenset())
    if unknown := [zone for zone in zones if zone not in facts.zones]:
        yield _FINDINGS.fail(about, f"{', '.join(unknown)}: not a zone of this account", f"change the {field}")
    missing = [zone for zone in zones if zone in facts.zones and zone not in offered]
    ids = ", ".join(sorted(zone for zone in offered if "-az" in zone))
    if missing and len(missing) == len(zones):
        where = f"it is in {ids}" if ids else "`corral new --region` shows which regions offer it"
        yield _FINDINGS.fail(
            about, f"{instance_type} is not offered in {', '.join(missing)}", f"change the {field}: {where}"
        )
    elif missing:
        text = f"{instance_type} is not offered in {', '.join(missing)}; these offers only waste time"
        yield _FINDINGS.warn(about, text, f"remove them from the {field}: it is in {ids}")
    elif not unknown:
        yield _FINDINGS.ok(about, f"{instance_type} is offered in {', '.join(zones)}")


def _types(cluster: ClusterPlan) -> list[str]:
    login = {cluster.login.instance_type} if cluster.login else set()
    return sorted({cluster.head.instance_type, *login, *(queue.instance_type for queue in cluster.queues)})
