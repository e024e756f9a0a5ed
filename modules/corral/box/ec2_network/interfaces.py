"""Network interfaces: their type, network card and addresses, attachment and deletion."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.utils import add_tag_specification, random_eni_attach_id, random_id

from corral.box.api_errors import ApiError

NO_ADDRESS = "0.0.0.0"  # noqa: S104 - placeholder for moto's constructor; removed right after


class BoxAttachment:
    """The attachment of an interface to an instance, or to the AWS service that owns it."""

    def __init__(self, eni: BoxInterface) -> None:
        self.attach_time = eni.attach_time
        self.attachment_id = eni.attachment_id
        self.delete_on_termination = eni.delete_on_termination
        self.device_index = eni.device_index
        self.network_card_index = eni.network_card_index
        self.instance_id = eni.instance.id if eni.instance else None
        self.instance_owner_id = eni.instance.owner_id if eni.instance else f"amazon-{eni.managed_by}"
        self.status = "attached"


class BoxInterface(NetworkInterface):
    """A network interface of one of the types `interface`, `efa` and `efa-only`; the last has no address."""

    def __init__(
        self,
        backend: Any,
        subnet: Any,
        address: str | None,
        *,
        interface_type: str = "interface",
        network_card_index: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(backend, subnet, address or NO_ADDRESS, **kwargs)
        self.interface_type = interface_type
        self.network_card_index = network_card_index
        self.managed_by: str | None = None
        if address is None:
            self.private_ip_address = None
            self.private_dns_name = None
            self.private_ip_addresses: list[dict[str, Any]] = []

    @property
    def attachment(self) -> BoxAttachment | None:
        """The attachment, or None."""
        return BoxAttachment(self) if self.attachment_id else None

    @property
    def association(self) -> Any:
        """The public address; None without one."""
        return super().association or None

    @property
    def group_set(self) -> Any:
        """The security groups; those of an instance are those of its interfaces."""
        return self._group_set

    def delete(self) -> None:
        """Delete the interface with its instance."""
        self.ec2_backend.remove_interface(self)


class Interfaces:
    """The EC2 backend's network interfaces."""

    def create_network_interface(
        self: Any,
        subnet: Any,
        private_ip_address: Any = None,
        private_ip_addresses: Any = None,
        group_ids: list[str] | None = None,
        description: str | None = None,
        tags: dict[str, str] | None = None,
        delete_on_termination: bool | None = False,
        *,
        interface_type: str = "interface",
        **kwargs: Any,
    ) -> BoxInterface:
        """Create an interface in the subnet, with the requested or the next free address."""
        subnet = self.get_subnet(subnet) if isinstance(subnet, str) else subnet
        self.check_groups(group_ids or [], subnet.vpc_id)
        secondary = [entry for entry in private_ip_addresses or [] if not _is_primary(entry)]
        address = None
        if interface_type != "efa-only":
            address = self._take_address(subnet, _primary(private_ip_address, private_ip_addresses))
        eni = BoxInterface(
            self,
            subnet,
            address,
            interface_type=interface_type,
            group_ids=group_ids,
            description=description,
            tags=tags,
            delete_on_termination=delete_on_termination,
            **{name: value for name, value in kwargs.items() if name != "secondary_ips_count"},
        )
        for address in self._take_secondary(subnet, secondary, int(kwargs.get("secondary_ips_count") or 0)):
            eni.private_ip_addresses.append({"Primary": False, "PrivateIpAddress": address})
        for entry in eni.private_ip_addresses:
            subnet._subnet_ips[entry["PrivateIpAddress"]] = eni
        self.enis[eni.id] = eni
        return eni

    def check_groups(self: Any, group_ids: list[str], vpc_id: str) -> None:
        """Raises ApiError if a security group does not exist or belongs to another VPC."""
        for group_id in group_ids:
            group = self.get_security_group_from_id(group_id)
            if group is None:
                raise ApiError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
            if group.vpc_id != vpc_id:
                raise ApiError(
                    "InvalidGroup.NotFound",
                    f"The security group '{group_id}' does not exist in VPC '{vpc_id}'",
                )

    def get_network_interface(self: Any, eni_id: str) -> BoxInterface:
        """The interface of that id."""
        if eni_id not in self.enis:
            raise ApiError("InvalidNetworkInterfaceID.NotFound", f"The networkInterface ID '{eni_id}' does not exist")
        return self.enis[eni_id]  # type: ignore[no-any-return]

    def delete_network_interface(self: Any, eni_id: str) -> None:
        """Delete an interface that is not attached."""
        eni = self.get_network_interface(eni_id)
        if eni.attachment_id:
            raise ApiError("InvalidParameterValue", f"Network interface '{eni_id}' is currently in use.")
        self.remove_interface(eni)

    def assign_to_service(self: Any, eni: BoxInterface, service: str, description: str) -> None:
        """Make an AWS service the owner of an interface, which only the service deletes."""
        eni.managed_by, eni.requester_managed, eni.description = service, True, description
        eni.attachment_id, eni.attach_time, eni.status = random_id("ela-attach"), utcnow(), "in-use"
        eni.device_index = 1

    def remove_interface(self: Any, eni: BoxInterface) -> None:
        """Remove an interface and release its addresses."""
        for entry in eni.private_ip_addresses:
            eni.subnet.del_subnet_ip(entry["PrivateIpAddress"])
        for elastic in self.addresses:
            if elastic.eni is eni:
                elastic.eni = elastic.instance = elastic.association_id = None
        self.enis.pop(eni.id, None)
        self.tags.pop(eni.id, None)

    def attach_network_interface(self: Any, eni_id: str, instance_id: str, device_index: int) -> Any:
        """Attach a free interface to an instance of its zone."""
        eni, instance = self.get_network_interface(eni_id), self.get_instance(instance_id)
        if eni.attachment_id:
            raise ApiError("InvalidNetworkInterface.InUse", f"Interface: [{eni_id}] in use.")
        if eni.subnet.availability_zone != instance.placement.zone:
            raise ApiError("InvalidParameterCombination", "You may not attach a network interface to an instance if"
                          " they are not in the same availability zone")  # fmt: skip
        if any(nic.device_index == int(device_index) and not nic.network_card_index for nic in instance.nics.values()):
            raise ApiError("InvalidParameterValue", f"Instance '{instance_id}' already has an interface attached at"
                          f" device index '{device_index}'.")  # fmt: skip
        eni.network_card_index = 0
        instance.attach_eni(eni, int(device_index))
        return eni.attachment

    def detach_network_interface(self: Any, attachment_id: str) -> None:
        """Detach an interface. Raises ApiError for the primary one."""
        for eni in self.enis.values():
            if eni.attachment_id == attachment_id:
                if eni.device_index == 0 and eni.network_card_index == 0:
                    raise ApiError("OperationNotPermitted", "The network interface at device index 0 and networkCard"
                                  " index 0 cannot be detached.")  # fmt: skip
                eni.instance.detach_eni(eni)
                return
        raise ApiError("InvalidAttachmentID.NotFound", f"The attachment '{attachment_id}' does not exist.")

    def _take_address(self: Any, subnet: Any, wanted: str | None) -> str:
        if wanted is None:
            return str(subnet.get_available_subnet_ip(None))
        if isinstance(subnet._subnet_ips.get(wanted), NetworkInterface) or wanted not in subnet._subnet_ips:
            subnet.check_address(wanted)  # an EFS mount target takes its address before it creates its interface
        return wanted

    def _take_secondary(self: Any, subnet: Any, wanted: list[Any], count: int) -> list[str]:
        named = [entry["PrivateIpAddress"] if isinstance(entry, dict) else entry for entry in wanted]
        for address in named:
            subnet.check_address(address)
        return named + [subnet.get_available_subnet_ip(None) for _ in range(count)]


