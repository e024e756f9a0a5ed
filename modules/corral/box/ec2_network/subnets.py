"""Subnets and their addresses. AWS's five and those in CIDR reservations are never assigned automatically."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.subnets import Subnet

from corral.box.api_errors import ApiError

RESERVED_BY_AWS = 4  # the first four addresses and the last one of each subnet (VPC user guide, subnet sizing)


def no_free_address(subnet_id: str) -> ApiError:
    """The error for a full subnet."""
    text = f"There are not enough free addresses in subnet '{subnet_id}' to satisfy the requested number of instances."
    return ApiError("InsufficientFreeAddressesInSubnet", text)


class BoxSubnet(Subnet):
    """A subnet that assigns its addresses from the lowest up, and those that were released last of all.

    A machine of the box boots in seconds. With the address of one that has just ended it would get what was sent to
    that one: slurmctld repeats messages for MessageTimeout.
    """

    _next = RESERVED_BY_AWS  # offset of the address after the one that was assigned last

    @cached_property
    def network(self) -> IPv4Network:
        """The range of addresses."""
        return IPv4Network(self.cidr_block)

    @property
    def available_ip_address_count(self) -> int:
        """The number of unused addresses; those in `explicit` reservations count."""
        return int(self.network.num_addresses - RESERVED_BY_AWS - 1 - len(self._subnet_ips))

    @property
    def free_addresses(self) -> int:
        """The number of addresses for a launch: neither in use nor in a reservation."""
        reserved = [scr.cidr for scr in self._cidr_reservations if isinstance(scr.cidr, IPv4Network)]
        first = self.network.network_address + RESERVED_BY_AWS
        last = self.network.broadcast_address - 1
        blocked = sum(_overlap(block, first, last) for block in reserved)
        taken = sum(1 for ip in self._subnet_ips if not any(IPv4Address(ip) in block for block in reserved))
        return int(last) - int(first) + 1 - blocked - taken

    def get_available_subnet_ip(self, instance: Any) -> str:
        """Assign the next free address to `instance`, an object of any kind, and return it."""
        address = self._next_free()
        self._subnet_ips[address] = instance
        return address

    def request_ip(self, ip: str, instance: Any) -> None:
        """Assign this address to `instance`."""
        self.check_address(ip)
        self._subnet_ips[ip] = instance

    def check_address(self, ip: str) -> None:
        """Raises ApiError unless the address may be assigned."""
        address = IPv4Address(ip)
        if address not in self.network:
            raise ApiError("InvalidParameterValue", "Address does not fall within the subnet's address range")
        if self._is_reserved_by_aws(address):
            raise ApiError("InvalidParameterValue", "Address is in subnet's reserved address range")
        if ip in self._subnet_ips:
            raise ApiError("InvalidIPAddress.InUse", f"Address {ip} is in use.")

    def del_subnet_ip(self, ip: str) -> None:
        """Release an address."""
        self._subnet_ips.pop(ip, None)

    def _offset(self, ip: str) -> int:
        return int(IPv4Address(ip)) - int(self.network.network_address)

    def _is_reserved_by_aws(self, address: IPv4Address) -> bool:
        return self._offset(str(address)) < RESERVED_BY_AWS or address == self.network.broadcast_address

    def _next_free(self) -> str:
        for first, end in ((self._next, self.network.num_addresses - 1), (RESERVED_BY_AWS, self._next)):
            if (offset := self._free_between(first, end)) is not None:
                self._next = offset + 1
                return str(self.network.network_address + offset)
        raise no_free_address(self.id)

    def _free_between(self, first: int, end: int) -> int | None:
        """The lowest of these offsets whose address is neither in use nor in a reservation."""
        reserved = [scr.cidr for scr in self._cidr_reservations if isinstance(scr.cidr, IPv4Network)]
        while first < end:
            address = self.network.network_address + first
            blocking = next((block for block in reserved if address in block), None)
            if blocking:
                first = self._offset(str(blocking.broadcast_address)) + 1
            elif str(address) in self._subnet_ips:
                first += 1
            else:
                return first
        return None


class Subnets:
    """The EC2 backend's subnets."""

    def create_subnet(self: Any, vpc_id: str, cidr_block: str, *args: Any, **kwargs: Any) -> BoxSubnet:
        """Create a subnet; only default subnets assign public addresses on launch."""
        if zone_id := kwargs.pop("availability_zone_id", None) or (args[2] if len(args) > 2 else None):
            args, kwargs["availability_zone"] = args[:1], self._zone_name(zone_id)
        prefix = IPv4Network(cidr_block, strict=False).prefixlen
        if not 16 <= prefix <= 28:
            raise ApiError("InvalidSubnet.Range", f"The CIDR '{cidr_block}' is invalid.")
        subnet = super().create_subnet(vpc_id, cidr_block, *args, **kwargs)  # type: ignore[misc]
        subnet.__class__ = BoxSubnet  # moto names its class inside create_subnet; the fields are the same
        subnet.default_for_az = subnet.map_public_ip_on_launch = self.get_vpc(vpc_id).is_default
        return subnet  # type: ignore[no-any-return]

    def delete_subnet(self: Any, subnet_id: str) -> Any:
        """Delete an empty subnet."""
        subnet = self.get_subnet(subnet_id)
        if any(eni.subnet.id == subnet_id for eni in self.enis.values()):
            raise ApiError("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        for table in self.route_tables.values():
            for association, associated in list(table._associations.items()):
                if associated == subnet_id:
                    del table._associations[association]
        for acl in self.network_acls.values():
            for key, association in list(acl._associations.items()):
                if association.subnet_id == subnet_id:
                    del acl._associations[key]
        for reservation in subnet._cidr_reservations:
            self.tags.pop(reservation.id, None)
        self.tags.pop(subnet_id, None)
        return super().delete_subnet(subnet_id)  # type: ignore[misc]

    def create_subnet_cidr_reservation(
        self: Any, subnet_id: str, reservation_type: str, cidr: str, tags: Any = None
    ) -> Any:
        """Create a CIDR reservation with its tags."""
        made = super().create_subnet_cidr_reservation(subnet_id, reservation_type, cidr, tags)  # type: ignore[misc]
        made.add_tags({tag["Key"]: tag["Value"] for spec in tags or [] for tag in spec.get("Tags", [])})
        return made

    def _zone_name(self: Any, zone_id: str) -> str:
        for zone in self.describe_availability_zones():
            if zone.zone_id == zone_id:
                return str(zone.name)
        raise ApiError("InvalidParameterValue", f"Value ({zone_id}) for parameter availabilityZoneId is invalid.")


def _overlap(block: IPv4Network, first: IPv4Address, last: IPv4Address) -> int:
    low, high = max(int(block.network_address), int(first)), min(int(block.broadcast_address), int(last))
    return max(0, high - low + 1)


class SubnetActions:
    """The actions on subnets that moto answers differently from AWS."""

    def create_subnet(self: Any) -> ActionResult:
        """CreateSubnet; the zone may be given by id."""
        if self._get_param("AvailabilityZone") and self._get_param("AvailabilityZoneId"):
            raise ApiError(
                "InvalidParameterCombination", "Specify either availabilityZone or availabilityZoneId, not both."
            )
        return super().create_subnet()  # type: ignore[misc]

    def create_subnet_cidr_reservation(self: Any) -> ActionResult:
        """CreateSubnetCidrReservation; moto drops its description."""
        answer: ActionResult = super().create_subnet_cidr_reservation()  # type: ignore[misc]
        answer.result["SubnetCidrReservation"].description = self._get_param("Description")
        return answer
