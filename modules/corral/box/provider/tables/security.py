"""Security groups and their rules; a group allows nothing that the program does not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corral.box.provider.cloud import Cloud
from corral.box.provider.problems import absence
from corral.box.provider.resource import Change, Resource, State
from corral.box.provider.shapes import flag, text, whole
from corral.box.provider.tables.ec2 import ended, only, retag, tagged
from corral.box.provider.translate import record, request, tag_map

ALL_PROTOCOLS = "-1"
MADE_BY = "Managed by Pulumi"
LET_ALL_OUT = {"IpProtocol": ALL_PROTOCOLS, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}

# --- groups


def _create_group(cloud: Cloud, inputs: State) -> str:
    """A group without the rule that lets everything out: what it allows is what the program says."""
    asked = request(GROUP.props, {"description": MADE_BY, **inputs}, ("name", "vpcId", "description"))
    id = str(cloud.ec2.create_security_group(**asked, **tagged("security-group", inputs))["GroupId"])
    cloud.ec2.revoke_security_group_egress(GroupId=id, IpPermissions=[LET_ALL_OUT])
    return id


def _read_group(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidGroup.NotFound"):
        group = only(cloud.ec2.describe_security_groups(GroupIds=[id])["SecurityGroups"], id)
    return {
        **record(GROUP.state, group),
        "arn": cloud.arn("ec2", f"security-group/{id}"),
        "tagsAll": tag_map(group.get("Tags")),
    }


def _delete_group(cloud: Cloud, id: str, state: State) -> None:
    ended(cloud, lambda: cloud.ec2.delete_security_group(GroupId=id), id, "InvalidGroup.NotFound")


GROUP = Resource(
    token="aws:ec2/securityGroup:SecurityGroup",
    props={
        "name": text(replaces=True, aws="GroupName"),
        "description": text(replaces=True, default=MADE_BY),
        "vpcId": text(replaces=True, computed=True),
        "revokeRulesOnDelete": flag(kept=True, default=False),
    },
    outputs={"arn": text(), "ownerId": text()},
    create=_create_group,
    read=_read_group,
    delete=_delete_group,
    retag=retag,
    autonamed="name",
)

# --- rules


def _permission(inputs: State) -> dict[str, Any]:
    described = {"Description": inputs["description"]} if inputs.get("description") else {}
    permission: dict[str, Any] = {"IpProtocol": inputs["ipProtocol"]}
    permission |= request(RULE_PROPS, inputs, ("fromPort", "toPort"))
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **described}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **described}]
    if inputs.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": inputs["prefixListId"], **described}]
    if inputs.get("referencedSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"], **described}]
    return permission


def _creator(way: str) -> Callable[[Cloud, State], str]:
    def create(cloud: Cloud, inputs: State) -> str:
        authorize = getattr(cloud.ec2, f"authorize_security_group_{way}")
        asked = {"GroupId": inputs["securityGroupId"], "IpPermissions": [_permission(inputs)]}
        made = authorize(**asked, **tagged("security-group-rule", inputs))
        return str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    return create


def _read_rule(cloud: Cloud, id: str, known: State) -> State:
    with absence("InvalidSecurityGroupRuleId.NotFound"):
        found = cloud.ec2.describe_security_group_rules(SecurityGroupRuleIds=[id])["SecurityGroupRules"]
    rule = only(found, id)
    ports = () if rule["IpProtocol"] == ALL_PROTOCOLS else ("fromPort", "toPort")
    return {
        **{name: value for name, value in record(RULE_PROPS, rule).items() if name not in PORTS or name in ports},
        "referencedSecurityGroupId": rule.get("ReferencedGroupInfo", {}).get("GroupId"),
        "securityGroupRuleId": id,
        "arn": cloud.arn("ec2", f"security-group-rule/{id}"),
        "tagsAll": tag_map(rule.get("Tags")),
    }


def _update_rule(cloud: Cloud, change: Change) -> None:
    if not change.names - {"tags", "tagsAll"}:
        return
    names = ("ipProtocol", "fromPort", "toPort", "cidrIpv4", "cidrIpv6", "prefixListId", "description")
    rule = request(RULE_PROPS, change.new, names)
    if change.new.get("referencedSecurityGroupId"):
        rule["ReferencedGroupId"] = change.new["referencedSecurityGroupId"]
    cloud.ec2.modify_security_group_rules(
        GroupId=change.new["securityGroupId"],
        SecurityGroupRules=[{"SecurityGroupRuleId": change.id, "SecurityGroupRule": rule}],
    )


def _other_source(old: State, new: State) -> frozenset[str]:
    """A rule's source can become another of its kind, but not of another kind."""
    before, after = (frozenset(name for name in SOURCES if values.get(name)) for values in (old, new))
    return frozenset() if before == after else before | after


def _deleter(way: str) -> Callable[[Cloud, str, State], None]:
    def delete(cloud: Cloud, id: str, state: State) -> None:
        revoke = getattr(cloud.ec2, f"revoke_security_group_{way}")
        with absence("InvalidSecurityGroupRuleId.NotFound", "InvalidGroup.NotFound", "InvalidPermission.NotFound"):
            revoke(GroupId=state["securityGroupId"], SecurityGroupRuleIds=[id])

    return delete


PORTS = ("fromPort", "toPort")
SOURCES = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
RULE_PROPS = {
    "securityGroupId": text(required=True, replaces=True, aws="GroupId"),
    "ipProtocol": text(required=True),
    "fromPort": whole(),
    "toPort": whole(),
    "cidrIpv4": text(),
    "cidrIpv6": text(),
    "prefixListId": text(),
    "referencedSecurityGroupId": text(),
    "description": text(),
}


def _rule(way: str, name: str) -> Resource:
    return Resource(
        token=f"aws:vpc/{name[0].lower()}{name[1:]}:{name}",
        props=RULE_PROPS,
        outputs={"arn": text(), "securityGroupRuleId": text()},
        create=_creator(way),
        read=_read_rule,
        update=_update_rule,
        delete=_deleter(way),
        retag=retag,
        replaces_if=_other_source,
    )


RESOURCES = (
    GROUP,
    _rule("ingress", "SecurityGroupIngressRule"),
    _rule("egress", "SecurityGroupEgressRule"),
)
