"""The cluster's private DNS zone, in which machines find each other."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.cluster import ClusterPlan

_HEAD_TTL_S = 60  # a replaced head keeps its address, so this only limits how long a failed first look-up lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesArgs:
    """The VPC in which the zone resolves."""

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
            force_destroy=True,  # the agent's records must not block deletion of the zone
            tags=self.tags("names"),
            opts=self.child_options(),
        )
        aws.route53.Record(
            self.child("head"),
            zone_id=self.zone.zone_id,
            name=f"{plan.head.host_name}.{plan.dns_zone}",
            type="A",
            ttl=_HEAD_TTL_S,
            records=[str(plan.head.address)],
            opts=self.child_options(),
        )
        self.register_outputs({"zone": self.zone.zone_id})
