"""The head node: an interface with a fixed address and a state volume, which outlive the instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.components.instance_defaults import METADATA
from corral.model.cluster import ClusterPlan
from corral.model.tags import ADMINS_TAG


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadArgs:
    """`zone_name`: the account's name of the zone, for the volume. `needs`: what must exist before the head boots."""

    plan: ClusterPlan
    image_id: pulumi.Input[str]
    profile_name: pulumi.Input[str]
    group: pulumi.Input[str]
    key_arn: pulumi.Input[str]
    subnet_id: pulumi.Input[str]
    zone_name: pulumi.Input[str]
    user_data: pulumi.Input[str]
    needs: Sequence[pulumi.Resource]


class Head(Component):
    """A replaceable instance: the next deployment attaches the interface and volume to a new one."""

    def __init__(self, name: str, args: HeadArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Head", name, f"corral-{args.plan.name}", opts)
        plan = args.plan.head
        self.interface = aws.ec2.NetworkInterface(
            self.child("interface"),
            subnet_id=args.subnet_id,
            private_ips=[str(plan.address)],
            security_groups=[args.group],
            description=f"corral cluster {args.plan.name}: the head's fixed address",
            tags=self.tags("head"),
            opts=self.child_options(),
        )
        self.volume = aws.ebs.Volume(
            self.child("state"),
            availability_zone=args.zone_name,
            size=plan.state_gib,
            type="gp3",
            encrypted=True,
            kms_key_id=args.key_arn,
            tags=self.tags("head-state"),
            opts=self.child_options(),
        )
        self.instance = self._instance(args)
        aws.ec2.VolumeAttachment(
            self.child("state-attachment"),
            device_name=plan.state_device,
            volume_id=self.volume.id,
            instance_id=self.instance.id,
            # EC2 detaches a mounted volume only after the instance stops; until then it stays in `detaching`, and a
            # replaced head would never come back. A stop by the API is not a shutdown from within, so it does
            # not terminate.
            stop_instance_before_detaching=True,
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.register_outputs({"instance": self.instance.id})

    def _instance(self, args: HeadArgs) -> aws.ec2.Instance:
        plan = args.plan.head
        return aws.ec2.Instance(
            self.child("instance"),
            ami=args.image_id,
            instance_type=plan.instance_type,
            iam_instance_profile=args.profile_name,
            primary_network_interface=aws.ec2.InstancePrimaryNetworkInterfaceArgs(
                network_interface_id=self.interface.id
            ),
            metadata_options=aws.ec2.InstanceMetadataOptionsArgs(**METADATA),
            root_block_device=aws.ec2.InstanceRootBlockDeviceArgs(
                volume_type="gp3",
                volume_size=plan.root_gib,
                encrypted=True,
                kms_key_id=args.key_arn,
                delete_on_termination=True,
                tags={**args.plan.tags, **self.tags("head-root")},
            ),
            instance_initiated_shutdown_behavior="terminate",
            user_data=args.user_data,
            tags={**self.tags("head"), **({ADMINS_TAG: "only"} if args.plan.login else {})},
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=args.needs,
                delete_before_replace=True,  # the interface fits one instance at a time
                # New user data or another image would stop or replace a head under running jobs: the agent brings a
                # running head up to date, and a new head starts with the current ones.
                ignore_changes=["userData", "ami"],
            ),
        )