class InterfaceActions:
    """The actions on interfaces that moto answers differently from AWS."""

    def create_network_interface(self: Any) -> ActionResult:
        """CreateNetworkInterface."""
        self.error_on_dryrun()
        interface_type = self._get_param("InterfaceType", "interface")
        if interface_type not in ("interface", "efa", "efa-only"):
            raise NotImplementedError(f"InterfaceType {interface_type}")
        eni = self.ec2_backend.create_network_interface(
            self._get_param("SubnetId"),
            self._get_param("PrivateIpAddress"),
            self._get_param("PrivateIpAddresses", []),
            self._get_param("Groups", []),
            self._get_param("Description"),
            add_tag_specification(self._get_param("TagSpecifications", [])),
            interface_type=interface_type,
            secondary_ips_count=self._get_param("SecondaryPrivateIpAddressCount"),
        )
        return ActionResult({"NetworkInterface": eni})


def attach(eni: Any, instance: Any, card: int, device: int) -> None:
    """Attach an interface to an instance at a network card and device index."""
    instance.nics[card * 100 + device] = eni  # moto keys by device alone, which several cards share
    eni.instance = instance
    eni.attachment_id = random_eni_attach_id()
    eni.attach_time = utcnow()
    eni.status = "in-use"
    eni.device_index = device
    eni.network_card_index = card


def _is_primary(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("Primary") is True


def _primary(address: Any, addresses: Any) -> str | None:
    if isinstance(address, list):
        address = address[0] if address else None
    if address:
        return str(address)
    return next((str(entry["PrivateIpAddress"]) for entry in addresses or [] if _is_primary(entry)), None)
