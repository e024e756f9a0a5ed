"""VPCs and what hangs on them: groups, gateways, endpoints, addresses - mostly who must go before whom."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.utils import random_nat_gateway_id

from corral.box.ec2_quotas import check_addresses, check_nat_gateways, check_vpcs
from corral.box.refusals import Refused


def _dependent(kind: str, name: str) -> Refused:
    return Refused("DependencyViolation", f"The {kind} '{name}' has dependencies and cannot be deleted.")


class BoxNatGateway(NatGateway):
    """A NAT gateway whose address is one of its subnet."""

    def __init__(self, backend: Any, subnet_id: str, allocation_id: str | None, connectivity_type: str) -> None:
        self.id = random_nat_gateway_id()
        self.ec2_backend = backend
        self.subnet_id = subnet_id
        self.vpc_id = backend.get_subnet(subnet_id).vpc_id
        self.state = "available"
        self.connectivity_type = connectivity_type
        self._created_at = utcnow()
        self._eni = backend.create_network_interface(subnet_id)
        self._eni.interface_type = "nat_gateway"
        backend.hold_interface(self._eni, "nat", f"Interface for NAT Gateway {self.id}")
        self.private_ip = self._eni.private_ip_address
        self.address_set = [{"NetworkInterfaceId": self._eni.id, "PrivateIp": self.private_ip, "IsPrimary": True}]
        if allocation_id and connectivity_type == "public":
            elastic = backend.associate_address(eni=self._eni, allocation_id=allocation_id)
            self.address_set[0] |= {
                "AllocationId": allocation_id,
                "PublicIp": elastic.public_ip,
                "AssociationId": elastic.association_id,
                "Status": "succeeded",
            }


ROUTE_FILTERS: Mapping[str, Callable[[Any], Any]] = {  # that moto lacks: what they look at in a route table
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
ENDPOINT_FILTERS: Mapping[str, Callable[[Any], Any]] = {
    "vpc-endpoint-id": lambda endpoint: endpoint.id,
    "ip-address-type": lambda _endpoint: "ipv4",
}


class Network:
    """The part of the EC2 backend that holds VPCs, security groups, gateways and endpoints."""

    def get_vpc(self: Any, vpc_id: str) -> Any:
        """The VPC of that id."""
        if vpc_id not in self.vpcs:
            raise Refused("InvalidVpcID.NotFound", f"The vpc ID '{vpc_id}' does not exist")
        return self.vpcs[vpc_id]

    def create_vpc(self: Any, *arguments: Any, is_default: bool = False, **named: Any) -> Any:
        """A new VPC; the one that each region has from the beginning is always made."""
        if not is_default:
            check_vpcs(self)
        return super().create_vpc(*arguments, is_default=is_default, **named)  # type: ignore[misc]

    def describe_vpcs(self: Any, vpc_ids: list[str] | None = None, filters: Any = None) -> Any:
        """The VPCs; an unknown id is an error."""
        for vpc_id in vpc_ids or []:
            self.get_vpc(vpc_id)
        return super().describe_vpcs(vpc_ids, filters)  # type: ignore[misc]

    def describe_route_tables(self: Any, route_table_ids: list[str] | None = None, filters: Any = None) -> Any:
        """The route tables, by the filters that moto knows and those that it lacks."""
        own, others = _parted(filters, ROUTE_FILTERS)
        found = super().describe_route_tables(route_table_ids, others)  # type: ignore[misc]
        return [table for table in found if _passes(table, own, ROUTE_FILTERS)]

    def describe_vpc_endpoints(self: Any, vpc_end_point_ids: list[str] | None, filters: Any = None) -> Any:
        """The endpoints, by the filters that moto knows and those that it lacks."""
        own, others = _parted(filters, ENDPOINT_FILTERS)
        found = super().describe_vpc_endpoints(vpc_end_point_ids, others)  # type: ignore[misc]
        return [endpoint for endpoint in found if _passes(endpoint, own, ENDPOINT_FILTERS)]

    def delete_vpc(self: Any, vpc_id: str) -> Any:
        """Removes a VPC in which only what came with it is left."""
        self.get_vpc(vpc_id)
        attached = [gateway for gateway in self.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id]
        groups = [group for group in self.groups[vpc_id].values() if not _is_default(group)]
        endpoints = [endpoint for endpoint in self.vpc_end_points.values() if endpoint.vpc_id == vpc_id]
        interfaces = [eni for eni in self.enis.values() if eni.vpc_id == vpc_id]
        if attached or groups or endpoints or interfaces:
            raise _dependent("vpc", vpc_id)
        vpc = super().delete_vpc(vpc_id)  # type: ignore[misc]
        for acl in [acl for acl in self.network_acls.values() if acl.vpc_id == vpc_id]:
            del self.network_acls[acl.id]
        self.groups.pop(vpc_id, None)
        self.tags.pop(vpc_id, None)
        return vpc

    def _delete_security_group(self: Any, vpc_id: str | None, group_id: str) -> None:
        for group in self.groups[vpc_id or self.default_vpc.id].values():
            if group.id != group_id and group_id in _mentioned(group):
                raise Refused("DependencyViolation", f"resource {group_id} has a dependent object")
        if any(group_id in {held.id for held in eni.group_set} for eni in self.enis.values()):
            raise Refused("DependencyViolation", f"resource {group_id} has a dependent object")
        self.tags.pop(group_id, None)
        super()._delete_security_group(vpc_id, group_id)  # type: ignore[misc]

    def detach_internet_gateway(self: Any, internet_gateway_id: str, vpc_id: str) -> None:
        """Detaches a gateway once no public address of the VPC is in use."""
        mapped = [eni for eni in self.enis.values() if eni.vpc_id == vpc_id and eni.public_ip]
        if mapped:
            raise Refused("DependencyViolation", f"Network {vpc_id} has some mapped public address(es). Please unmap"
                          " those public address(es) before detaching the gateway.")  # fmt: skip
        super().detach_internet_gateway(internet_gateway_id, vpc_id)  # type: ignore[misc]

    def create_nat_gateway(
        self: Any,
        subnet_id: str,
        allocation_id: str | None,
        tags: dict[str, str] | None = None,
        connectivity_type: str | None = None,
    ) -> Any:
        """A new NAT gateway with an interface of its own in the subnet."""
        connectivity_type = connectivity_type or "public"
        if connectivity_type == "public" and not allocation_id:
            raise Refused("MissingParameter", "The request must contain the parameter AllocationId")
        if allocation_id and self.address_by_allocation([allocation_id])[0].association_id:
            raise Refused("Resource.AlreadyAssociated", f"Elastic IP address [{allocation_id}] is already associated.")
        check_nat_gateways(self, subnet_id)
        made = BoxNatGateway(self, subnet_id, allocation_id, connectivity_type)
        made.add_tags(tags or {})
        self.nat_gateways[made.id] = made
        return made

    def delete_nat_gateway(self: Any, nat_gateway_id: str) -> Any:
        """Removes a NAT gateway and its interface; its elastic address is free again."""
        gateway = self.nat_gateways.get(nat_gateway_id)
        if gateway is None:
            raise Refused("NatGatewayNotFound", f"NatGateway {nat_gateway_id} was not found")
        if gateway.state != "deleted":
            self.forget_interface(gateway._eni)
        return super().delete_nat_gateway(nat_gateway_id)  # type: ignore[misc]

    def describe_nat_gateways(self: Any, filters: Any, nat_gateway_ids: list[str] | None) -> Any:
        """The gateways; an unknown id is an error."""
        for nat_gateway_id in nat_gateway_ids or []:
            if nat_gateway_id not in self.nat_gateways:
                raise Refused("NatGatewayNotFound", f"NatGateway {nat_gateway_id} was not found")
        found = super().describe_nat_gateways(  # type: ignore[misc]
            {name: values for name, values in filters.items() if not name.startswith("tag")}, nat_gateway_ids
        )
        return [gateway for gateway in found if _has_tags(self.tags.get(gateway.id, {}), filters)]

    def allocate_address(self: Any, *arguments: Any, **named: Any) -> Any:
        """A new elastic address."""
        check_addresses(self)
        return super().allocate_address(*arguments, **named)  # type: ignore[misc]

    def release_address(self: Any, address: str | None = None, allocation_id: str | None = None) -> None:
        """Gives an elastic address back that nothing uses."""
        found = self.address_by_ip([address]) if address else self.address_by_allocation([allocation_id])
        if found[0].association_id:
            raise Refused("InvalidIPAddress.InUse", f"Address {found[0].public_ip} is in use.")
        super().release_address(address, allocation_id)  # type: ignore[misc]

    def create_vpc_endpoint(
        self: Any, vpc_id: str, service_name: str, endpoint_type: str | None, *args: Any, **kwargs: Any
    ) -> Any:
        """A new endpoint; an interface endpoint has an interface in each of its subnets."""
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
        """Changes an endpoint; its interfaces follow its subnets, its routes follow its route tables."""
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
        """Removes endpoints with their interfaces and routes."""
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
        region = service.split(".")[2] if service.startswith("com.amazonaws.") else None
        if region != self.region_name:
            raise Refused("InvalidServiceName", f"The Vpc Endpoint Service '{service}' does not exist")
        if kind == "Gateway" and service.rpartition(".")[2] not in ("s3", "dynamodb"):
            raise Refused("InvalidParameter", f"The service {service} has no gateway endpoints.")
        for subnet in subnets:
            if self.get_subnet(subnet).vpc_id != vpc_id:
                raise Refused("InvalidParameter", f"Subnet {subnet} is not in VPC {vpc_id}")
        for table in tables:
            if self.get_route_table(table).vpc_id != vpc_id:
                raise Refused("InvalidParameter", f"Route table {table} is not in VPC {vpc_id}")
        for other in self.vpc_end_points.values():
            if kind == "Gateway" and other.service_name == service and set(tables) & set(other.route_table_ids):
                raise Refused("RouteAlreadyExists", f"A route table of {tables} already has a route for {service}")

    def _join_subnets(self: Any, endpoint: Any, subnets: list[str]) -> None:
        for subnet in subnets:
            eni = self.create_network_interface(subnet, group_ids=endpoint.security_group_ids)
            eni.interface_type = "vpc_endpoint"
            self.hold_interface(eni, "vpce", f"VPC Endpoint Interface {endpoint.id}")
            endpoint.subnet_ids.append(subnet)
            endpoint.network_interface_ids.append(eni.id)

    def _leave_subnets(self: Any, endpoint: Any, subnets: list[str]) -> None:
        for eni_id in list(endpoint.network_interface_ids):
            if self.enis[eni_id].subnet.id in subnets:
                endpoint.network_interface_ids.remove(eni_id)
                self.forget_interface(self.enis[eni_id])
        endpoint.subnet_ids = [subnet for subnet in endpoint.subnet_ids if subnet not in subnets]


def _parted(filters: Any, known: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The filters that are known, and the others."""
    given = dict(filters or {})
    return {name: given.pop(name) for name in list(given) if name in known}, given


def _passes(thing: Any, filters: Mapping[str, Any], values: Mapping[str, Callable[[Any], Any]]) -> bool:
    """True if each filter finds one of its values; they may hold * and ?."""
    return all(
        any(fnmatchcase(str(held), wanted) for held in _several(values[name](thing)) for wanted in asked)
        for name, asked in filters.items()
    )


def _several(value: Any) -> list[Any]:
    return [held for held in (value if isinstance(value, list) else [value]) if held is not None]


def _is_default(group: Any) -> bool:
    return bool(group.name == "default")


def _mentioned(group: Any) -> set[str]:
    rules = [*group.ingress_rules, *group.egress_rules]
    return {rule.source_group["GroupId"] for rule in rules if rule.source_group.get("GroupId")}


def _has_tags(tags: dict[str, str], filters: dict[str, list[str]]) -> bool:
    wanted = {name.removeprefix("tag:"): values for name, values in filters.items() if name.startswith("tag:")}
    return all(tags.get(key) in values for key, values in wanted.items()) and (
        "tag-key" not in filters or bool(set(tags) & set(filters["tag-key"]))
    )
