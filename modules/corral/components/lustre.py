"""FSx for Lustre file systems, linked to S3: of a cluster, or retained by a base."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_aws as aws

from corral.components.component import Component
from corral.model.lustre import DataLinkPlan, LustrePlan
from corral.model.tags import KEEP_LUSTRE_GROUP, KEEP_LUSTRE_PREFIX

_LUSTRE_VERSION = "2.15"  # the newest that every client kernel of the image profiles can mount
# The provider waits half an hour for a file system and ten minutes for a link, which does not suffice for large ones: a
# file system with the older ImportPath took an hour for four million objects (aws/aws-parallelcluster#4211). What timed
# out is replaced by the next `up`, and imports from the start.
_SYSTEM_TIMEOUTS = pulumi.CustomTimeouts(create="2h", update="2h", delete="1h")
_LINK_TIMEOUTS = pulumi.CustomTimeouts(create="24h", update="1h", delete="1h")
# Source: FSx for Lustre User Guide, "File system access control with Amazon VPC".
PORTS = ((988, 988), (1018, 1023))


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreArgs:
    """`owner`: the cluster's or base's name. `subnets`: one per zone; a file system takes that of its own zone.

    `group_rules`: those that open the group to itself. FSx creates no file system before they exist.
    `retained_ids`: by name, the file systems from an earlier deployment of the base.
    """

    owner: str
    systems: Sequence[LustrePlan]
    subnets: Mapping[str, pulumi.Input[str]]
    group: pulumi.Input[str]
    group_rules: Sequence[pulumi.Resource]
    key_arn: pulumi.Input[str]
    retained_ids: Mapping[str, str] = field(default_factory=dict)


class Lustre(Component):
    """File systems by name."""

    def __init__(self, name: str, args: LustreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Lustre", name, f"corral-{args.owner}", opts)
        self.systems = {system.name: self._system(system, args) for system in args.systems}
        self.register_outputs({"systems": [system.id for system in self.systems.values()]})

    def _system(self, plan: LustrePlan, args: LustreArgs) -> aws.fsx.LustreFileSystem:
        persistent = plan.deployment.startswith("PERSISTENT")
        tags = self.tags(plan.name, keep=keep_tag_value(plan.name)) if plan.retained else self.tags(plan.name)
        more = {"depends_on": args.group_rules, "custom_timeouts": _SYSTEM_TIMEOUTS}
        system = aws.fsx.LustreFileSystem(
            self.child(plan.name),
            deployment_type=plan.deployment,
            storage_type=plan.disks,
            storage_capacity=plan.size_gib,
            per_unit_storage_throughput=plan.throughput_mbps_per_tib,
            drive_cache_type=("READ" if plan.drive_cache else "NONE") if plan.disks == "HDD" else None,
            efa_enabled=True if plan.efa else None,
            metadata_configuration=_metadata(plan),
            automatic_backup_retention_days=plan.backup_days if persistent else None,
            daily_automatic_backup_start_time=plan.backup_at,
            root_squash_configuration=_squash(plan),
            subnet_ids=args.subnets[plan.zone_id],
            security_group_ids=[args.group],
            kms_key_id=args.key_arn if persistent else None,  # scratch file systems always use FSx's own key
            data_compression_type="NONE" if plan.compression == "none" else plan.compression,
            file_system_type_version=_LUSTRE_VERSION,
            tags=tags,
            opts=self.retained_options(args.retained_ids.get(plan.name), **more)
            if plan.retained
            else self.child_options(**more),
        )
        for link in plan.data:
            self._link(plan, link, system)
        return system

    def _link(self, plan: LustrePlan, link: DataLinkPlan, system: aws.fsx.LustreFileSystem) -> None:
        key = f"{plan.name}-{link.path.strip('/').replace('/', '-')}"
        aws.fsx.DataRepositoryAssociation(
            self.child(key),
            file_system_id=system.id,
            file_system_path=link.path,
            data_repository_path=link.s3,
            batch_import_meta_data_on_create=True,
            delete_data_in_filesystem=False,
            s3=_policies(link),
            tags=self.tags(key),
            opts=self.child_options(custom_timeouts=_LINK_TIMEOUTS),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreGroupArgs:
    """`efa`: whether clients reach any of the file systems by EFA. `retained_ids`: from an earlier deployment."""

    owner: str
    vpc_id: pulumi.Input[str]
    efa: bool
    retained_ids: Mapping[str, str] = field(default_factory=dict)


class LustreGroup(Component):
    """The security group of a base's file systems: its servers talk to each other; each cluster adds its own rules.

    It is retained with the file systems, because their interfaces use it.
    """

    def __init__(self, name: str, args: LustreGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("LustreGroup", name, f"corral-{args.owner}", opts)
        self._kept = args.retained_ids
        self.group = aws.ec2.SecurityGroup(
            self.child("group"),
            vpc_id=args.vpc_id,
            description="Lustre that is kept: its servers, and the clusters of this base",
            tags=self.tags("lustre", keep=KEEP_LUSTRE_GROUP),
            opts=self.retained_options(args.retained_ids.get(KEEP_LUSTRE_GROUP)),
        )
        sides = (("in", aws.vpc.SecurityGroupIngressRule), ("out", aws.vpc.SecurityGroupEgressRule))
        self.rules = [
            self._rule(make, f"{side}-{key}", rule)
            for key, rule in lustre_rules(efa=args.efa).items()
            for side, make in sides
        ]
        self.register_outputs({"group": self.group.id})

    def _rule(
        self, make: Callable[..., pulumi.CustomResource], key: str, rule: Mapping[str, str | int]
    ) -> pulumi.CustomResource:
        word = f"lustre-{key}"
        return make(
            self.child(key),
            security_group_id=self.group.id,
            referenced_security_group_id=self.group.id,
            tags=self.tags(word, keep=word),
            opts=self.retained_options(self._kept.get(word)),
            **rule,
        )


def keep_tag_value(name: str) -> str:
    """The keep tag of a base's file system of this name."""
    return f"{KEEP_LUSTRE_PREFIX}{name}"


