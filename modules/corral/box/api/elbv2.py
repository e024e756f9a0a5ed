"""Elastic Load Balancing: network load balancers with interfaces in their subnets, and the health of their targets.

moto knows application load balancers alone: it gives others their ARNs, and takes every target for healthy. Source:
Elastic Load Balancing API reference, CreateLoadBalancer, DeregisterTargets; Network Load Balancers' user guide.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import moto.elbv2.urls
from moto.core.resource_tagging import TaggedResource
from moto.elbv2.models import ELBv2Backend, FakeHealthStatus

from corral.box.api_errors import ApiError
from corral.model.partitions import partition_of

NETWORK = "network"
_INTERNET = "internet-facing"
# Of a target that no load balancer uses: its group has none, or they are in other zones.
_NOT_IN_USE = ("unused", "Target.NotInUse", "Target is in an Availability Zone that is not enabled for a load balancer")


class BoxELBv2(ELBv2Backend):
    """The Elastic Load Balancing of one account and region."""

    _url_module = moto.elbv2.urls

    def create_load_balancer(
        self,
        name: str,
        security_groups: list[str],
        subnet_ids: list[str],
        subnet_mappings: list[dict[str, str]] | None = None,
        scheme: str | None = None,
        loadbalancer_type: str | None = None,
        ip_address_type: str = "ipv4",
        tags: list[dict[str, str]] | None = None,
    ) -> Any:
        """A new load balancer; a network one has an interface in each subnet."""
        scheme = scheme or _INTERNET
        if any(one.name == name for one in self.load_balancers.values()):
            raise ApiError("DuplicateLoadBalancerName", f"A load balancer with the name '{name}' exists")
        subnets = [self.ec2_backend.get_subnet(one) for one in subnet_ids]
        self._check_network(scheme, security_groups, subnets)
        made = super().create_load_balancer(
            name, security_groups, subnet_ids, subnet_mappings, scheme, loadbalancer_type, ip_address_type, None
        )
        del self.load_balancers[made.arn]
        if made.type == NETWORK:
            made.arn = made.arn.replace(":loadbalancer/app/", ":loadbalancer/net/")
        _, _, id = made.arn.rpartition("/")
        made.dns_name = f"{name}-{id}.elb.{self.region_name}.{partition_of(self.region_name).dns_suffix}"
        self.load_balancers[made.arn] = made
        self.tagging_service.tag_resource(made.arn, tags)
        made.interface_ids = [self._interface(made, one.id) for one in subnets] if made.type == NETWORK else []
        return made

    def _check_network(self, scheme: str, group_ids: list[str], subnets: list[Any]) -> None:
        """Raises ApiError for groups of another VPC, two subnets in a zone, and for a VPC without a way in."""
        vpc_id = subnets[0].vpc_id if subnets else ""
        for group_id in group_ids:
            group = self.ec2_backend.get_security_group_from_id(group_id)
            if group is None or group.vpc_id != vpc_id:
                raise ApiError("InvalidSecurityGroup", f"One or more security groups are invalid: {group_id}")
        zones = [one.availability_zone for one in subnets]
        if len(set(zones)) < len(zones):
            raise ApiError("InvalidConfigurationRequest", "A load balancer cannot be attached to multiple subnets in"
                          " the same Availability Zone")  # fmt: skip
        attached = (one for gateway in self.ec2_backend.internet_gateways.values() for one in [gateway.vpc])
        if scheme == _INTERNET and vpc_id not in {one.id for one in attached if one}:
            raise ApiError("InvalidSubnet", f"VPC {vpc_id} has no internet gateway")

    def _interface(self, balancer: Any, subnet_id: str) -> str:
        eni = self.ec2_backend.create_network_interface(subnet_id, group_ids=balancer.security_groups)
        self.ec2_backend.assign_to_service(eni, "amazon-elb", f"ELB {balancer.arn.partition(':loadbalancer/')[2]}")
        return str(eni.id)

    def addresses(self, balancer: Any) -> list[str]:
        """The private addresses of a network load balancer."""
        enis = self.ec2_backend.enis
        return [str(enis[one].private_ip_address) for one in balancer.interface_ids if one in enis]

    def delete_load_balancer(self, arn: str) -> None:
        """Delete a load balancer with its listeners and interfaces; nothing if there is none."""
        balancer = self.load_balancers.get(arn)
        if balancer is None:
            return
        if balancer.attrs.get("deletion_protection.enabled") == "true":
            raise ApiError("OperationNotPermitted", f"Load balancer '{arn}' cannot be deleted because deletion"
                          " protection is enabled")  # fmt: skip
        for one in balancer.interface_ids:
            if one in self.ec2_backend.enis:
                self.ec2_backend.remove_interface(self.ec2_backend.enis[one])
        for group in self.target_groups.values():
            group.load_balancer_arns = [one for one in group.load_balancer_arns if one != arn]
        super().delete_load_balancer(arn)

    def set_security_groups(self, arn: str, sec_groups: list[str]) -> None:
        """Exchange the security groups, also those of the interfaces."""
        super().set_security_groups(arn, sec_groups)
        for one in self.load_balancers[arn].interface_ids:
            self.ec2_backend.enis[one]._group_set = [
                self.ec2_backend.get_security_group_from_id(group) for group in sec_groups
            ]

    def deregister_targets(self, target_group_arn: str, instances: list[dict[str, Any]]) -> None:
        """Deregister the targets. One that is not registered is no error."""
        held = self.target_groups.get(target_group_arn)
        registered = [one for one in instances if held is None or one["Id"] in held.targets]
        super().deregister_targets(target_group_arn, registered)

    def describe_target_health(self, target_group_arn: str, targets: list[dict[str, Any]]) -> list[FakeHealthStatus]:
        """The health of the targets; unused are those that no load balancer reaches."""
        found: list[FakeHealthStatus] = super().describe_target_health(target_group_arn, targets)
        zones = self._zones_of(self.target_groups[target_group_arn])
        for one in found:
            instance = self.ec2_backend.get_instance_by_id(one.instance_id)
            if one.status == "healthy" and instance and instance.subnet_id and zones.isdisjoint({_zone(instance)}):
                one.status, one.reason, one.description = _NOT_IN_USE
        return found

    def _zones_of(self, group: Any) -> frozenset[str]:
        """The zones of the load balancers that forward to this group."""
        using = (self.load_balancers[arn] for arn in group.load_balancer_arns if arn in self.load_balancers)
        return frozenset(subnet.availability_zone for balancer in using for subnet in balancer.subnets)

    def iter_tagged_resources(self) -> Iterator[TaggedResource]:
        """Load balancers, target groups, and listeners, which moto leaves out."""
        yield from super().iter_tagged_resources()
        for balancer in self.load_balancers.values():
            for arn in balancer.listeners:
                tags = self.tagging_service.get_tag_dict_for_resource(arn)
                yield TaggedResource(arn=arn, tags=tags, resource_type="elasticloadbalancing:listener")


def _zone(instance: Any) -> str:
    return str(instance.placement.zone)


def install() -> None:
    """Replace moto's Elastic Load Balancing with the box's."""
    from moto.elbv2.models import elbv2_backends

    elbv2_backends.backend = BoxELBv2
