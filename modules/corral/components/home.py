"""/home on EFS, mountable in every zone of the base. The file system is retained; its mount targets are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.base import BasePlan, HomePlan
from corral.model.tags import KEEP_HOME


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeArgs:
    """`subnets`: one per zone id. `retained_id`: the file system from an earlier deployment of this base."""

    plan: BasePlan
    home: HomePlan
    vpc_id: pulumi.Input[str]
    subnets: Mapping[str, pulumi.Input[str]]
    key_arn: pulumi.Input[str]
    retained_id: str | None


class Home(Component):
    """An encrypted file system. Each cluster adds a rule for its machines to `group`."""

    def __init__(self, name: str, args: HomeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Home", name, f"corral-{args.plan.name}", opts)
        self.file_system = aws.efs.FileSystem(
            self.child("file-system"),
            creation_token=args.home.token,
            encrypted=True,
            kms_key_id=args.key_arn,
            throughput_mode=args.home.throughput,
            tags=self.tags("home", keep=KEEP_HOME),
            opts=self.retained_options(args.retained_id),
        )
        self.group = aws.ec2.SecurityGroup(
            self.child("group"),
            vpc_id=args.vpc_id,
            description="EFS home: NFS from the clusters of this base",
            tags=self.tags("home"),
            opts=self.child_options(),
        )
        for zone_id, subnet in args.subnets.items():
            aws.efs.MountTarget(
                self.child(f"mount-{zone_id}"),
                file_system_id=self.file_system.id,
                subnet_id=subnet,
                security_groups=[self.group.id],
                opts=self.child_options(),
            )
        self.register_outputs({"file_system": self.file_system.id})
