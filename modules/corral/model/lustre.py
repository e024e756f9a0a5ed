"""The plan of an FSx for Lustre file system, of a cluster or of a base."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLinkPlan:
    """A data repository association: files below `path` of the file system are objects below `s3`."""

    path: str
    s3: str
    imports: tuple[str, ...]
    exports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LustrePlan:
    """A file system. `retained`: it belongs to the base and is retained; otherwise it is deleted with the cluster.

    `throughput_mbps_per_tib`: None where the deployment has no choice. `metadata_iops`: None for what FSx includes.
    `backup_days`: 0 for no backups; they begin at `backup_at` in UTC (None: FSx chooses). `root_squash`: the user and
    group that root maps to (`65534:65534`), except on the clients in `trusted_nids`.
    """

    name: str
    zone_id: str
    size_gib: int
    deployment: str
    mount: str
    data: tuple[DataLinkPlan, ...]
    retained: bool = False
    disks: str = "SSD"
    throughput_mbps_per_tib: int | None = None
    drive_cache: bool = False
    efa: bool = False
    metadata_iops: int | None = None
    compression: str = "LZ4"
    backup_days: int = 0
    backup_at: str | None = None
    root_squash: str | None = None
    trusted_nids: tuple[str, ...] = ()