def lustre_rules(*, efa: bool) -> Mapping[str, Mapping[str, str | int]]:
    """The rules that servers and clients of Lustre need, by key; EFA needs all traffic."""
    if efa:
        return {"all": {"ip_protocol": "-1"}}
    return {str(first): {"ip_protocol": "tcp", "from_port": first, "to_port": last} for first, last in PORTS}


def _metadata(plan: LustrePlan) -> aws.fsx.LustreFileSystemMetadataConfigurationArgs | None:
    """Only PERSISTENT_2 has metadata IOPS; with EFA the mode must be explicit."""
    if plan.metadata_iops is not None:
        return aws.fsx.LustreFileSystemMetadataConfigurationArgs(mode="USER_PROVISIONED", iops=plan.metadata_iops)
    return aws.fsx.LustreFileSystemMetadataConfigurationArgs(mode="AUTOMATIC") if plan.efa else None


def _squash(plan: LustrePlan) -> aws.fsx.LustreFileSystemRootSquashConfigurationArgs | None:
    if plan.root_squash is None:
        return None
    return aws.fsx.LustreFileSystemRootSquashConfigurationArgs(
        root_squash=plan.root_squash, no_squash_nids=list(plan.trusted_nids) or None
    )


def _policies(link: DataLinkPlan) -> aws.fsx.DataRepositoryAssociationS3Args:
    """Automatic import and export; FSx accepts no policy without events."""
    imports = aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=list(link.imports))
    exports = aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=list(link.exports))
    return aws.fsx.DataRepositoryAssociationS3Args(
        auto_import_policy=imports if link.imports else None, auto_export_policy=exports if link.exports else None
    )
