"""FSx for Lustre deployments: sizes, throughput and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count, takewhile
from typing import Any

from corral.catalog.loader.data_files import read_toml
from corral.catalog.loader.suggestions import UnknownName

_DATA_LINKS_MAXIMUM = 8  # S3 data repository associations per file system, for all deployments (FSx quotas)


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreDeployment:
    """A deployment type (`SCRATCH_2`), its storage (SSD or HDD) and its throughput setting, if it has one.

    Throughput is in MB/s per TiB of storage. `efa_step_gib` is None without EFA support; `drive_cache` and `metadata`
    are true if it supports an SSD read cache and metadata IOPS.
    """

    name: str
    deployment_type: str
    storage: str
    throughput_mbps_per_tib: int | None
    smallest_gib: int
    step_gib: int
    efa_step_gib: int | None
    network_baseline_mbps_per_tib: int
    network_burst_mbps_per_tib: int
    disk_read_mbps_per_tib: int
    disk_write_mbps_per_tib: int
    disk_read_burst_mbps_per_tib: int
    disk_write_burst_mbps_per_tib: int
    drive_cache: bool
    metadata: bool
    backups: bool
    data_links_maximum: int = _DATA_LINKS_MAXIMUM

    @property
    def price_name(self) -> str:
        """The name of its price per GiB and month."""
        return f"lustre-{self.name.lower().replace('_', '-').replace(' ', '-')}-gib-month"

    @property
    def cached_name(self) -> str:
        """Its name with an SSD read cache."""
        return f"{self.name} with cache"

    @property
    def cached_price_name(self) -> str:
        """The name of its price per GiB and month with an SSD read cache, including that cache."""
        return self.price_name.replace("-gib-", "-cache-gib-")

    def allows(self, size_gib: int, *, efa: bool = False) -> bool:
        """Return whether this size is valid. Raises ValueError for `efa` without EFA support."""
        smallest, step = self.steps(efa=efa)
        return size_gib == smallest or (size_gib > 0 and size_gib % step == 0)

    def nearest_sizes(self, size_gib: int, *, efa: bool = False) -> tuple[int, ...]:
        """Return the nearest valid sizes below and above, ascending; one if the size is smaller than all."""
        smallest, step = self.steps(efa=efa)
        below = size_gib // step * step
        known = sorted({smallest, step, *([below] if below > 0 else []), below + step})
        under, over = [s for s in known if s < size_gib], [s for s in known if s > size_gib]
        return (*under[-1:], *over[:1])

    def steps(self, *, efa: bool = False) -> tuple[int, int]:
        """Return the smallest size, and the step of which all others are multiples, both in GiB."""
        if not efa:
            return self.smallest_gib, self.step_gib
        if self.efa_step_gib is None:
            raise ValueError(f"{self.name} has no EFA")
        return self.efa_step_gib, self.efa_step_gib


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataIops:
    """Valid metadata IOPS. `automatic` lists the included IOPS by minimum size."""

    provisioned: tuple[int, ...]
    automatic: tuple[tuple[int, int], ...]

    def included(self, size_gib: int) -> int:
        """Return the IOPS that FSx provisions for this size in AUTOMATIC mode."""
        return max(iops for from_gib, iops in self.automatic if from_gib <= max(size_gib, self.automatic[0][0]))


@cache
def lustre_choices() -> tuple[LustreDeployment, ...]:
    """Return every deployment of the catalog, by type, then SSD before HDD, then by throughput."""
    rows = [_deployment(name, row) for name, row in read_toml("lustre.toml").items()]
    return tuple(
        sorted(rows, key=lambda row: (row.deployment_type, row.storage != "SSD", row.throughput_mbps_per_tib or 0))
    )


def find_lustre_deployment(
    deployment_type: str, *, storage: str = "SSD", throughput_mbps_per_tib: int | None = None
) -> LustreDeployment:
    """Return the deployment of this type, storage and throughput. `throughput` is None for types without a choice.

    Raises UnknownName, with the choices of the type, or with all types if the type is unknown.
    """
    wanted = (deployment_type, storage, throughput_mbps_per_tib)
    of_type = [row for row in lustre_choices() if row.deployment_type == deployment_type]
    for row in of_type:
        if (row.deployment_type, row.storage, row.throughput_mbps_per_tib) == wanted:
            return row
    if not of_type:
        types = sorted({row.deployment_type for row in lustre_choices()})
        raise UnknownName("Lustre deployment type", deployment_type, types)
    name = " ".join(str(part) for part in wanted if part is not None)
    choices = [row.name for row in of_type]
    raise UnknownName(
        "Lustre deployment", name, choices, hint=f"there {'are' if choices[1:] else 'is'} {', '.join(choices)}"
    )


@cache
def metadata_iops() -> MetadataIops:
    """Return the metadata IOPS of PERSISTENT_2 file systems on SSD."""
    row = read_toml("lustre_metadata.toml")
    most = row["provisioned_maximum"]
    steps = takewhile(lambda iops: iops <= most, count(row["provisioned_step"], row["provisioned_step"]))
    small = [(entry["from_gib"], entry["iops"]) for entry in row["automatic"]]
    return MetadataIops(
        provisioned=tuple(sorted({*row["provisioned"], *steps})), automatic=(*small, *_large_sizes(row, most))
    )


def _large_sizes(row: Mapping[str, Any], most: int) -> tuple[tuple[int, int], ...]:
    """Return (size, included IOPS) for each whole number of steps, up to the maximum."""
    step_gib, step_iops = row["automatic_step_gib"], row["automatic_step_iops"]
    first = row["automatic_large_gib"] // step_gib
    return tuple((number * step_gib, number * step_iops) for number in range(first, most // step_iops + 1))


def _deployment(name: str, row: Mapping[str, Any]) -> LustreDeployment:
    absent = {"throughput_mbps_per_tib": None, "efa_step_gib": None}
    off = dict.fromkeys(("drive_cache", "metadata", "backups"), False)
    calm = {f"disk_{way}_burst_mbps_per_tib": row[f"disk_{way}_mbps_per_tib"] for way in ("read", "write")}
    return LustreDeployment(**{**absent, **off, **calm, **row, "name": name})
