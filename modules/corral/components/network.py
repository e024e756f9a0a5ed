"""The VPC of a base: private subnets, one public subnet for the NAT gateway, endpoints."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.base import BasePlan, ZonePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """What a network is made of; all of it is known before anything exists."""

    plan: BasePlan


class Network(Component):
    """A VPC whose machines reach out through NAT and to S3 directly, and are never reached from outside."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("Network", name, f"corral-{plan.name}", opts)
        self.vpc = aws.ec2.Vpc(
            self.child("vpc"),
            cidr_block=str(plan.vpc_cidr),
            enable_dns_hostnames=True,  # private zones, EFS and interface endpoints answer by name only with both flags
            enable_dns_support=True,
            tags=self.tags("vpc"),
            opts=self.own(),
        )
        self._nat = self._way_out(plan)
        self._private_table = self._table("private")
        self._route("private-out", self._private_table, nat_gateway_id=self._nat.id)
        self.subnets = {zone.zone_id: self._private(zone) for zone in plan.zones}
        self._s3_endpoint(plan)
        if plan.interface_endpoints:
            self._interface_endpoints(plan)
        self.register_outputs({"vpc": self.vpc.id})

    def _way_out(self, plan: BasePlan) -> aws.ec2.NatGateway:
        gateway = aws.ec2.InternetGateway(
            self.child("internet"), vpc_id=self.vpc.id, tags=self.tags("internet"), opts=self.own()
        )
        subnet = aws.ec2.Subnet(
            self.child("public"),
            vpc_id=self.vpc.id,
            cidr_block=str(plan.public.cidr),
            availability_zone_id=plan.public.zone_id,
            tags=self.tags("public"),
            opts=self.own(),
        )
        table = self._table("public")
        route = self._route("public-out", table, gateway_id=gateway.id)
        self._associate("public", subnet, table)
        address = aws.ec2.Eip(self.child("nat-address"), domain="vpc", tags=self.tags("nat"), opts=self.own())
        return aws.ec2.NatGateway(
            self.child("nat"),
            subnet_id=subnet.id,
            allocation_id=address.id,
            tags=self.tags("nat"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[route]),
        )

    def _private(self, zone: ZonePlan) -> aws.ec2.Subnet:
        subnet = aws.ec2.Subnet(
            self.child(f"private-{zone.zone_id}"),
            vpc_id=self.vpc.id,
            cidr_block=str(zone.private),
            availability_zone_id=zone.zone_id,
            tags=self.tags(f"private-{zone.zone_id}"),
            opts=self.own(),
        )
        self._associate(f"private-{zone.zone_id}", subnet, self._private_table)
        aws.ec2.SubnetCidrReservation(
            self.child(f"heads-{zone.zone_id}"),
            subnet_id=subnet.id,
            cidr_block=str(zone.heads),
            reservation_type="explicit",
            description="Addresses of head nodes; AWS assigns none of them by itself",
            opts=self.own(),
        )
        return subnet

    def _s3_endpoint(self, plan: BasePlan) -> None:
        aws.ec2.VpcEndpoint(
            self.child("s3"),
            vpc_id=self.vpc.id,
            service_name=f"com.amazonaws.{plan.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[self._private_table.id],
            tags=self.tags("s3"),
            opts=self.own(),
        )

    def _interface_endpoints(self, plan: BasePlan) -> None:
        group = aws.ec2.SecurityGroup(
            self.child("endpoints"),
            vpc_id=self.vpc.id,
            description="Interface endpoints: HTTPS from inside the VPC",
            tags=self.tags("endpoints"),
            opts=self.own(),
        )
        aws.vpc.SecurityGroupIngressRule(
            self.child("endpoints-https"),
            security_group_id=group.id,
            cidr_ipv4=str(plan.vpc_cidr),
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            tags=self.tags("endpoints-https"),
            opts=self.own(),
        )
        for service in plan.interface_endpoints:
            aws.ec2.VpcEndpoint(
                self.child(f"endpoint-{service}"),
                vpc_id=self.vpc.id,
                service_name=f"com.amazonaws.{plan.region}.{service}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[subnet.id for subnet in self.subnets.values()],
                security_group_ids=[group.id],
                tags=self.tags(f"endpoint-{service}"),
                opts=self.own(),
            )

    def _table(self, key: str) -> aws.ec2.RouteTable:
        return aws.ec2.RouteTable(
            self.child(f"{key}-routes"), vpc_id=self.vpc.id, tags=self.tags(f"{key}-routes"), opts=self.own()
        )

    def _route(self, key: str, table: aws.ec2.RouteTable, **target: pulumi.Input[str]) -> aws.ec2.Route:
        return aws.ec2.Route(
            self.child(key), route_table_id=table.id, destination_cidr_block="0.0.0.0/0", opts=self.own(), **target
        )

    def _associate(self, key: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable) -> None:
        aws.ec2.RouteTableAssociation(
            self.child(f"{key}-association"), subnet_id=subnet.id, route_table_id=table.id, opts=self.own()
        )
