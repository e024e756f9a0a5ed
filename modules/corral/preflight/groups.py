"""Whether security groups that are there already still let through what their cluster needs.

Corral makes every group and a spec adopts none, so that only what somebody changed since an earlier up can be wrong:
EFA without its rule fails without a word, and a plain `pulumi up` does not look for rules that are gone.
Sources: EC2 User Guide, "Get started with EFA" (all traffic to and from itself); EFS User Guide, "Using VPC security
groups"; FSx for Lustre User Guide, "File system access control with Amazon VPC".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.inventory.ec2 import tags_of
from corral.inventory.things import BASE_TAG, CLUSTER_TAG, KEEP_TAG
from corral.preflight.answers import Answers
from corral.preflight.findings import Finding, Teller, Wanted

_TELL = Teller(check="groups")
_ALL = "-1"
_NFS = ((2049, 2049),)
_LUSTRE = ((988, 988), (1018, 1023))
_HOME, _KEPT_LUSTRE = "home", "lustre-group"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A rule. `peer`: a group's id, or an address range. `protocol`: -1 is all of them, and then all ports."""

    peer: str
    protocol: str
    first: int
    last: int
    is_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A security group. `is_of`: the cluster's machines, the base's `home`, or its `lustre-group`."""

    id: str
    is_of: str
    openings: tuple[Opening, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """TCP ports, first and last, or all traffic where there are none, from or to a peer."""

    peer: str
    ports: tuple[tuple[int, int], ...]
    is_out: bool


def ask(answers: Answers, wanted: Wanted) -> tuple[Group, ...]:
    """The groups of this cluster and its base, by one request for each tag."""
    cluster, base = wanted.cluster.name, wanted.base.name
    found = [*_tagged(answers, CLUSTER_TAG, cluster), *_tagged(answers, BASE_TAG, base)]
    once = {str(one["GroupId"]): one for one in found}
    groups = ((one, _purpose(tags_of(one.get("Tags", ())), cluster)) for one in once.values())
    return tuple(_group(one, is_of) for one, is_of in groups if is_of)


def judge(wanted: Wanted, groups: Sequence[Group]) -> Iterator[Finding]:
    """The machines' group, then those that they must reach."""
    machines = [group for group in groups if group.is_of == wanted.cluster.name]
    if not groups:
        yield _TELL.ok("security groups", "made with the base and the cluster, open to themselves")
    for group in groups:
        missing = [need for need in _needs(group, machines, wanted) if not _lets(group, need)]
        for need in missing:
            yield _TELL.fail(_about(group), _text(group, need), _fix(group, need))
        if not missing:
            yield _TELL.ok(_about(group), f"{group.id} lets through what it must")


def _needs(group: Group, machines: Sequence[Group], wanted: Wanted) -> Iterator[Need]:
    if group.is_of == _HOME:
        yield from (Need(peer=one.id, ports=_NFS, is_out=False) for one in machines)
        return
    # The machines are among themselves in one group, with Lustre of the cluster's own; what is kept has another one.
    peers = [group, *machines] if group.is_of == _KEPT_LUSTRE else [group]
    efa = any(system.efa for system in wanted.base.lustre)
    ports = () if group not in machines and efa else _LUSTRE
    for peer in peers:
        for is_out in (False, True):
            yield Need(peer=peer.id, ports=() if group in machines else ports, is_out=is_out)


def _lets(group: Group, need: Need) -> bool:
    """All traffic counts by reference alone, since EFA asks so; ports also count to any range of addresses."""
    openings = [one for one in group.openings if one.is_out == need.is_out]
    if not need.ports:
        return any(one.peer == need.peer and one.protocol == _ALL for one in openings)
    near = [one for one in openings if one.peer == need.peer or "/" in one.peer]
    return all(
        any(one.protocol == _ALL or (one.protocol == "tcp" and one.first <= low and high <= one.last) for one in near)
        for low, high in need.ports
    )


def _about(group: Group) -> str:
    names = {_HOME: "group of the home", _KEPT_LUSTRE: "group of Lustre that is kept"}
    return names.get(group.is_of, f"group of {group.is_of}")


def _text(group: Group, need: Need) -> str:
    what = ", ".join(f"{low}-{high}" if low != high else str(low) for low, high in need.ports)
    peer = "itself" if need.peer == group.id else need.peer
    traffic = f"tcp {what}" if need.ports else "all traffic by reference, as EFA wants it,"
    return f"{group.id} does not let {traffic} {'out to' if need.is_out else 'in from'} {peer}"


def _fix(group: Group, need: Need) -> str:
    verb = "egress" if need.is_out else "ingress"
    rules = [f"IpProtocol=tcp,FromPort={low},ToPort={high}" for low, high in need.ports] or [f"IpProtocol={_ALL}"]
    pairs = " ".join(f"'{rule},UserIdGroupPairs=[{{GroupId={need.peer}}}]'" for rule in rules)
    by_hand = f"aws ec2 authorize-security-group-{verb} --group-id {group.id} --ip-permissions {pairs}"
    return f"`corral up`, where one was cut off; else `{by_hand}`"


def _tagged(answers: Answers, tag: str, value: str) -> Sequence[Mapping[str, Any]]:
    wanted = [{"Name": f"tag:{tag}", "Values": [value]}]
    return answers.every("ec2", "describe_security_groups", "SecurityGroups", Filters=wanted)


def _purpose(tags: Mapping[str, str], cluster: str) -> str:
    """Whose group it is; "" for that of another cluster, or of a base's endpoints."""
    if CLUSTER_TAG in tags:
        return cluster if tags[CLUSTER_TAG] == cluster else ""
    if tags.get(KEEP_TAG) == _KEPT_LUSTRE:
        return _KEPT_LUSTRE
    return _HOME if tags.get("Name", "").endswith("-home") else ""


def _group(one: Mapping[str, Any], is_of: str) -> Group:
    sides = (("IpPermissions", False), ("IpPermissionsEgress", True))
    openings = (rule for key, is_out in sides for held in one.get(key, ()) for rule in _openings(held, is_out=is_out))
    return Group(id=str(one["GroupId"]), is_of=is_of, openings=tuple(openings))


def _openings(held: Mapping[str, Any], *, is_out: bool) -> Iterator[Opening]:
    peers = [str(pair["GroupId"]) for pair in held.get("UserIdGroupPairs", ()) if "GroupId" in pair]
    peers += [str(one["CidrIp"]) for one in held.get("IpRanges", ())]
    for peer in peers:
        yield Opening(
            peer=peer,
            protocol=str(held["IpProtocol"]),
            first=int(held.get("FromPort", -1)),
            last=int(held.get("ToPort", -1)),
            is_out=is_out,
        )
