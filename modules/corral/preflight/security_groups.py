"""Whether existing security groups still have the rules that their cluster needs.

corral creates every group, so only a later change by hand can break one. EFA without its rule fails silently, and a
plain `pulumi up` does not detect missing rules.
Sources: EC2 User Guide, "Get started with EFA" (all traffic to and from itself); EFS User Guide, "Using VPC security
groups"; FSx for Lustre User Guide, "File system access control with Amazon VPC".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.inventory.ec2_resources import tags_of
from corral.model.tags import BASE_TAG, CLUSTER_TAG, KEEP_LUSTRE_GROUP, KEEP_TAG, tag_filter
from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import FindingBuilder, PreflightFinding, PreflightRequest

_FINDINGS = FindingBuilder(check="groups")
_ALL = "-1"
_NFS = ((2049, 2049),)
_LUSTRE = ((988, 988), (1018, 1023))
_HOME = "home"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRule:
    """A rule. `peer`: a group's id, or an address range. `protocol`: -1 means all protocols and ports."""

    peer: str
    protocol: str
    first: int
    last: int
    is_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityGroup:
    """A security group. `owner`: the cluster's machines, the base's `home`, or its `lustre-group`."""

    id: str
    owner: str
    rules: tuple[GroupRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTraffic:
    """Required traffic from or to a peer: TCP port ranges, or all traffic if there are none."""

    peer: str
    ports: tuple[tuple[int, int], ...]
    is_out: bool


def fetch(aws: AwsQueryCache, request: PreflightRequest) -> tuple[SecurityGroup, ...]:
    """The groups of this cluster and its base; one request for each tag."""
    cluster, base = request.cluster.name, request.base.name
    found = [*_tagged(aws, CLUSTER_TAG, cluster), *_tagged(aws, BASE_TAG, base)]
    once = {str(one["GroupId"]): one for one in found}
    groups = ((one, _purpose(tags_of(one.get("Tags", ())), cluster)) for one in once.values())
    return tuple(_group(one, owner) for one, owner in groups if owner)


def evaluate(request: PreflightRequest, groups: Sequence[SecurityGroup]) -> Iterator[PreflightFinding]:
    """The findings for the cluster's group, then for those that its machines must reach."""
    machines = [group for group in groups if group.owner == request.cluster.name]
    if not groups:
        yield _FINDINGS.ok("security groups", "created with the base and the cluster")
    for group in groups:
        missing = [need for need in _needs(group, machines, request) if not _lets(group, need)]
        for need in missing:
            yield _FINDINGS.fail(_about(group), _text(group, need), _fix(group, need))
        if not missing:
            yield _FINDINGS.ok(_about(group), f"{group.id} has all required rules")


def _needs(
    group: SecurityGroup, machines: Sequence[SecurityGroup], request: PreflightRequest
) -> Iterator[RequiredTraffic]:
    if group.owner == _HOME:
        yield from (RequiredTraffic(peer=one.id, ports=_NFS, is_out=False) for one in machines)
        return
    # Machines and the cluster's own Lustre share one group; retained Lustre has another.
    peers = [group, *machines] if group.owner == KEEP_LUSTRE_GROUP else [group]
    efa = any(system.efa for system in request.base.lustre)
    ports = () if group not in machines and efa else _LUSTRE
    for peer in peers:
        for is_out in (False, True):
            yield RequiredTraffic(peer=peer.id, ports=() if group in machines else ports, is_out=is_out)


def _lets(group: SecurityGroup, need: RequiredTraffic) -> bool:
    """EFA requires all traffic by group reference; port rules may also name address ranges."""
    rules = [one for one in group.rules if one.is_out == need.is_out]
    if not need.ports:
        return any(one.peer == need.peer and one.protocol == _ALL for one in rules)
    near = [one for one in rules if one.peer == need.peer or "/" in one.peer]
    return all(
        any(one.protocol == _ALL or (one.protocol == "tcp" and one.first <= low and high <= one.last) for one in near)
        for low, high in need.ports
    )


def _about(group: SecurityGroup) -> str:
    names = {_HOME: "group of the home", KEEP_LUSTRE_GROUP: "group of retained Lustre"}
    return names.get(group.owner, f"group of {group.owner}")


def _text(group: SecurityGroup, need: RequiredTraffic) -> str:
    what = ", ".join(f"{low}-{high}" if low != high else str(low) for low, high in need.ports)
    peer = "itself" if need.peer == group.id else need.peer
    traffic = f"tcp {what}" if need.ports else "all traffic by reference, which EFA requires,"
    return f"{group.id} does not allow {traffic} {'out to' if need.is_out else 'in from'} {peer}"


def _fix(group: SecurityGroup, need: RequiredTraffic) -> str:
    verb = "egress" if need.is_out else "ingress"
    rules = [f"IpProtocol=tcp,FromPort={low},ToPort={high}" for low, high in need.ports] or [f"IpProtocol={_ALL}"]
    pairs = " ".join(f"'{rule},UserIdGroupPairs=[{{GroupId={need.peer}}}]'" for rule in rules)
    by_hand = f"aws ec2 authorize-security-group-{verb} --group-id {group.id} --ip-permissions {pairs}"
    return f"run `corral up` if one was interrupted, otherwise `{by_hand}`"


def _tagged(aws: AwsQueryCache, tag: str, value: str) -> Sequence[Mapping[str, Any]]:
    return aws.list_all("ec2", "describe_security_groups", "SecurityGroups", Filters=[tag_filter(tag, value)])


def _purpose(tags: Mapping[str, str], cluster: str) -> str:
    """Whose group it is; "" for another cluster's or a base's endpoints."""
    if CLUSTER_TAG in tags:
        return cluster if tags[CLUSTER_TAG] == cluster else ""
    if tags.get(KEEP_TAG) == KEEP_LUSTRE_GROUP:
        return KEEP_LUSTRE_GROUP
    return _HOME if tags.get("Name", "").endswith("-home") else ""


def _group(one: Mapping[str, Any], owner: str) -> SecurityGroup:
    sides = (("IpPermissions", False), ("IpPermissionsEgress", True))
    rules = (rule for key, is_out in sides for held in one.get(key, ()) for rule in _openings(held, is_out=is_out))
    return SecurityGroup(id=str(one["GroupId"]), owner=owner, rules=tuple(rules))


def _openings(held: Mapping[str, Any], *, is_out: bool) -> Iterator[GroupRule]:
    peers = [str(pair["GroupId"]) for pair in held.get("UserIdGroupPairs", ()) if "GroupId" in pair]
    peers += [str(one["CidrIp"]) for one in held.get("IpRanges", ())]
    for peer in peers:
        yield GroupRule(
            peer=peer,
            protocol=str(held["IpProtocol"]),
            first=int(held.get("FromPort", -1)),
            last=int(held.get("ToPort", -1)),
            is_out=is_out,
        )
