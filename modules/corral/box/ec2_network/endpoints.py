"""VPC endpoints: gateway endpoints are routes, interface endpoints are interfaces in subnets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corral.box.api_errors import ApiError
from corral.box.ec2_network.filters import passes_filters, split_filters
from corral.model.partitions import endpoint_service

ENDPOINT_FILTERS: Mapping[str, Callable[[Any], Any]] = {
    "vpc-endpoint-id": lambda endpoint: endpoint.id,
    "ip-address-type": lambda _endpoint: "ipv4",
}


class VpcEndpoints:
    """The EC2 backend's VPC endpoints."""

    def describe_vpc_endpoints(self: Any, vpc_end_point_ids: list[str] | None, filters: Any = None) -> Any:
        """The endpoints that match moto's and the box's filters."""
        own, others = split_filters(filters, ENDPOINT_FILTERS)
        found = super().describe_vpc_endpoints(vpc_end_point_ids, others)  # type: ignore[misc]
        return [endpoint for endpoint in found if passes_filters(endpoint, own, ENDPOINT_FILTERS)]

    def create_vpc_endpoint(
        self: Any, vpc_id: str, service_name: str, endpoint_type: str | None, *args: Any, **kwargs: Any
    ) -> Any:
        """Create an endpoint; an interface endpoint has an interface in each of its subnets."""
        endpoint_type = endpoint_type or "Gateway"
        subnets = kwargs.pop("subnet_ids", None) or []
        groups = kwargs.get("security_group_ids") or []
        tables = kwargs.get("route_table_ids") or []
        self._check_endpoint(vpc_id, service_name, endpoint_type, subnets, tables)
        if endpoint_type == "Interface" and not groups:
            groups = kwargs["security_group_ids"] = [self.get_security_group_from_name("default", vpc_id).id]
        self.check_groups(groups, vpc_id)
        made = super().create_vpc_endpoint(vpc_id, service_name, endpoint_type, *args, subnet_ids=[], **kwargs)  # type: ignore[misc]
        made.subnet_ids = []
        made.ip_address_type = "ipv4"
        made.private_dns_enabled = made.private_dns_enabled and endpoint_type == "Interface"
        self._join_subnets(made, subnets)
        return made

    def modify_vpc_endpoint(
        self: Any, vpc_id: str, policy_doc: Any, add_subnets: Any, remove_subnets: Any, *rest: Any, **kwargs: Any
    ) -> None:
        """Change an endpoint, its interfaces with its subnets and its routes with its route tables."""
        endpoint = self.get_vpc_end_point(vpc_id)
        before = set(endpoint.route_table_ids)
        super().modify_vpc_endpoint(vpc_id, policy_doc, None, None, *rest, **kwargs)  # type: ignore[misc]
        self._join_subnets(endpoint, [subnet for subnet in add_subnets or [] if subnet not in endpoint.subnet_ids])
        self._leave_subnets(endpoint, remove_subnets or [])
        listed = endpoint.destination_prefix_list_id
        for table in set(endpoint.route_table_ids) - before if listed else ():
            self.create_route(table, None, gateway_id=endpoint.id, destination_prefix_list_id=listed)
        for table in before - set(endpoint.route_table_ids) if listed else ():
            self.delete_route(table, None, destination_prefix_list_id=listed)

    def delete_vpc_endpoints(self: Any, vpce_ids: list[str] | None = None) -> None:
        """Delete endpoints with their interfaces and routes."""
        for endpoint_id in vpce_ids or []:
            endpoint = self.get_vpc_end_point(endpoint_id)
            self._leave_subnets(endpoint, list(endpoint.subnet_ids))
            for table in endpoint.route_table_ids if endpoint.destination_prefix_list_id else ():
                if table in self.route_tables:
                    self.delete_route(table, None, destination_prefix_list_id=endpoint.destination_prefix_list_id)
            del self.vpc_end_points[endpoint_id]
            self.tags.pop(endpoint_id, None)

    def _check_endpoint(self: Any, vpc_id: str, service: str, kind: str, subnets: list[str], tables: list[str]) -> None:
        self.get_vpc(vpc_id)
        if service != endpoint_service(service.partition(f".{self.region_name}.")[2], self.region_name):
            raise ApiError("InvalidServiceName", f"The Vpc Endpoint Service '{service}' does not exist")
        if kind == "Gateway" and service.rpartition(".")[2] not in ("s3", "dynamodb"):
            raise ApiError("InvalidParameter", f"The service {service} has no gateway endpoints.")
        for subnet in subnets:
            if self.get_subnet(subnet).vpc_id != vpc_id:
                raise ApiError("InvalidParameter", f"Subnet {subnet} is not in VPC {vpc_id}")
        for table in tables:
            if self.get_route_table(table).vpc_id != vpc_id:
                raise ApiError("InvalidParameter", f"Route table {table} is not in VPC {vpc_id}")
        for other in self.vpc_end_points.values():
            if kind == "Gateway" and other.service_name == service and set(tables) & set(other.route_table_ids):
                raise ApiError("RouteAlreadyExists", f"A route table of {tables} already has a route for {service}")

    def _join_subnets(self: Any, endpoint: Any, subnets: list[str]) -> None:
        for subnet in subnets:
            eni = self.create_network_interface(subnet, group_ids=endpoint.security_group_ids)
            eni.interface_type = "vpc_endpoint"
            self.assign_to_service(eni, "vpce", f"VPC Endpoint Interface {endpoint.id}")
            endpoint.subnet_ids.append(subnet)
            endpoint.network_interface_ids.append(eni.id)

    def _leave_subnets(self: Any, endpoint: Any, subnets: list[str]) -> None:
        for eni_id in list(endpoint.network_interface_ids):
            if self.enis[eni_id].subnet.id in subnets:
                endpoint.network_interface_ids.remove(eni_id)
                self.remove_interface(self.enis[eni_id])
        endpoint.subnet_ids = [subnet for subnet in endpoint.subnet_ids if subnet not in subnets]
