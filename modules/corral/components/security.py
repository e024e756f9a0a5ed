"""The cluster's security group, open to itself as EFA requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.components.lustre import lustre_rules
from corral.model.cluster import ClusterPlan

_NFS = 2049


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityArgs:
    """`home_group`, `lustre_group`: the security groups of the base's home and of its Lustre, if any."""

    plan: ClusterPlan
    vpc_id: pulumi.Input[str]
    home_group: pulumi.Input[str] | None
    lustre_group: pulumi.Input[str] | None


class Security(Component):
    """The cluster's group: all traffic among its members and outbound, nothing inbound."""

    def __init__(self, name: str, args: SecurityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Security", name, f"corral-{args.plan.name}", opts)
        self.group = aws.ec2.SecurityGroup(
            self.child("group"),
            vpc_id=args.vpc_id,
            description=f"corral cluster {args.plan.name}: machines and Lustre",
            tags=self.tags("machines"),
            opts=self.child_options(),
        )
        group = self.group.id
        # EFA fails silently unless the group allows all traffic to and from itself, both ways and by reference.
        itself = {"security_group_id": group, "referenced_security_group_id": group, "ip_protocol": "-1"}
        self.rules_to_itself: Sequence[pulumi.Resource] = [
            self._ingress("from-itself", **itself),
            self._egress("to-itself", **itself),
        ]
        self._egress("out", security_group_id=group, cidr_ipv4="0.0.0.0/0", ip_protocol="-1")
        if args.home_group is not None:
            self._ingress(
                "home",
                security_group_id=args.home_group,
                referenced_security_group_id=group,
                ip_protocol="tcp",
                from_port=_NFS,
                to_port=_NFS,
            )
        if args.lustre_group is not None:
            self._meet_lustre(args.lustre_group, efa=any(system.efa and system.retained for system in args.plan.lustre))
        self.register_outputs({"group": group})

    def _meet_lustre(self, lustre: pulumi.Input[str], *, efa: bool) -> None:
        """Servers call back their clients, so both directions are open; EFA also needs egress by reference."""
        group = self.group.id
        for key, rule in lustre_rules(efa=efa).items():
            for side, own, other in (("servers", lustre, group), ("clients", group, lustre)):
                ends = {"security_group_id": own, "referenced_security_group_id": other}
                self._ingress(f"lustre-{side}-in-{key}", **ends, **rule)
                self._egress(f"lustre-{side}-out-{key}", **ends, **rule)

    def _ingress(self, key: str, **rule: pulumi.Input[str] | int) -> aws.vpc.SecurityGroupIngressRule:
        return aws.vpc.SecurityGroupIngressRule(self.child(key), tags=self.tags(key), opts=self.child_options(), **rule)

    def _egress(self, key: str, **rule: pulumi.Input[str] | int) -> aws.vpc.SecurityGroupEgressRule:
        return aws.vpc.SecurityGroupEgressRule(self.child(key), tags=self.tags(key), opts=self.child_options(), **rule)
