"""The cluster's names: a private DNS zone in which machines find each other."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.cluster import ClusterPlan

_HEAD_TTL_S = 60  # a replaced head has the same address, so this only bounds how long a first look-up's miss lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesArgs:
    """Where the zone answers."""

    plan: ClusterPlan
    vpc_id: pulumi.Input[str]


class Names(Component):
    """A private hosted zone with the head in it; the agent adds and removes the nodes."""

    def __init__(self, name: str, args: NamesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        plan = args.plan
        super().__init__("Names", name, f"corral-{plan.name}", opts)
        self.zone = aws.route53.Zone(
            self.child("zone"),
            name=plan.dns_zone,
            comment=f"corral cluster {plan.name}: machines",
            vpcs=[aws.route53.ZoneVpcArgs(vpc_id=args.vpc_id)],
            force_destroy=True,  # records of nodes are the agent's; they must not keep the zone alive
            tags=self.tags("names"),
            opts=self.own(),
        )
        aws.route53.Record(
            self.child("head"),
            zone_id=self.zone.zone_id,
            name=f"{plan.head.host_name}.{plan.dns_zone}",
            type="A",
            ttl=_HEAD_TTL_S,
            records=[str(plan.head.address)],
            opts=self.own(),
        )
        self.register_outputs({"zone": self.zone.zone_id})
