"""Security groups that are there already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from judging import bad, dev, said

from corral.preflight.answers import Answers
from corral.preflight.findings import Wanted
from corral.preflight.groups import Group, Opening, ask, judge


def opening(peer: str, *, is_out: bool = False, ports: tuple[int, int] | None = None) -> Opening:
    first, last = ports or (-1, -1)
    return Opening(peer=peer, protocol="tcp" if ports else "-1", first=first, last=last, is_out=is_out)


def both(peer: str, *ports: tuple[int, int]) -> tuple[Opening, ...]:
    return tuple(opening(peer, is_out=is_out, ports=one) for is_out in (False, True) for one in (ports or (None,)))


MACHINES = Group(id="sg-m", is_of="dev", openings=both("sg-m"))
HOME = Group(id="sg-h", is_of="home", openings=(opening("sg-m", ports=(2049, 2049)),))
LUSTRE = Group(
    id="sg-l",
    is_of="lustre-group",
    openings=(*both("sg-l", (988, 988), (1018, 1023)), *both("10.64.0.0/16", (988, 1023))),
)


def found(*groups: Group, wanted: Wanted | None = None) -> list[str]:
    return bad(judge(wanted or dev(), groups))


def test_before_the_first_up_they_are_made() -> None:
    assert said(judge(dev(), ())) == ["ok security groups: made with the base and the cluster, open to themselves"]


def test_groups_with_their_rules_are_ok() -> None:
    assert found(MACHINES, HOME, LUSTRE) == []


@pytest.mark.parametrize(
    ("is_out", "way"),
    [(False, "in from"), (True, "out to")],
)
def test_machines_without_the_rule_to_themselves_fail(is_out: bool, way: str) -> None:
    rules = tuple(one for one in MACHINES.openings if one.is_out != is_out)
    assert found(replace(MACHINES, openings=rules)) == [
        f"fail group of dev: sg-m does not let all traffic by reference, as EFA wants it, {way} itself"
    ]


def test_all_addresses_are_not_the_group_itself() -> None:
    wide = replace(MACHINES, openings=both("0.0.0.0/0"))
    assert len(found(wide)) == 2


def test_a_home_that_the_machines_do_not_reach_fails() -> None:
    assert found(MACHINES, replace(HOME, openings=())) == [
        "fail group of the home: sg-h does not let tcp 2049 in from sg-m"
    ]


def test_of_a_home_without_machines_nothing_is_wanted() -> None:
    assert found(replace(HOME, openings=())) == []


def test_lustre_without_its_ports_fails() -> None:
    short = replace(LUSTRE, openings=both("sg-l", (988, 988)))
    assert found(short) == [
        "fail group of Lustre that is kept: sg-l does not let tcp 988, 1018-1023 in from itself",
        "fail group of Lustre that is kept: sg-l does not let tcp 988, 1018-1023 out to itself",
    ]


def test_lustre_with_efa_needs_all_traffic() -> None:
    (scratch,) = dev().cluster.lustre
    base = replace(dev().base, lustre=(replace(scratch, kept=True, efa=True),))
    wanted = replace(dev(), base=base)
    assert len(found(LUSTRE, wanted=wanted)) == 2


def test_what_would_put_a_rule_back_is_told() -> None:
    (finding,) = judge(dev(), [replace(MACHINES, openings=(opening("sg-m"),))])
    assert finding.fix == (
        "`corral up`, where one was cut off; else `aws ec2 authorize-security-group-egress --group-id sg-m"
        " --ip-permissions 'IpProtocol=-1,UserIdGroupPairs=[{GroupId=sg-m}]'`"
    )


class Ec2:
    """An account with a group of each kind, all found by the base's tag."""

    def client(self, service: str) -> Ec2:
        return self

    def can_paginate(self, action: str) -> bool:
        return False

    def describe_security_groups(self, **_: Any) -> dict[str, Any]:
        def group(id: str, **tags: str) -> dict[str, Any]:
            pairs = [{"Key": key.replace("__", ":"), "Value": value} for key, value in tags.items()]
            rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": id}]}
            return {"GroupId": id, "Tags": pairs, "IpPermissions": [rule]}

        groups = [
            group("sg-1", corral__cluster="dev"),
            group("sg-2", corral__cluster="other"),
            group("sg-3", Name="corral-dev-home"),
            group("sg-4", Name="corral-dev-endpoints"),
            group("sg-5", corral__keep="lustre-group"),
        ]
        return {"SecurityGroups": groups}


def test_groups_of_other_clusters_and_of_endpoints_are_left_out() -> None:
    assert [(one.id, one.is_of) for one in ask(Answers(Ec2()), dev())] == [
        ("sg-1", "dev"),
        ("sg-3", "home"),
        ("sg-5", "lustre-group"),
    ]


def test_a_rule_is_read_with_its_peer_and_way() -> None:
    assert ask(Answers(Ec2()), dev())[0].openings == (opening("sg-1"),)
