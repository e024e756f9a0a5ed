"""What an engine that was killed left half made, and a refresh would not show as such: finished before it is adopted.

Some resources are made by several calls. The provider makes them one after the other, and a kill in between leaves a
thing that looks whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Client = Callable[[str], Any]  # a boto3 client of the stack's region, by service


def finish(resource: Mapping[str, Any], ids: Sequence[str], client: Client) -> None:
    """Does what is missing of the things with these ids, one of which the unfinished creation may have made."""
    if resource["type"] == "aws:ec2/securityGroup:SecurityGroup":
        for id in ids:
            _close_security_group(client("ec2"), id)


def _close_security_group(ec2: Any, id: str) -> None:
    """EC2 makes a group that lets everything out, and the provider then takes that rule away.

    Left there, it stands in the way of the same rule as a resource: InvalidPermission.Duplicate. Nothing that belongs
    to the group can have been made yet. Source: VPC User Guide, "Default rules for security groups that you create".
    """
    filters = [{"Name": "group-id", "Values": [id]}]
    rules = ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]
    if outward := [rule["SecurityGroupRuleId"] for rule in rules if rule["IsEgress"]]:
        ec2.revoke_security_group_egress(GroupId=id, SecurityGroupRuleIds=outward)
