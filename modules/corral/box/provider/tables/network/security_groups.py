"""Security groups and their rules; a group has only the rules of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corral.box.provider.aws_clients import RegionClients
from corral.box.provider.property_conversion import from_response, tag_map, to_request
from corral.box.provider.property_schema import boolean, integer, text
from corral.box.provider.provider_errors import is_not_found, not_found_on
from corral.box.provider.resource import Resource, ResourceUpdate, State, Timeouts
from corral.box.provider.tables.ec2_requests import delete_and_wait, only, retag, tag_specifications

ALL_PROTOCOLS = "-1"
DEFAULT_DESCRIPTION = "Managed by Pulumi"
ALLOW_ALL_EGRESS = {"IpProtocol": ALL_PROTOCOLS, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}

# --- groups


def _create_group(cloud: RegionClients, inputs: State) -> str:
    """Create a group and remove EC2's default rule, which allows all egress."""
    request = to_request(GROUP.props, {"description": DEFAULT_DESCRIPTION, **inputs}, ("name", "vpcId", "description"))
    id = str(cloud.ec2.create_security_group(**request, **tag_specifications("security-group", inputs))["GroupId"])
    revoked = {"GroupId": id, "IpPermissions": [ALLOW_ALL_EGRESS]}
    cloud.retried(lambda: cloud.ec2.revoke_security_group_egress(**revoked), is_not_found)
    return id


def _read_group(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidGroup.NotFound"):
        group = only(cloud.ec2.describe_security_groups(GroupIds=[id])["SecurityGroups"], id)
    return {
        **from_response(GROUP.state, group),
        "arn": cloud.arn("ec2", f"security-group/{id}"),
        "tagsAll": tag_map(group.get("Tags")),
    }


def _delete_group(cloud: RegionClients, id: str, state: State) -> None:
    delete_and_wait(cloud, lambda: cloud.ec2.delete_security_group(GroupId=id), id, "InvalidGroup.NotFound")


GROUP = Resource(
    token="aws:ec2/securityGroup:SecurityGroup",
    timeouts=Timeouts(delete=900),
    props={
        "name": text(replaces=True, aws="GroupName"),
        "description": text(replaces=True, default=DEFAULT_DESCRIPTION),
        "vpcId": text(replaces=True, computed=True),
        "revokeRulesOnDelete": boolean(write_only=True, default=False),
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
    permission |= to_request(RULE_PROPS, inputs, ("fromPort", "toPort"))
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **described}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **described}]
    if inputs.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": inputs["prefixListId"], **described}]
    if inputs.get("referencedSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"], **described}]
    return permission


def _creator(direction: str) -> Callable[[RegionClients, State], str]:
    def create(cloud: RegionClients, inputs: State) -> str:
        authorize = getattr(cloud.ec2, f"authorize_security_group_{direction}")
        request = {"GroupId": inputs["securityGroupId"], "IpPermissions": [_permission(inputs)]}
        made = authorize(**request, **tag_specifications("security-group-rule", inputs))
        return str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    return create


def _read_rule(cloud: RegionClients, id: str, known: State) -> State:
    with not_found_on("InvalidSecurityGroupRuleId.NotFound"):
        found = cloud.ec2.describe_security_group_rules(SecurityGroupRuleIds=[id])["SecurityGroupRules"]
    rule = only(found, id)
    ports = () if rule["IpProtocol"] == ALL_PROTOCOLS else ("fromPort", "toPort")
    return {
        **{
            name: value for name, value in from_response(RULE_PROPS, rule).items() if name not in PORTS or name in ports
        },
        "referencedSecurityGroupId": rule.get("ReferencedGroupInfo", {}).get("GroupId"),
        "securityGroupRuleId": id,
        "arn": cloud.arn("ec2", f"security-group-rule/{id}"),
        "tagsAll": tag_map(rule.get("Tags")),
    }


def _update_rule(cloud: RegionClients, change: ResourceUpdate) -> None:
    if not change.names - {"tags", "tagsAll"}:
        return
    names = ("ipProtocol", "fromPort", "toPort", "cidrIpv4", "cidrIpv6", "prefixListId", "description")
    rule = to_request(RULE_PROPS, change.new, names)
    if change.new.get("referencedSecurityGroupId"):
        rule["ReferencedGroupId"] = change.new["referencedSecurityGroupId"]
    cloud.ec2.modify_security_group_rules(
        GroupId=change.new["securityGroupId"],
        SecurityGroupRules=[{"SecurityGroupRuleId": change.id, "SecurityGroupRule": rule}],
    )


def _other_source(old: State, new: State) -> frozenset[str]:
    """A rule's source can change in place to another of the same kind only."""
    before, after = (frozenset(name for name in SOURCES if values.get(name)) for values in (old, new))
    return frozenset() if before == after else before | after


def _deleter(direction: str) -> Callable[[RegionClients, str, State], None]:
    def delete(cloud: RegionClients, id: str, state: State) -> None:
        revoke = getattr(cloud.ec2, f"revoke_security_group_{direction}")
        with not_found_on("InvalidSecurityGroupRuleId.NotFound", "InvalidGroup.NotFound", "InvalidPermission.NotFound"):
            revoke(GroupId=state["securityGroupId"], SecurityGroupRuleIds=[id])

    return delete


PORTS = ("fromPort", "toPort")
SOURCES = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
RULE_PROPS = {
    "securityGroupId": text(required=True, replaces=True, aws="GroupId"),
    "ipProtocol": text(required=True),
    "fromPort": integer(),
    "toPort": integer(),
    "cidrIpv4": text(),
    "cidrIpv6": text(),
    "prefixListId": text(),
    "referencedSecurityGroupId": text(),
    "description": text(),
}


def _rule(direction: str, name: str) -> Resource:
    return Resource(
        token=f"aws:vpc/{name[0].lower()}{name[1:]}:{name}",
        props=RULE_PROPS,
        outputs={"arn": text(), "securityGroupRuleId": text()},
        create=_creator(direction),
        read=_read_rule,
        update=_update_rule,
        delete=_deleter(direction),
        retag=retag,
        replaces_if=_other_source,
    )


RESOURCES = (
    GROUP,
    _rule("ingress", "SecurityGroupIngressRule"),
    _rule("egress", "SecurityGroupEgressRule"),
)
