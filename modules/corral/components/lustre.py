"""FSx for Lustre file systems that live and die with a cluster, linked to S3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from corral.components.children import Component
from corral.model.cluster import ClusterPlan, DataLinkPlan, LustrePlan

_LUSTRE_VERSION = "2.15"  # the newest that every client kernel of the image profiles can mount


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreArgs:
    """`subnets`: one per zone id; a file system takes an address in that of its own zone."""

    plan: ClusterPlan
    subnets: Mapping[str, pulumi.Input[str]]
    group: pulumi.Input[str]


class Lustre(Component):
    """The cluster's file systems by name."""

    def __init__(self, name: str, args: LustreArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("Lustre", name, f"corral-{args.plan.name}", opts)
        self.systems = {system.name: self._system(system, args) for system in args.plan.lustre}
        self.register_outputs({"systems": [system.id for system in self.systems.values()]})

    def _system(self, plan: LustrePlan, args: LustreArgs) -> aws.fsx.LustreFileSystem:
        system = aws.fsx.LustreFileSystem(
            self.child(plan.name),
            deployment_type=plan.deployment,
            storage_capacity=plan.size_gib,
            subnet_ids=args.subnets[plan.zone_id],
            security_group_ids=[args.group],
            data_compression_type="LZ4",
            file_system_type_version=_LUSTRE_VERSION,
            tags=self.tags(plan.name),
            opts=self.own(),
        )
        for link in plan.data:
            self._link(plan.name, link, system)
        return system

    def _link(self, name: str, link: DataLinkPlan, system: aws.fsx.LustreFileSystem) -> None:
        key = f"{name}-{link.path.strip('/').replace('/', '-')}"
        aws.fsx.DataRepositoryAssociation(
            self.child(key),
            file_system_id=system.id,
            file_system_path=link.path,
            data_repository_path=link.s3,
            batch_import_meta_data_on_create=True,
            delete_data_in_filesystem=False,
            s3=_policies(link),
            tags=self.tags(key),
            opts=self.own(),
        )


def _policies(link: DataLinkPlan) -> aws.fsx.DataRepositoryAssociationS3Args:
    """What goes by itself between bucket and file system; FSx takes no policy without events."""
    imports = aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=list(link.imports))
    exports = aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=list(link.exports))
    return aws.fsx.DataRepositoryAssociationS3Args(
        auto_import_policy=imports if link.imports else None, auto_export_policy=exports if link.exports else None
    )
