"""VPCs, their route tables and security groups, with AWS's order of deletion."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from corral.box.api_errors import ApiError
from corral.box.ec2_capacity.quota_enforcement import check_vpcs
from corral.box.ec2_network.filters import passes_filters, split_filters

ROUTE_FILTERS: Mapping[str, Callable[[Any], Any]] = {  # filters that moto lacks, with their values in a route table
    "association.gateway-id": lambda table: [held.get("GatewayId") for held in table.associations],
    "route.destination-ipv6-cidr-block": lambda table: [route.destination_ipv6_cidr_block for route in table.routes],
    "route.destination-prefix-list-id": lambda table: [route.destination_prefix_list_id for route in table.routes],
    "route.egress-only-internet-gateway-id": lambda table: [
        route.egress_only_internet_gateway_id for route in table.routes
    ],
    "route.gateway-id": lambda table: [route.gateway_id for route in table.routes],
    "route.instance-id": lambda table: [route.instance_id for route in table.routes],
    "route.origin": lambda table: [route.origin for route in table.routes],
    "route.state": lambda table: [route.state for route in table.routes],
}


class Vpcs:
    """The EC2 backend's VPCs, route tables and security groups."""

    def get_vpc(self: Any, vpc_id: str) -> Any:
        """The VPC of that id."""
        if vpc_id not in self.vpcs:
            raise ApiError("InvalidVpcID.NotFound", f"The vpc ID '{vpc_id}' does not exist")
        return self.vpcs[vpc_id]

    def create_vpc(self: Any, *arguments: Any, is_default: bool = False, **named: Any) -> Any:
        """Create a VPC, its default group open to itself. Raises ApiError beyond the quota, not for the default VPC."""
        if not is_default:
            check_vpcs(self)
        vpc = super().create_vpc(*arguments, is_default=is_default, **named)  # type: ignore[misc]
        group = self.get_default_security_group(vpc.id).id
        itself = [{"GroupId": group}]
        super().authorize_security_group_ingress(  # type: ignore[misc]
            group, "-1", None, None, [], source_groups=itself, vpc_id=vpc.id
        )
        return vpc

    def describe_vpcs(self: Any, vpc_ids: list[str] | None = None, filters: Any = None) -> Any:
        """The VPCs. Raises ApiError for an unknown id."""
        for vpc_id in vpc_ids or []:
            self.get_vpc(vpc_id)
        return super().describe_vpcs(vpc_ids, filters)  # type: ignore[misc]

    def describe_route_tables(self: Any, route_table_ids: list[str] | None = None, filters: Any = None) -> Any:
        """The route tables that match moto's and the box's filters."""
        own, others = split_filters(filters, ROUTE_FILTERS)
        found = super().describe_route_tables(route_table_ids, others)  # type: ignore[misc]
        return [table for table in found if passes_filters(table, own, ROUTE_FILTERS)]

    def delete_vpc(self: Any, vpc_id: str) -> Any:
        """Delete a VPC that contains only what it was created with."""
        self.get_vpc(vpc_id)
        attached = [gateway for gateway in self.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
        groups = [group for group in self.groups[vpc_id].values() if not _is_default(group)]
        endpoints = [endpoint for endpoint in self.vpc_end_points.values() if endpoint.vpc_id == vpc_id]
        interfaces = [eni for eni in self.enis.values() if eni.vpc_id == vpc_id]
        if attached or groups or endpoints or interfaces:
            raise ApiError("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
        vpc = super().delete_vpc(vpc_id)  # type: ignore[misc]
        for acl in [acl for acl in self.network_acls.values() if acl.vpc_id == vpc_id]:
            del self.network_acls[acl.id]
        self.groups.pop(vpc_id, None)
        self.tags.pop(vpc_id, None)
        return vpc

    def authorize_security_group_ingress(self: Any, *arguments: Any, **named: Any) -> Any:
        """Add rules to a group, with the time of their creation."""
        return self._dated(super().authorize_security_group_ingress(*arguments, **named))  # type: ignore[misc]

    def authorize_security_group_egress(self: Any, *arguments: Any, **named: Any) -> Any:
        """Add rules to a group, with the time of their creation."""
        return self._dated(super().authorize_security_group_egress(*arguments, **named))  # type: ignore[misc]

    @staticmethod
    def _dated(answer: Any) -> Any:
        _, group = answer
        for rule in [*group.ingress_rules, *group.egress_rules]:
            vars(rule).setdefault("created", time.time())
        return answer

    def _delete_security_group(self: Any, vpc_id: str | None, group_id: str) -> None:
        for group in self.groups[vpc_id or self.default_vpc.id].values():
            if group.id != group_id and group_id in _referenced_groups(group):
                raise ApiError("DependencyViolation", f"resource {group_id} has a dependent object")
        if any(group_id in {held.id for held in eni.group_set} for eni in self.enis.values()):
            raise ApiError("DependencyViolation", f"resource {group_id} has a dependent object")
        self.tags.pop(group_id, None)
        super()._delete_security_group(vpc_id, group_id)  # type: ignore[misc]


def _is_default(group: Any) -> bool:
    return bool(group.name == "default")


def _referenced_groups(group: Any) -> set[str]:
    rules = [*group.ingress_rules, *group.egress_rules]
    return {rule.source_group["GroupId"] for rule in rules if rule.source_group.get("GroupId")}
