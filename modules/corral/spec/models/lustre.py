"""The fields of an FSx for Lustre file system, of a base or of a cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corral.spec.models.base_model import SpecRecord

DataEvent = Literal["NEW", "CHANGED", "DELETED"]
_LONGEST_BACKUP_DAYS = 90  # FSx API reference, AutomaticBackupRetentionDays


class DataLinkSpec(SpecRecord):
    """A link between a directory of a Lustre file system and an S3 prefix."""

    path: str = Field(description="Directory inside the file system, such as /data.")
    s3: str = Field(description="Linked bucket or prefix: s3://bucket or s3://bucket/prefix.")
    imports: tuple[DataEvent, ...] = Field(
        default=("NEW", "CHANGED", "DELETED"),
        alias="import",
        description="Changes in S3 to import automatically. Default: all three.",
    )
    exports: tuple[DataEvent, ...] = Field(
        default=(),
        alias="export",
        description="Changes in the file system to export to S3 automatically. Default: none.",
    )


class BackupsSpec(SpecRecord):
    """Daily backups of a persistent file system, billed by size."""

    keep_days: int = Field(ge=1, le=_LONGEST_BACKUP_DAYS, description="Days to keep each backup.")
    at: str | None = Field(default=None, description="Start time in UTC, such as 04:30. Default: chosen by FSx.")


class RootSquashSpec(SpecRecord):
    """Map root on a machine to another user of the file system."""

    to: str = Field(description="User and group id that root maps to, such as 65534:65534.")
    trusted: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Machines exempt from root squash: Lustre NIDs such as 10.64.0.10@tcp. Default: none.",
    )


class LustreSpec(SpecRecord):
    """An FSx for Lustre file system: retained if a base declares it, deleted with the cluster if a cluster does."""

    name: str = Field(description="Name of the file system: lowercase letters, digits, hyphens.")
    size_gib: int = Field(ge=1, description="Size in GiB. On SSD: 1200, 2400, then steps of 2400.")
    deployment: str = Field(
        default="SCRATCH_2",
        description="FSx deployment type: SCRATCH_2, PERSISTENT_1 or PERSISTENT_2. Default: SCRATCH_2.",
    )
    disks: Literal["SSD", "HDD"] = Field(
        default="SSD", description="Storage type; HDD only with PERSISTENT_1. Default: SSD."
    )
    throughput: int | None = Field(
        default=None, ge=1, description="MB/s per TiB. Required for persistent deployments, fixed for SCRATCH_2."
    )
    drive_cache: bool = Field(
        default=False, description="Add an SSD read cache of 20 % of the size; HDD only. Default: false."
    )
    efa: bool = Field(
        default=False,
        description="Use EFA on machines with EFA and Nitro v4 or higher, not trn2; PERSISTENT_2 only. Default: false.",
    )
    metadata_iops: int | None = Field(
        default=None, ge=1, description="Metadata IOPS; PERSISTENT_2 only. Default: set by FSx from the size."
    )
    compression: Literal["LZ4", "none"] = Field(default="LZ4", description="Compression of new data. Default: LZ4.")
    backups: BackupsSpec | None = Field(
        default=None, description="Daily backups; persistent deployments without `data` only. Default: none."
    )
    root_squash: RootSquashSpec | None = Field(
        default=None, description="Map root on machines to another user. Default: no root squash."
    )
    mount: str | None = Field(default=None, description="Mount point on the machines. Default: /<name>.")
    zone: str | None = Field(
        default=None,
        description="Zone of the file system; AWS charges for traffic between zones. Default: the head's zone, or the"
        " base's first zone.",
    )
    data: tuple[DataLinkSpec, ...] = Field(
        default=(), description="Directories linked to S3, at most 8. Default: none."
    )

    @property
    def mount_point(self) -> str:
        """The mount point on the machines."""
        return self.mount or f"/{self.name}"
