"""The VPC of a base: private subnets, one public subnet for the NAT gateway, endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.base import BasePlan, PublicPlan, ZonePlan
from corral.model.partitions import endpoint_service
from corral.model.zones import is_zone_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """The plan of the network, known before anything exists.

    `retained_ids`: by word, what an earlier deployment of the base retained because file systems use it.
    """

    plan: BasePlan
    public: PublicPlan
    retained_ids: Mapping[str, str] = field(default_factory=dict)


class Network(Component):
    """A VPC whose instances reach the internet through NAT and S3 directly, without inbound access."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("Network", name, f"corral-{plan.name}", opts)
        self._retained_ids, self._holding = args.retained_ids, {system.zone_id for system in plan.lustre}
        self.vpc = aws.ec2.Vpc(
            self.child("vpc"),
            cidr_block=str(plan.vpc_cidr),
            enable_dns_hostnames=True,  # names of EFS, private zones and endpoints resolve only with both flags
            enable_dns_support=True,
            tags=self._tags("vpc", bool(self._holding)),
            opts=self._opts("vpc", bool(self._holding)),
        )
        self.public_subnet, self._nat = self._way_out(args.public)
        self._private_table = self._table("private")
        self._route("private-out", self._private_table, nat_gateway_id=self._nat.id)
        subnets = {zone.zone_id: self._private(zone) for zone in plan.zones}
        self.vpc_id: pulumi.Output[str] = self.vpc.id
        self.subnets: Mapping[str, pulumi.Output[str]] = {zone: subnet.id for zone, subnet in subnets.items()}
        self.zone_names = {zone: subnet.availability_zone for zone, subnet in subnets.items()}
        self._s3_endpoint(plan)
        if plan.interface_endpoints:
            self._interface_endpoints(plan)
        self.register_outputs({"vpc": self.vpc.id})

    def _way_out(self, public: PublicPlan) -> tuple[aws.ec2.Subnet, aws.ec2.NatGateway]:
        gateway = aws.ec2.InternetGateway(
            self.child("internet"), vpc_id=self.vpc.id, tags=self.tags("internet"), opts=self.child_options()
        )
        subnet = aws.ec2.Subnet(
            self.child("public"),
            vpc_id=self.vpc.id,
            cidr_block=str(public.cidr),
            **_in_zone(public.zone_id),
            tags=self.tags("public"),
            opts=self.child_options(),
        )
        table = self._table("public")
        route = self._route("public-out", table, gateway_id=gateway.id)
        self._associate("public", subnet, table)
        address = aws.ec2.Eip(self.child("nat-address"), domain="vpc", tags=self.tags("nat"), opts=self.child_options())
        gateway_of_nodes = aws.ec2.NatGateway(
            self.child("nat"),
            subnet_id=subnet.id,
            allocation_id=address.id,
            tags=self.tags("nat"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[route]),
        )
        return subnet, gateway_of_nodes

    def _private(self, zone: ZonePlan) -> aws.ec2.Subnet:
        subnet = aws.ec2.Subnet(
            self.child(f"private-{zone.zone_id}"),
            vpc_id=self.vpc.id,
            cidr_block=str(zone.private),
            **_in_zone(zone.zone_id),
            tags=self._tags(f"private-{zone.zone_id}", zone.zone_id in self._holding),
            opts=self._opts(f"private-{zone.zone_id}", zone.zone_id in self._holding),
        )
        self._associate(f"private-{zone.zone_id}", subnet, self._private_table)
        aws.ec2.SubnetCidrReservation(
            self.child(f"heads-{zone.zone_id}"),
            subnet_id=subnet.id,
            cidr_block=str(zone.heads),
            reservation_type="explicit",
            description="Addresses of head nodes; AWS assigns none of them by itself",
            opts=self.child_options(),
        )
        return subnet

    def _s3_endpoint(self, plan: BasePlan) -> None:
        aws.ec2.VpcEndpoint(
            self.child("s3"),
            vpc_id=self.vpc.id,
            service_name=endpoint_service("s3", plan.region),
            vpc_endpoint_type="Gateway",
            route_table_ids=[self._private_table.id],
            tags=self.tags("s3"),
            opts=self.child_options(),
        )

    def _interface_endpoints(self, plan: BasePlan) -> None:
        group = aws.ec2.SecurityGroup(
            self.child("endpoints"),
            vpc_id=self.vpc.id,
            description="Interface endpoints: HTTPS from inside the VPC",
            tags=self.tags("endpoints"),
            opts=self.child_options(),
        )
        aws.vpc.SecurityGroupIngressRule(
            self.child("endpoints-https"),
            security_group_id=group.id,
            cidr_ipv4=str(plan.vpc_cidr),
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            tags=self.tags("endpoints-https"),
            opts=self.child_options(),
        )
        for service in plan.interface_endpoints:
            aws.ec2.VpcEndpoint(
                self.child(f"endpoint-{service}"),
                vpc_id=self.vpc.id,
                service_name=endpoint_service(service, plan.region),
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=list(self.subnets.values()),
                security_group_ids=[group.id],
                tags=self.tags(f"endpoint-{service}"),
                opts=self.child_options(),
            )

    def _tags(self, key: str, holding: bool) -> Mapping[str, str]:
        return self.tags(key, keep=f"network-{key}") if holding else self.tags(key)

    def _opts(self, key: str, holding: bool) -> pulumi.ResourceOptions:
        """Retained if a retained file system is in it: its interfaces block deletion."""
        return self.retained_options(self._retained_ids.get(f"network-{key}")) if holding else self.child_options()

    def _table(self, key: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            self.child(f"{key}-routes"), vpc_id=self.vpc.id, tags=self.tags(f"{key}-routes"), opts=self.child_options()
        )

    def _route(self, key: str, table: aws.ec2.RouteTable, **target: pulumi.Input[str]) -> aws.ec2.Route:
        return aws.ec2.Route(
            self.child(key),
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            opts=self.child_options(),
            **target,
        )

    def _associate(self, key: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable) -> None:
        aws.ec2.RouteTableAssociation(
            self.child(f"{key}-association"), subnet_id=subnet.id, route_table_id=table.id, opts=self.child_options()
        )


class AdoptedNetwork:
    """An adopted VPC: its ids for other components. Creates nothing."""

    def __init__(self, plan: BasePlan, through: aws.Provider) -> None:
        found = {zone.zone_id: _subnet(zone, through) for zone in plan.zones}
        self.vpc_id: pulumi.Input[str] = plan.adopted_vpc or ""
        self.subnets: Mapping[str, pulumi.Input[str]] = {zone: subnet.id for zone, subnet in found.items()}
        self.zone_names = {zone: subnet.availability_zone for zone, subnet in found.items()}


def _subnet(zone: ZonePlan, through: aws.Provider) -> aws.ec2.GetSubnetResult:
    return aws.ec2.get_subnet(id=zone.subnet, opts=pulumi.InvokeOptions(provider=through))


def _in_zone(zone: str) -> Mapping[str, str]:
    """The argument for a subnet's zone: AWS has one for ids and one for names."""
    return {"availability_zone_id" if is_zone_id(zone) else "availability_zone": zone}
