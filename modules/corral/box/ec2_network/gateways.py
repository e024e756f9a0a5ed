"""Internet gateways, NAT gateways and elastic addresses, with AWS's order of deletion."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from datetime import datetime
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.utils import random_nat_gateway_id

from corral.box.api_errors import ApiError
from corral.box.delays import NAT_CREATION, NAT_DELETION, duration
from corral.box.ec2_capacity.quota_enforcement import check_addresses, check_nat_gateways


class BoxNatGateway(NatGateway):
    """A NAT gateway with an address in its subnet."""

    def __init__(self, backend: Any, subnet_id: str, allocation_id: str | None, connectivity_type: str) -> None:
        self.id = random_nat_gateway_id()
        self.ec2_backend = backend
        self.subnet_id = subnet_id
        self.vpc_id = backend.get_subnet(subnet_id).vpc_id
        self.deleted: datetime | None = None
        self.connectivity_type = connectivity_type
        self._created_at = utcnow()
        self._eni = backend.create_network_interface(subnet_id)
        self._eni.interface_type = "nat_gateway"
        backend.assign_to_service(self._eni, "nat", f"Interface for NAT Gateway {self.id}")
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

    @property
    def state(self) -> str:
        """Its state, which follows from the time."""
        now = utcnow()
        if self.deleted:
            return "deleting" if now < self.deleted + duration(NAT_DELETION) else "deleted"
        return "pending" if now < self._created_at + duration(NAT_CREATION) else "available"


class Gateways:
    """The EC2 backend's gateways and elastic addresses."""

    def detach_internet_gateway(self: Any, internet_gateway_id: str, vpc_id: str) -> None:
        """Detach a gateway. Raises ApiError while a public address of the VPC is in use."""
        mapped = [eni for eni in self.enis.values() if eni.vpc_id == vpc_id and eni.public_ip]
        if mapped:
            raise ApiError("DependencyViolation", f"Network {vpc_id} has some mapped public address(es). Please unmap"
                          " those public address(es) before detaching the gateway.")  # fmt: skip
        super().detach_internet_gateway(internet_gateway_id, vpc_id)  # type: ignore[misc]

    def create_nat_gateway(
        self: Any,
        subnet_id: str,
        allocation_id: str | None,
        tags: dict[str, str] | None = None,
        connectivity_type: str | None = None,
    ) -> Any:
        """Create a NAT gateway with an interface in the subnet."""
        connectivity_type = connectivity_type or "public"
        if connectivity_type == "public" and not allocation_id:
            raise ApiError("MissingParameter", "The request must contain the parameter AllocationId")
        if allocation_id and self.address_by_allocation([allocation_id])[0].association_id:
            raise ApiError("Resource.AlreadyAssociated", f"Elastic IP address [{allocation_id}] is already associated.")
        check_nat_gateways(self, subnet_id)
        made = BoxNatGateway(self, subnet_id, allocation_id, connectivity_type)
        made.add_tags(tags or {})
        self.nat_gateways[made.id] = made
        return made

    def delete_nat_gateway(self: Any, nat_gateway_id: str) -> Any:
        """Delete a NAT gateway and its interface; its elastic address becomes free."""
        gateway = self.nat_gateways.get(nat_gateway_id)
        if gateway is None:
            raise ApiError("NatGatewayNotFound", f"NatGateway {nat_gateway_id} was not found")
        if not gateway.deleted:
            gateway.deleted = utcnow()
            self.remove_interface(gateway._eni)
        return gateway

    def describe_nat_gateways(self: Any, filters: Any, nat_gateway_ids: list[str] | None) -> Any:
        """The gateways. Raises ApiError for an unknown id."""
        for nat_gateway_id in nat_gateway_ids or []:
            if nat_gateway_id not in self.nat_gateways:
                raise ApiError("NatGatewayNotFound", f"NatGateway {nat_gateway_id} was not found")
        found = super().describe_nat_gateways(  # type: ignore[misc]
            {name: values for name, values in filters.items() if not name.startswith("tag")}, nat_gateway_ids
        )
        return [gateway for gateway in found if _has_tags(self.tags.get(gateway.id, {}), filters)]

    def allocate_address(self: Any, *arguments: Any, **named: Any) -> Any:
        """Allocate an elastic address."""
        check_addresses(self)
        return super().allocate_address(*arguments, **named)  # type: ignore[misc]

    def release_address(self: Any, address: str | None = None, allocation_id: str | None = None) -> None:
        """Release an unused elastic address."""
        found = self.address_by_ip([address]) if address else self.address_by_allocation([allocation_id])
        if found[0].association_id:
            raise ApiError("InvalidIPAddress.InUse", f"Address {found[0].public_ip} is in use.")
        super().release_address(address, allocation_id)  # type: ignore[misc]


def _has_tags(tags: dict[str, str], filters: dict[str, list[str]]) -> bool:
    wanted = {name.removeprefix("tag:"): values for name, values in filters.items() if name.startswith("tag:")}
    return all(tags.get(key) in values for key, values in wanted.items()) and (
        "tag-key" not in filters or bool(set(tags) & set(filters["tag-key"]))
    )
