"""Declared Lustre file systems to planned ones."""

from collections.abc import Iterable

from corral.model.lustre import DataLinkPlan, LustrePlan
from corral.spec.lustre import LustreSpec


def plan_lustre(systems: Iterable[LustreSpec], main_zone: str, *, kept: bool) -> tuple[LustrePlan, ...]:
    """The file systems by name; those that name no zone stand in the main one."""
    return tuple(_system(system, main_zone, kept=kept) for system in sorted(systems, key=lambda system: system.name))


def _system(spec: LustreSpec, main_zone: str, *, kept: bool) -> LustrePlan:
    backups, squash = spec.backups, spec.root_squash
    return LustrePlan(
        name=spec.name,
        zone_id=spec.zone or main_zone,
        size_gib=spec.size_gib,
        deployment=spec.deployment,
        mount=spec.mount_point,
        data=tuple(
            DataLinkPlan(path=link.path, s3=link.s3, imports=link.imports, exports=link.exports)
            for link in sorted(spec.data, key=lambda link: link.path)
        ),
        kept=kept,
        disks=spec.disks,
        throughput_mbps_per_tib=spec.throughput,
        drive_cache=spec.drive_cache,
        efa=spec.efa,
        metadata_iops=spec.metadata_iops,
        compression=spec.compression,
        backup_days=backups.keep_days if backups else 0,
        backup_at=backups.at if backups else None,
        root_squash=squash.to if squash else None,
        trusted_nids=squash.trusted if squash else (),
    )
