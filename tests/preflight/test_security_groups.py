"""Security groups that are there already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from finding_lines import bad, dev, finding_lines

from corral.preflight.aws_query_cache import AwsQueryCache
from corral.preflight.preflight_findings import PreflightRequest
from corral.preflight.security_groups import GroupRule, SecurityGroup, evaluate, fetch


def opening(peer: str, *, is_out: bool = False, ports: tuple[int, int] | None = None) -> GroupRule:
    first, last = ports or (-1, -1)
    return GroupRule(peer=peer, protocol="tcp" if ports else "-1", first=first, last=last, is_out=is_out)


def both(peer: str, *ports: tuple[int, int]) -> tuple[GroupRule, ...]:
    return tuple(opening(peer, is_out=is_out, ports=one) for is_out in (False, True) for one in (ports or (None,)))


MACHINES = SecurityGroup(id="sg-m", owner="dev", rules=both("sg-m"))
HOME = SecurityGroup(id="sg-h", owner="home", rules=(opening("sg-m", ports=(2049, 2049)),))
LUSTRE = SecurityGroup(
    id="sg-l",
    owner="lustre-group",
    rules=(*both("sg-l", (988, 988), (1018, 1023)), *both("10.64.0.0/16", (988, 1023))),
)


def found(*groups: SecurityGroup, request: PreflightRequest | None = None) -> list[str]:
    return bad(evaluate(request or dev(), groups))


def test_before_the_first_deployment_they_are_created() -> None:
    assert finding_lines(evaluate(dev(), ())) == ["ok security groups: created with the base and the cluster"]


def test_groups_with_their_rules_are_ok() -> None:
    assert found(MACHINES, HOME, LUSTRE) == []


@pytest.mark.parametrize(
    ("is_out", "way"),
    [(False, "in from"), (True, "out to")],
)
def test_machines_without_the_rule_to_themselves_fail(is_out: bool, way: str) -> None:
    rules = tuple(one for one in MACHINES.rules if one.is_out != is_out)
    assert found(replace(MACHINES, rules=rules)) == [
        f"fail group of dev: sg-m does not allow all traffic by reference, which EFA requires, {way} itself"
    ]


def test_all_addresses_are_not_the_group_itself() -> None:
    wide = replace(MACHINES, rules=both("0.0.0.0/0"))
    assert len(found(wide)) == 2


def test_a_home_that_the_machines_do_not_reach_fails() -> None:
    assert found(MACHINES, replace(HOME, rules=())) == [
        "fail group of the home: sg-h does not allow tcp 2049 in from sg-m"
    ]


def test_a_home_without_machines_needs_no_rule() -> None:
    assert found(replace(HOME, rules=())) == []


def test_lustre_without_its_ports_fails() -> None:
    short = replace(LUSTRE, rules=both("sg-l", (988, 988)))
    assert found(short) == [
        "fail group of retained Lustre: sg-l does not allow tcp 988, 1018-1023 in from itself",
        "fail group of retained Lustre: sg-l does not allow tcp 988, 1018-1023 out to itself",
    ]


def test_lustre_with_efa_needs_all_traffic() -> None:
    (scratch,) = dev().cluster.lustre
    base = replace(dev().base, lustre=(replace(scratch, retained=True, efa=True),))
    request = replace(dev(), base=base)
    assert len(found(LUSTRE, request=request)) == 2


def test_a_missing_rule_names_the_command_that_restores_it() -> None:
    (finding,) = evaluate(dev(), [replace(MACHINES, rules=(opening("sg-m"),))])
    assert finding.fix == (
        "run `corral up` if one was interrupted, otherwise `aws ec2 authorize-security-group-egress --group-id sg-m"
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
    assert [(one.id, one.owner) for one in fetch(AwsQueryCache(Ec2()), dev())] == [
        ("sg-1", "dev"),
        ("sg-3", "home"),
        ("sg-5", "lustre-group"),
    ]


def test_a_rule_is_read_with_its_peer_and_way() -> None:
    assert fetch(AwsQueryCache(Ec2()), dev())[0].rules == (opening("sg-1"),)
