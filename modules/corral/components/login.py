"""Login nodes: instances without state in a security group of their own, each with a name in the cluster's zone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.components.instance_defaults import METADATA
from corral.components.lustre import lustre_rules
from corral.model.cluster import ClusterPlan, LoginPlan
from corral.model.tags import LOGIN_TAG

_TTL_S = 60  # a replaced login node has another address
_NFS = 2049
# Between login nodes and the other machines: ssh, and the ports of programs without root. These are Slurm's daemons,
# the ports that the kernel gives to a waiting srun, and what people reach through tunnels, such as notebooks on nodes.
_PORTS = {"ssh": (22, 22), "programs": (1024, 65535)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginArgs:
    """`machines`, `home_group`, `lustre_group`: groups of the cluster's other machines, of the base's home and Lustre.

    `login`: that of the plan. `subnets`: one per zone. `zone`: the cluster's hosted zone. `needs`: what must exist
    before a login node boots.
    """

    plan: ClusterPlan
    login: LoginPlan
    vpc_id: pulumi.Input[str]
    machines: pulumi.Input[str]
    home_group: pulumi.Input[str] | None
    lustre_group: pulumi.Input[str] | None
    image_id: pulumi.Input[str]
    profile_name: pulumi.Input[str]
    key_arn: pulumi.Input[str]
    subnets: Mapping[str, pulumi.Input[str]]
    zone: pulumi.Input[str]
    user_data: pulumi.Input[str]
    needs: Sequence[pulumi.Resource]


class Login(Component):
    """The login nodes by name. Each is replaceable: homes are shared, and the agent brings the rest."""

    def __init__(self, name: str, args: LoginArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Login", name, f"corral-{args.plan.name}", opts)
        self.group = aws.ec2.SecurityGroup(
            self.child("group"),
            vpc_id=args.vpc_id,
            description=f"corral cluster {args.plan.name}: login nodes",
            tags=self.tags("login"),
            opts=self.child_options(),
        )
        self._open(args)
        self.instances = {key: self._instance(key, zone, args) for key, zone in args.login.zones.items()}
        for key, instance in self.instances.items():
            aws.route53.Record(
                self.child(f"{key}-name"),
                zone_id=args.zone,
                name=f"{key}.{args.plan.dns_zone}",
                type="A",
                ttl=_TTL_S,
                records=[instance.private_ip],
                opts=self.child_options(),
            )
        self.register_outputs({"instances": [instance.id for instance in self.instances.values()]})

    def _open(self, args: LoginArgs) -> None:
        """All outbound traffic; to and from the other machines what people need; the shared file systems."""
        group = self.group.id
        aws.vpc.SecurityGroupEgressRule(
            self.child("out"),
            security_group_id=group,
            cidr_ipv4="0.0.0.0/0",
            ip_protocol="-1",
            tags=self.tags("out"),
            opts=self.child_options(),
        )
        for key, (first, last) in _PORTS.items():
            ports = _tcp(first, last)
            self._ingress(f"to-machines-{key}", args.machines, group, ports)
            self._ingress(f"of-machines-{key}", group, args.machines, ports)
        if args.home_group is not None:
            self._ingress("home", args.home_group, group, _tcp(_NFS, _NFS))
        for key, servers in _lustre_groups(args):
            for port, rule in lustre_rules(efa=False).items():
                # Servers call back their clients. All groups of a cluster may send anywhere; a base's Lustre may not.
                self._ingress(f"{key}-servers-{port}", servers, group, rule)
                self._ingress(f"{key}-clients-{port}", group, servers, rule)
                if servers is args.lustre_group:
                    aws.vpc.SecurityGroupEgressRule(
                        self.child(f"{key}-out-{port}"),
                        security_group_id=servers,
                        referenced_security_group_id=group,
                        tags=self.tags(f"{key}-out-{port}"),
                        opts=self.child_options(),
                        **rule,
                    )

    def _ingress(self, key: str, to: pulumi.Input[str], by: pulumi.Input[str], rule: Mapping[str, str | int]) -> None:
        aws.vpc.SecurityGroupIngressRule(
            self.child(key),
            security_group_id=to,
            referenced_security_group_id=by,
            tags=self.tags(key),
            opts=self.child_options(),
            **rule,
        )

    def _instance(self, key: str, zone: str, args: LoginArgs) -> aws.ec2.Instance:
        return aws.ec2.Instance(
            self.child(key),
            ami=args.image_id,
            instance_type=args.login.instance_type,
            iam_instance_profile=args.profile_name,
            subnet_id=args.subnets[zone],
            vpc_security_group_ids=[self.group.id],
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(**METADATA),
            root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
                volume_type="gp3",
                volume_size=args.login.root_gib,
                encrypted=True,
                kms_key_id=args.key_arn,
                delete_on_termination=True,
                tags={**args.plan.tags, **self.tags(f"{key}-root")},
            ),
            instance_initiated_shutdown_behavior="terminate",
            user_data=args.user_data,
            tags={**self.tags(key), LOGIN_TAG: key},
            # As for the head: new user data or another image would end people's sessions, and the agent follows the
            # configuration. The next `up` replaces a login node that has terminated.
            opts=self.child_options(depends_on=args.needs, ignore_changes=["userData", "ami"]),
        )


def _tcp(first: int, last: int) -> Mapping[str, str | int]:
    return {"ip_protocol": "tcp", "from_port": first, "to_port": last}


def _lustre_groups(args: LoginArgs) -> Iterator[tuple[str, pulumi.Input[str]]]:
    """The groups of Lustre servers: the cluster's own are in that of its machines."""
    if args.plan.own_lustre:
        yield "lustre", args.machines
    if args.lustre_group is not None:
        yield "kept-lustre", args.lustre_group
