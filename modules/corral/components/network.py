"""The VPC of a base: private subnets, one public subnet for the NAT gateway, endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.base import BasePlan, PublicPlan, ZonePlan
from corral.model.zones import is_zone_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkArgs:
    """What a network is made of; all of it is known before anything exists.

    `kept_ids`: by word, what an earlier life of the base had to keep because file systems stand in it.
    """

    plan: BasePlan
    public: PublicPlan
    kept_ids: Mapping[str, str] = field(default_factory=dict)


class Network(Component):
    """A VPC whose machines reach out through NAT and to S3 directly, and are never reached from outside."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("Network", name, f"corral-{plan.name}", opts)
        self._kept_ids, self._holding = args.kept_ids, {system.zone_id for system in plan.lustre}
        self.vpc = aws.ec2.Vpc(
            self.child("vpc"),
            cidr_block=str(plan.vpc_cidr),
            enable_dns_hostnames=True,  # private zones, EFS and interface endpoints answer by name only with both flags
            enable_dns_support=True,
            tags=self._tags("vpc", bool(self._holding)),
            opts=self._opts("vpc", bool(self._holding)),
        )
        self._nat = self._way_out(args.public)
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

    def _way_out(self, public: PublicPlan) -> aws.ec2.NatGateway:
        gateway = aws.ec2.InternetGateway(
            self.child("internet"), vpc_id=self.vpc.id, tags=self.tags("internet"), opts=self.own()
        )
        subnet = aws.ec2.Subnet(
            self.child("public"),
            vpc_id=self.vpc.id,
            cidr_block=str(public.cidr),
            **_in_zone(public.zone_id),
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
                subnet_ids=list(self.subnets.values()),
                security_group_ids=[group.id],
                tags=self.tags(f"endpoint-{service}"),
                opts=self.own(),
            )

    def _tags(self, key: str, holding: bool) -> Mapping[str, str]:
        return self.tags(key, corral__keep=f"network-{key}") if holding else self.tags(key)

    def _opts(self, key: str, holding: bool) -> pulumi.ResourceOptions:
        """Kept where a kept file system stands in it: its interfaces would not let it go."""
        return self.kept(self._kept_ids.get(f"network-{key}")) if holding else self.own()

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


class AdoptedNetwork:
    """A VPC of somebody else's, as far as others of ours refer to it. Nothing is made."""

    def __init__(self, plan: BasePlan, through: aws.Provider) -> None:
        found = {zone.zone_id: _subnet(zone, through) for zone in plan.zones}
        self.vpc_id: pulumi.Input[str] = plan.adopted_vpc or ""
        self.subnets: Mapping[str, pulumi.Input[str]] = {zone: subnet.id for zone, subnet in found.items()}
        self.zone_names = {zone: subnet.availability_zone for zone, subnet in found.items()}


def _subnet(zone: ZonePlan, through: aws.Provider) -> aws.ec2.GetSubnetResult:
    return aws.ec2.get_subnet(id=zone.subnet, opts=pulumi.InvokeOptions(provider=through))


def _in_zone(zone: str) -> Mapping[str, str]:
    """The argument that places a subnet: AWS takes a zone's id and its name in two."""
    return {"availability_zone_id" if is_zone_id(zone) else "availability_zone": zone}
