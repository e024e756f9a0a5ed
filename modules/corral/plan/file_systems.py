"""Plan Lustre file systems from their specs."""

from collections.abc import Iterable

from corral.model.lustre import DataLinkPlan, LustrePlan
from corral.spec.models.lustre import LustreSpec


def plan_lustre(systems: Iterable[LustreSpec], main_zone: str, *, retained: bool) -> tuple[LustrePlan, ...]:
    """Return the file systems by name; their zone defaults to the main one."""
    return tuple(
        _system(system, main_zone, retained=retained) for system in sorted(systems, key=lambda system: system.name)
    )


def _system(spec: LustreSpec, main_zone: str, *, retained: bool) -> LustrePlan:
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
        retained=retained,
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
