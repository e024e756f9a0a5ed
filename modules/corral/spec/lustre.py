"""What a user declares for an FSx for Lustre file system, be it kept by a base or gone with its cluster."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corral.spec.record import SpecRecord

DataEvent = Literal["NEW", "CHANGED", "DELETED"]
_LONGEST_BACKUP_DAYS = 90  # FSx API reference, AutomaticBackupRetentionDays


class DataLinkSpec(SpecRecord):
    """A directory of a Lustre file system whose files are objects in S3."""

    path: str = Field(description="Directory inside the file system, such as /data.")
    s3: str = Field(description="What it shows: s3://bucket or s3://bucket/prefix.")
    imports: tuple[DataEvent, ...] = Field(
        default=("NEW", "CHANGED", "DELETED"),
        alias="import",
        description="Changes in S3 that appear in the file system by themselves. Default: all three.",
    )
    exports: tuple[DataEvent, ...] = Field(
        default=(),
        alias="export",
        description="Changes in the file system that go to S3 by themselves. Default: none.",
    )


class BackupsSpec(SpecRecord):
    """Daily backups of a persistent file system, paid by what they hold."""

    keep_days: int = Field(ge=1, le=_LONGEST_BACKUP_DAYS, description="For how many days each backup is kept.")
    at: str | None = Field(
        default=None, description="When they begin, in UTC, such as 04:30. Default: a time that FSx picks."
    )


class RootSquashSpec(SpecRecord):
    """Whom root on a machine is on the file system."""

    to: str = Field(description="User and group id that root becomes, such as 65534:65534.")
    trusted: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Machines on which root stays root: Lustre NIDs such as 10.64.0.10@tcp. Default: none.",
    )


class LustreSpec(SpecRecord):
    """An FSx for Lustre file system: kept where a base declares it, gone with the cluster where a cluster does."""

    name: str = Field(description="Name of the file system: small letters, digits, hyphens.")
    size_gib: int = Field(ge=1, description="Size in GiB. On SSD: 1200, 2400, then steps of 2400.")
    deployment: str = Field(
        default="SCRATCH_2",
        description="FSx deployment type: SCRATCH_2, PERSISTENT_1 or PERSISTENT_2. Default: SCRATCH_2.",
    )
    disks: Literal["SSD", "HDD"] = Field(
        default="SSD", description="What stores it; HDD with PERSISTENT_1 alone. Default: SSD."
    )
    throughput: int | None = Field(
        default=None, ge=1, description="MB/s for each TiB. Needed for persistent deployments, fixed for SCRATCH_2."
    )
    drive_cache: bool = Field(
        default=False, description="Whether HDDs get an SSD read cache of a fifth of their size. Default: false."
    )
    efa: bool = Field(
        default=False,
        description="Whether machines with EFA reach it by EFA and GPUDirect; PERSISTENT_2 alone. Default: false.",
    )
    metadata_iops: int | None = Field(
        default=None, ge=1, description="Metadata operations a second; PERSISTENT_2 alone. Default: by its size."
    )
    compression: Literal["LZ4", "none"] = Field(
        default="LZ4", description="Compression of what is written from now on. Default: LZ4."
    )
    backups: BackupsSpec | None = Field(
        default=None, description="Daily backups, of persistent deployments alone. Default: none."
    )
    root_squash: RootSquashSpec | None = Field(
        default=None, description="Whom root on a machine is on the file system. Default: root."
    )
    mount: str | None = Field(default=None, description="Where machines mount it. Default: /<name>.")
    zone: str | None = Field(
        default=None,
        description="Its zone; reading it from another one costs. Default: the head's zone, of a base its first.",
    )
    data: tuple[DataLinkSpec, ...] = Field(
        default=(), description="Directories linked to S3, at most 8. Default: none."
    )

    @property
    def mount_point(self) -> str:
        """Where machines mount it."""
        return self.mount or f"/{self.name}"
