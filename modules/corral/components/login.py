"""Login nodes: instances without state in a security group of their own, each with a name in the cluster's zone.

A load balancer, if the plan has one, lets people reach them by ssh from its networks (decision 223).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.components.instance_defaults import METADATA
from corral.components.lustre import lustre_rules
from corral.model.cluster import ClusterPlan, LoadBalancerPlan, LoginPlan
from corral.model.tags import LOGIN_TAG

_TTL_S = 60  # a replaced login node has another address
_NFS, _SSH = 2049, 22
# A target is left out after two failed connections; sessions of a replaced node have ended with it, so nothing drains.
_CHECK_EVERY_S, _FAILED_CHECKS, _DRAIN_S = 10, 2, 0
# Between login nodes and the other machines: ssh, and the ports of programs without root. These are Slurm's daemons,
# the ports that the kernel gives to a waiting srun, and what people reach through tunnels, such as notebooks on nodes.
_PORTS = {"ssh": (22, 22), "programs": (1024, 65535)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginArgs:
    """`machines`, `home_group`, `lustre_group`: groups of the cluster's other machines, of the base's home and Lustre.

    `login`: that of the plan. `subnets`: one per zone. `balancer_subnets`: those of the load balancer, if any.
    `zone`: the cluster's hosted zone. `needs`: what must exist before a login node boots.
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
    balancer_subnets: Sequence[pulumi.Input[str]] = ()


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
        key = self._host_key(args) if args.login.load_balancer else None
        needs = (*args.needs, *([key] if key else []))
        self.instances = {name: self._instance(name, zone, args, needs) for name, zone in args.login.zones.items()}
        if args.login.load_balancer:
            self._balance(args, args.login.load_balancer)
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

    def _host_key(self, args: LoginArgs) -> aws.secretsmanager.Secret:
        """The secret with the key that all login nodes show to ssh: people see one host."""
        return aws.secretsmanager.Secret(
            self.child("host-key"),
            name=args.plan.host_key_secret,
            description="The host key of login nodes; the first one puts it here, so it is in no state file",
            kms_key_id=args.key_arn,
            recovery_window_in_days=0,  # the name must be free again, and a new key is made
            tags=self.tags("host-key"),
            opts=self.child_options(),
        )

    def _balance(self, args: LoginArgs, balancer: LoadBalancerPlan) -> None:
        """Forward ssh from the allowed networks to the login nodes. These see the addresses of people, not its own.

        Login nodes admit its group alone; with this reference EC2 compares the people's addresses with its rules.
        Source: Network Load Balancers' user guide, "Update the security groups for your Network Load Balancer" and
        "Client IP preservation".
        """
        group = aws.ec2.SecurityGroup(
            self.child("load-balancer-group"),
            vpc_id=args.vpc_id,
            description=f"corral cluster {args.plan.name}: load balancer of login nodes",
            tags=self.tags("load-balancer"),
            opts=self.child_options(),
        )
        ssh = _tcp(_SSH, _SSH)
        for network in balancer.allow:
            key = f"people-{network}".replace("/", "-")
            aws.vpc.SecurityGroupIngressRule(
                self.child(key),
                security_group_id=group.id,
                cidr_ipv4=str(network),
                tags=self.tags(key),
                opts=self.child_options(),
                **ssh,
            )
        aws.vpc.SecurityGroupEgressRule(
            self.child("load-balancer-out"),
            security_group_id=group.id,
            referenced_security_group_id=self.group.id,
            tags=self.tags("load-balancer-out"),
            opts=self.child_options(),
            **ssh,
        )
        self._ingress("of-load-balancer", self.group.id, group.id, ssh)
        front = aws.lb.LoadBalancer(
            self.child("balancer"),
            load_balancer_type="network",
            internal=balancer.is_internal,
            security_groups=[group.id],
            subnets=list(args.balancer_subnets),
            enable_cross_zone_load_balancing=True,  # for an address in a zone whose login nodes are lost
            tags=self.tags("load-balancer"),
            opts=self.child_options(),
        )
        targets = aws.lb.TargetGroup(
            self.child("targets"),
            protocol="TCP",
            port=_SSH,
            target_type="instance",
            vpc_id=args.vpc_id,
            preserve_client_ip="true",
            deregistration_delay=_DRAIN_S,
            # All connections of a person come to one node, so that tmux and an editor's server are found again.
            stickiness=aws.lb.TargetGroupStickinessArgs(type="source_ip", enabled=True),
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                protocol="TCP",
                port=str(_SSH),
                interval=_CHECK_EVERY_S,
                healthy_threshold=_FAILED_CHECKS,
                unhealthy_threshold=_FAILED_CHECKS,
            ),
            tags=self.tags("targets"),
            opts=self.child_options(),
        )
        aws.lb.Listener(
            self.child("listener"),
            load_balancer_arn=front.arn,
            protocol="TCP",
            port=_SSH,
            default_actions=[aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=targets.arn)],
            tags=self.tags("listener"),
            opts=self.child_options(),
        )
        for name, instance in self.instances.items():
            aws.lb.TargetGroupAttachment(
                self.child(f"{name}-target"),
                target_group_arn=targets.arn,
                target_id=instance.id,
                opts=self.child_options(),
            )

    def _instance(self, key: str, zone: str, args: LoginArgs, needs: Sequence[pulumi.Resource]) -> aws.ec2.Instance:
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
            opts=self.child_options(depends_on=needs, ignore_changes=["userData", "ami"]),
        )


def _tcp(first: int, last: int) -> Mapping[str, str | int]:
    return {"ip_protocol": "tcp", "from_port": first, "to_port": last}


def _lustre_groups(args: LoginArgs) -> Iterator[tuple[str, pulumi.Input[str]]]:
    """The groups of Lustre servers: the cluster's own are in that of its machines."""
    if args.plan.own_lustre:
        yield "lustre", args.machines
    if args.lustre_group is not None:
        yield "kept-lustre", args.lustre_group
